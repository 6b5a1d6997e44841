"""The paper's data: fetched from their official pages, checked, kept, and dealt out to nodes.

==============================  ====================================================================
`load`                          features and labels of a6a, w6a or ijcnn1
`problem`                       the paper's problem on one of them
`infectious`                    the network of infectious_ct1: 200 graphs on 50 nodes
`split`, `shares`               samples dealt out to nodes: shuffled, contiguous, by label, Dirichlet
`write_shards`, `Shards`        one file a node, each opened only where its node lives
`fetch`, `state`, `folder`      the files: download what is missing, say what is there, and where
`table2`, `readings`            the files against the paper's Table 2, and against its chi of about 232
==============================  ====================================================================

A file that is not there is downloaded once, with `pooch`, into ``$ADOM_DATA`` or the user's cache folder. Whatever
is read, fetched or found, has the SHA-256 that is written down in `adom.data.sets`, or is refused.
"""

from adom.data.checks import readings, table2
from adom.data.infectious import infectious
from adom.data.samples import load, problem
from adom.data.sets import SETS, DataSet
from adom.data.shards import Shards, write_shards
from adom.data.splits import SPLITS, shares, split
from adom.data.store import fetch, folder, state

__all__ = [
    "SETS",
    "SPLITS",
    "DataSet",
    "Shards",
    "fetch",
    "folder",
    "infectious",
    "load",
    "problem",
    "readings",
    "shares",
    "split",
    "state",
    "table2",
    "write_shards",
]
