"""The files are the paper's: its Table 2, and its chi of infectious_ct1."""

from collections.abc import Callable
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

import adom
from adom.data import infectious, load, paper_data, problem, readings, table2
from adom.data.paper_data import LINKS, MEMBERS, PAPER_CHI, rows
from adom.run.cite import INFECTIOUS

Real = Callable[..., Path]


def test_table_2(real):
    real("a6a", "w6a", "ijcnn1")
    found = table2().set_index("dataset")
    assert found["agrees"].tolist() == [True, True, True]
    assert found["samples"].to_dict() == {"a6a": 11220, "w6a": 17188, "ijcnn1": 49990}
    assert found["dimension"].to_dict() == {"a6a": 122, "w6a": 300, "ijcnn1": 22}
    assert found["empty"].to_dict() == {"a6a": 0, "w6a": 1445, "ijcnn1": 0}
    assert found["each_of_100"].to_dict() == {"a6a": "112 or 113", "w6a": "171 or 172", "ijcnn1": "499 or 500"}
    assert found["one_class_of_100"].to_dict() == {"a6a": 0, "w6a": 98, "ijcnn1": 0}  # w6a is sorted by label


def test_a_table_that_says_otherwise_is_not_agreed_with(real, monkeypatch):
    real("a6a", "w6a", "ijcnn1")
    monkeypatch.setitem(paper_data.TABLE_2, "a6a", (11220, 123))
    assert table2()["agrees"].tolist() == [False, True, True]


def test_the_papers_problem(real):
    real("a6a")
    made = problem("a6a", kappa=1000.0)
    assert (made.nodes, made.dim) == (100, 122)
    assert made.kappa == pytest.approx(1000)
    A, b = load("a6a")
    same = adom.LogisticRegression(A, b, 100, kappa=1000.0)
    assert made.l2 == same.l2
    unlike = problem("a6a", 50, split="label", l2=made.l2)
    assert unlike.nodes == 50


def test_infectious_has_the_papers_figures(real):
    folder = real("infectious_ct1")
    network = infectious()
    assert (network.nodes, network.period, network.graphs) == (50, 200, 198)
    assert network.chi == pytest.approx(232.6449, abs=1e-4)  # the paper: about 232
    assert network.lambda_max == pytest.approx(1)

    # The same from the files by another way.
    place = next(iter(folder.rglob(LINKS)))
    owner = [int(line) for line in place.with_name(MEMBERS).read_text().split()]
    graphs = [nx.Graph() for _ in range(200)]
    for node, graph in enumerate(owner):
        graphs[graph - 1].add_node(node % 50)
    for line in place.read_text().splitlines():
        u, v = (int(end) - 1 for end in line.split(","))
        graphs[owner[u] - 1].add_edge(u % 50, v % 50)
    assert all(nx.is_connected(graph) for graph in graphs)
    for k in (0, 7, 199):
        assert nx.utils.graphs_equal(network.graph(k), nx.Graph(graphs[k]))
    values = np.array([np.linalg.eigvalsh(nx.laplacian_matrix(graph).toarray().astype(float)) for graph in graphs])
    assert network.chi == pytest.approx((values[:, -1] / values[:, 1]).max())
    assert network.recipe["sha256"] == INFECTIOUS  # by which adom.cite knows it


def test_readings(real):
    real("infectious_ct1")
    table = readings()
    assert table["chi"].round(2).tolist() == [232.64, 409.06, 245.46, 472.99, 149.45, 161.74, 73.64, 3440.13, 1.35]
    near = table[(table["chi"] - PAPER_CHI).abs() < 1]
    assert near["reading"].tolist() == ["links weigh 1, its own"]
    assert table["not_connected"].tolist() == [0] * 7 + [4405, 0]


def test_links_are_counted_from_the_first_node_of_their_graph():
    made = rows(b"4, 6\n6, 4\n1, 2\n", b"1\n1\n1\n2\n2\n2\n")
    assert made.tolist() == [[1, 0, 2], [1, 0, 2], [0, 0, 1]]


def test_any_layout_of_the_folder_will_do(real, tmp_path, monkeypatch):
    folder = real("a6a", "ijcnn1", "infectious_ct1")
    for name in ("a6a", "ijcnn1*", "infectious_ct1_*"):
        for path in folder.rglob(name):
            if path.is_file():
                (tmp_path / path.name).symlink_to(path.absolute())
    monkeypatch.setenv("ADOM_DATA", str(tmp_path))
    assert load("a6a")[0].shape == (11220, 122)
    assert load("ijcnn1")[0].shape == (49990, 22)
    assert infectious().period == 200
