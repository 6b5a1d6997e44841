"""The paper's data sets, downloaded from their official pages and checked; splits of samples over nodes; shards.

==============================  ====================================================================
`load`                          features and labels of a6a, w6a or ijcnn1
`problem`                       the paper's problem on one of them
`infectious`                    the network of infectious_ct1: 200 graphs on 50 nodes
`split`, `shares`               samples split over nodes: shuffled, contiguous, by label, Dirichlet
`write_shards`, `Shards`        one file per node, opened only by the process that runs the node
`Model`, `load_model`           a fitted linear model, and its file
`fetch`, `state`, `folder`      the files: download missing ones, check them, name their folder
`table2`, `readings`            the files compared with the paper's Table 2 and its chi of about 232
==============================  ====================================================================

A missing file is downloaded once, with `pooch`, into ``$ADOM_DATA`` or the user's cache folder. Every file, downloaded
or found, must have the SHA-256 listed in `adom.data.sets`.
"""

from adom.data.model import Model, load_model
from adom.data.paper_data import infectious, load, problem, readings, table2
from adom.data.sets import SETS, DataSet, fetch, folder, state
from adom.data.shards import Shards, write_shards
from adom.data.splits import SPLITS, shares, split

__all__ = [
    "SETS",
    "SPLITS",
    "DataSet",
    "Model",
    "Shards",
    "fetch",
    "folder",
    "infectious",
    "load",
    "load_model",
    "problem",
    "readings",
    "shares",
    "split",
    "state",
    "table2",
    "write_shards",
]
