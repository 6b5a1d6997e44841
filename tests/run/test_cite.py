"""References for what a run used: for every method, complete and well-formed, each once."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import adom
from adom.algorithms import METHODS, method_class
from adom.errors import InputError
from adom.run.cite import INFECTIOUS, TEMPORAL, TUDATASET, references

ROOT = Path(__file__).parents[2]


def run(method="adom", engine="local", **more):
    provenance = {"method": {"name": method}, "engine": engine, "versions": {"adom": "0.1.0"}, **more}
    return adom.Result(np.zeros((2, 1)), pd.DataFrame({"error": [1.0]}), "max_rounds", provenance)


def parsed(text):
    """Return key -> fields of each entry, after a check of its braces."""
    entries = {}
    for entry in re.split(r"\n\n(?=@)", text):
        depth = np.cumsum([(letter == "{") - (letter == "}") for letter in entry])
        assert (depth >= 0).all()
        assert depth[-1] == 0
        (key,) = re.findall(r"^@(?:article|inproceedings|misc|software)\{([\w-]+),\n", entry)
        assert key not in entries
        entries[key] = dict(re.findall(r"^  (\w+) = \{(.*?)\},$", entry, re.MULTILINE | re.DOTALL))
        assert {"author", "title", "year"} <= set(entries[key])
        assert re.fullmatch(r"(19|20)\d\d", entries[key]["year"])
    return entries


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_its_paper(name):
    software, paper, jax = parsed(adom.cite(run(name))).values()
    (number,) = re.findall(r"arXiv:(\d+\.\d+)", method_class(name).reference)
    assert paper["eprint"] == number
    references = " ".join(method_class(name).__doc__.partition("References\n")[2].partition("Examples\n")[0].split())
    if name != "pngd":  # which says "Kovalev et al." in short
        title = re.sub(r"[{}]", "", " ".join(paper["title"].split()))
        assert title.lower() in references.lower()
        for author in paper["author"].replace("\n", " ").split(" and "):
            family = re.sub(r"[{}'\\]", "", author.partition(",")[0]).strip()
            assert family in references
    assert software["version"] == "0.1.0"
    assert "JAX" in jax["title"]


def test_papers_are_those_of_the_methods_and_the_software_is_as_in_the_citation_file():
    used = {number for name in METHODS for number in re.findall(r"arXiv:(\S+)", method_class(name).reference)}
    assert used == {key for key in references() if key[0].isdigit()} - {TUDATASET, TEMPORAL}
    cff = (ROOT / "CITATION.cff").read_text()
    software = parsed(adom.cite(run()))["adom"]
    assert f'title: "{software["title"]}"' in cff
    assert f"date-released: {software['year']}" in cff
    assert f'name: "{software["author"].strip("{}")}"' in cff


@pytest.mark.parametrize(
    ("more", "keys"),
    [
        ({"engine": "mpi"}, {"dalcin2021mpi4py"}),
        ({"problem": {"data": "a6a"}}, {"chang2011libsvm"}),
        ({"reproduction": {"panel": "ijcnn1-kappa10"}}, {"chang2011libsvm", "kovalev2021adom"}),
        (
            {"network": {"generator": "slowed", "of": {"generator": "from_contacts", "sha256": INFECTIOUS}}},
            {"morris2020tudataset", "oettershagen2020temporal"},
        ),
        ({"commit": "0a6a1", "network": {"generator": "from_contacts", "sha256": "0"}}, set()),
    ],
)
def test_engines_data_sets_and_networks(more, keys):
    assert set(parsed(adom.cite(run("diging", **more)))) - set(parsed(adom.cite(run("diging")))) == keys


def test_several_runs_give_each_reference_once():
    problem, network = adom.Quadratic(np.ones((3, 1, 1)), np.ones((3, 1))), adom.networks.ring(3)
    compared = adom.compare(problem, network, ["adom", "pngd", "mudag"], "unit", rounds=5, progress=False)
    expected = {"adom", "kovalev2021adom", "ye2023multi", "jax"}
    assert set(parsed(adom.cite(compared))) == expected
    swept = adom.sweep(problem, network, "adom", factors={"eta": [0.5, 1]}, rounds=5, progress=False)
    assert set(parsed(adom.cite(swept))) == expected - {"ye2023multi"}
    assert adom.cite([compared, swept]) == adom.cite(compared)
    own = replace(run(), provenance={"method": {"name": "of my own"}})
    assert set(parsed(adom.cite(own))) == {"adom", "jax"}


@pytest.mark.parametrize("wrong", ["out/result.npz", Path("result.npz"), None, 3, ["result.npz"]])
def test_other_things_are_refused(wrong):
    with pytest.raises(InputError, match=r"cite takes a Result, .*got a \w+; adom.load\(path\) reads"):
        adom.cite(wrong)
