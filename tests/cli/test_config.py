"""Settings: flags before the file before what is usual, each checked, and written so that they can be read."""

import random
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adom.cli.build import network as build_network
from adom.cli.build import parameters, problem, shards
from adom.cli.config import settle, toml_text, write_toml
from adom.cli.settings import (
    SETTINGS,
    SMALL,
    USUAL,
    Config,
    NetworkTable,
    ProblemTable,
    RunTable,
    kinds_of_network,
)
from adom.data.node_shards import write_shard
from adom.errors import InputError
from adom.networks import LossyNetwork, Network, expander
from adom.networks.recipes import GENERATORS, SUITED
from support.damage import attempt, mutants, overwrite


def toml(text: str) -> Path:
    path = Path("config.toml")
    path.write_text(text)
    return path


def settled(text: str = "", **flags: dict[str, Any]) -> Config:
    return settle(toml(text), flags, USUAL)


def test_what_is_usual_is_the_papers_default() -> None:
    config = settle(None, {}, USUAL)
    assert config.problem == ProblemTable(nodes=100, samples=100, dim=40, kappa=100.0, seed=0)
    assert config.network == NetworkTable(kind="geometric", chi=30.0, graphs=1000)
    assert (config.run.method, config.run.parameters, config.run.oracle) == ("adom", "auto", "auto")
    small = settle(None, {}, SMALL)
    assert (small.problem.nodes, small.network.graphs, small.run.rounds) == (20, 50, 500)


def test_flags_win_over_the_file_and_the_file_over_the_rest() -> None:
    config = settled("[problem]\nnodes = 7\ndim = 9\n[run]\nrounds = 3\n", problem={"nodes": 8})
    assert (config.problem.nodes, config.problem.dim, config.problem.samples) == (8, 9, 100)
    assert config.run.rounds == 3


def test_a_flag_does_away_with_its_rivals_in_the_file() -> None:
    text = "[problem]\nkappa = 5.0\ndim = 40\n[network]\nkind = 'geometric'\nchi = 30.0\ngraphs = 9\nfailing = 0.1\n"
    config = settled(text, problem={"l2": 0.5, "data": "x.svm"}, network={"radius": 0.4})
    assert (config.problem.kappa, config.problem.l2, config.problem.dim) == (None, 0.5, None)
    assert (config.network.chi, config.network.radius) == (None, 0.4)
    other = settled(text, network={"kind": "star"}).network
    assert (other.kind, other.chi, other.failing, other.graphs) == ("star", None, 0.1, 1000)


def test_contacts_alone_name_the_kind_and_bring_the_nodes() -> None:
    config = settle(None, {"network": {"contacts": "met.txt"}}, USUAL)
    assert config.network == NetworkTable(kind="contacts", contacts="met.txt", window=1)
    assert config.problem.nodes is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[problem]\nnods = 3\n", "config.toml, [problem]: unknown key 'nods'; did you mean 'nodes'?"),
        ("[run]\nepochs = 3\n", "[run]: unknown key 'epochs'; known: method"),
        ("[problm]\nnodes = 3\n", "unknown table [problm]; did you mean 'problem'?"),
        ("nodes = 3\n", "config.toml: nodes is not in a table; write [problem] on a line above it"),
        ("fog = 3\n", "unknown table [fog]"),
        ("problem = 3\n", "problem must be a table, got 3"),
        ("[problem]\nnodes = '3'\n", "nodes must be a whole number, got '3'; e.g. nodes = 100"),
        ("[problem]\nnodes = 3.0\n", "nodes must be a whole number, got 3.0"),
        ("[problem]\nnodes = true\n", "nodes must be a whole number, got True"),
        ("[problem]\nkappa = 'x'\n", "kappa must be a number, got 'x'"),
        ("[network]\nrepair = 1\n", "repair must be true or false, got 1"),
        ("[run]\nmethod = 1\n", "method must be text in quotes, got 1"),
        ("[problem\n", "config.toml is not a TOML file: Expected ']'"),
        ("[run]\nrtol = nan\n", "rtol must be a finite number, got nan"),
        ("[run]\ntol = 0.1\nrtol = 0.1\n", "tol = 0.1 and rtol = 0.1 exclude each other"),
        ("[problem]\nkappa = 3.0\nl2 = 1.0\n", "kappa = 3.0 and l2 = 1.0 exclude each other"),
        ("[network]\nkind = 'rong'\n", "unknown network 'rong'; did you mean 'ring'?"),
        ("[network]\nkind = 'ring'\nradius = 0.3\n", "radius = 0.3 has no effect on network ring"),
        ("[network]\nkind = 'ring'\ngraphs = 3\n", "graphs = 3 has no effect on network ring"),
        ("[network]\nkind = 'contacts'\n", "needs a contact list; give one with --contacts"),
    ],
)
def test_mistakes_are_named(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        settled(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ['quote " and \\ slash', "tab\tnew\nline", "ünïcödé ☃", ""])
def test_written_text_reads_back(text: str) -> None:
    write_toml(Config(problem=ProblemTable(label=text), run=RunTable(rtol=1e-300, tol=1e22)), Path("config.toml"))
    read = tomllib.loads(Path("config.toml").read_text(encoding="utf-8"))
    assert read["problem"]["label"] == text
    assert read["run"]["rtol"] == 1e-300
    assert read["run"]["tol"] == 1e22


def test_what_is_written_settles_to_the_same(tmp_path: Path) -> None:
    Path("data").mkdir()
    flags = {
        "problem": {"data": "data/x.svm", "l2": 0.25},
        "network": {"contacts": "data/met.txt", "window": 20, "repair": True},
        "run": {"tol": 1e-6},
    }
    config = settle(None, flags, USUAL)
    write_toml(config, tmp_path / "deep" / "config.toml")
    again = settle(Path("deep/config.toml"), {}, USUAL)
    assert Path(str(again.problem.data)).resolve() == tmp_path / "data" / "x.svm"
    assert Path(str(again.network.contacts)).resolve() == tmp_path / "data" / "met.txt"
    assert again.run == config.run
    assert (again.problem.l2, again.network.window, again.network.repair) == (0.25, 20, True)


OLD = """\
# Run this again with: adom solve config.toml

[problem]
nodes = 6
samples = 100
split = "dirichlet"
concentration = 0.1
dim = 40
kappa = 8
seed = 3

[network]
kind = "geometric,waypoint"
radius = 0.616622
chi = 6.0
graphs = 1000
speed = 0.02
failing = 0.1
every = 4

[run]
method = "adom"
parameters = "unit,eta=0.5"
oracle = "auto"
rounds = 5000
tol = 1e-06
record_every = 1
dtype = "float64"
engine = "mpi"

[mpi]
checkpoints = "saved"
every_rounds = 100
resume = true

[compare]
methods = "adom,diging"

[sweep]
oracles = ["exact", "gd:1"]
kappas = [4, 8.0]
seeds = [0]
factors = {"eta" = [0.5, 1]}
settings = [{"sigma" = 1}]
"""
"""A file that version 0.1.0 wrote."""


def test_a_file_of_an_earlier_version_is_read_and_written_as_it_was() -> None:
    assert toml_text(settled(OLD), Path("config.toml")) == OLD


def built(**network: Any) -> Any:
    nodes = network.pop("nodes", 12)
    return build_network(settle(None, {"problem": {"nodes": nodes}, "network": network}, SMALL))


def test_a_generator_is_a_kind_of_network_as_soon_as_it_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    def wheel(nodes: int, degree: int = 2, *, seed: int = 0) -> Network:
        return expander(nodes, degree, seed=seed)

    monkeypatch.setitem(GENERATORS, "big_wheel", wheel)
    monkeypatch.setitem(SUITED, "big_wheel", lambda nodes: {"degree": nodes // 3})
    kinds_of_network.cache_clear()
    assert (built(kind="big-wheel").recipe["degree"], built(kind="big-wheel", degree=6).recipe["degree"]) == (4, 6)
    monkeypatch.undo()
    kinds_of_network.cache_clear()
    assert "big-wheel" not in kinds_of_network()


def test_the_help_names_every_kind_of_network() -> None:
    named = SETTINGS["network", "kind"].help.replace(",", " ").replace(";", " ").split()
    assert set(kinds_of_network()) <= set(named)


@pytest.mark.parametrize(
    "kind", ["geometric", "waypoint", "erdos-renyi", "expander", "ring", "star", "path", "complete", "torus"]
)
def test_every_kind_builds_with_nothing_else_said(kind: str) -> None:
    network = built(kind=kind)
    assert network.nodes == 12
    assert network.recipe["generator"] == kind.replace("-", "_")
    assert network.graphs == (50 if kind in ("geometric", "waypoint", "erdos-renyi", "expander") else 1)


@pytest.mark.parametrize("nodes", [2, 3, 5, 9, 10])
def test_the_usual_network_exists_for_few_nodes(nodes: int) -> None:
    assert built(nodes=nodes).chi <= 33


def test_kinds_in_turn_and_graphs_that_stay() -> None:
    assert built(kind="ring,star", every=3).order.tolist() == [0, 0, 0, 1, 1, 1]
    assert built(kind="ring, star").period == 40
    assert built(graphs=2, every=3).order.tolist() == [0, 0, 0, 1, 1, 1]
    assert built(kind="ring", every=5).period == 1
    assert built(kind="geometric,waypoint", graphs=2, every=1).graphs == 4


def test_links_that_fail() -> None:
    failing = built(kind="complete", failing=0.5, graphs=7)
    assert failing.recipe["generator"] == "failing"
    assert failing.period == 7
    assert failing.describe()["edges_mean"] < 50
    assert built(kind="ring,star", every=30, failing=0.1, graphs=7).period == 60


def test_messages_and_nodes_that_get_lost() -> None:
    lossy = built(kind="ring", one_way=0.2, no_healing=True, leaving="1:30, 2:40", joining="1:50")
    assert isinstance(lossy, LossyNetwork)
    assert (lossy.loss.one_way, lossy.loss.healing, lossy.loss.starts.tolist()) == (0.2, False, [0, 30, 40, 50])
    healing = built(kind="ring", failing=0.1, graphs=5, leaving="1:30")
    assert isinstance(healing, LossyNetwork)
    assert (healing.loss.one_way, healing.loss.healing) == (0.0, True)
    with pytest.raises(InputError, match="--leaving must read node:round"):
        built(kind="ring", leaving="1=30")
    with pytest.raises(InputError, match="--no-healing has no effect"):
        built(kind="ring", no_healing=True)


def test_messages_that_are_late_coarse_partial_and_noisy() -> None:
    late = built(kind="ring", keep=0.5, bits=4, delay=2)
    assert isinstance(late, LossyNetwork)
    channel = late.channel
    assert (channel.coders[0].sent, channel.coders[1].bits, channel.delay, channel.feedback) == (0.5, 4, 2, True)
    noisy = built(kind="ring", bits=4, no_feedback=True, noise=0.1, one_way=0.2, no_healing=True)
    assert (noisy.channel.noise.std, noisy.channel.feedback, noisy.loss.one_way) == (0.1, False, 0.2)
    with pytest.raises(InputError, match="--no-feedback has no effect"):
        built(kind="ring", no_feedback=True)


def test_the_seed_of_the_network_may_differ() -> None:
    common = {"kind": "erdos-renyi", "graphs": 2}
    same = settle(None, {"problem": {"seed": 5}, "network": common}, SMALL)
    assert build_network(same).recipe["seed"] == 5
    other = settle(None, {"problem": {"seed": 5}, "network": {**common, "seed": 6}}, SMALL)
    assert build_network(other).recipe["seed"] == 6


def test_a_torus_needs_a_number_that_factors() -> None:
    assert built(kind="torus", nodes=15).recipe == {"generator": "torus", "rows": 3, "columns": 5}
    with pytest.raises(InputError, match=r"nodes = 13 makes no torus.*nearest square is nodes = 16"):
        built(kind="torus", nodes=13)


def test_large_networks_get_fewer_graphs_by_default() -> None:
    graphs = [settle(None, {"problem": {"nodes": n}}, USUAL).network.graphs for n in (100, 150, 300, 5000)]
    assert graphs == [1000, 1000, 125, 10]


def test_a_file_is_shared_out_whole_or_by_samples() -> None:
    Path("six.svm").write_text("".join(f"{(-1) ** k} 1:{k} 2:1\n" for k in range(6)))
    whole = settle(None, {"problem": {"data": "six.svm", "nodes": 2}}, USUAL)
    assert problem(whole, 2).dim == 2
    part = settle(None, {"problem": {"data": "six.svm", "nodes": 2, "samples": 2, "dim": 3, "l2": 1.0}}, USUAL)
    made = problem(part, 2)
    assert (made.dim, made.l2) == (3, 1.0)
    assert made.features.margins(np.ones((2, 3))).ravel().tolist() == [1, -2, 3, -4]
    many = settle(None, {"problem": {"data": "six.svm", "nodes": 2, "samples": 4}}, USUAL)
    with pytest.raises(InputError, match="has 6 samples, too few for 2 nodes with samples = 4 each"):
        problem(many, 2)


def test_the_memory_of_shards_is_in_megabytes() -> None:
    Path("table.csv").write_text("a,y\n1,0\n2,1\n")
    for node in ("north", "south"):
        write_shard("table.csv", node, "apart")
    usual = settle(None, {"problem": {"shards": "apart", "memory": 2.0}}, USUAL)
    assert shards(usual).memory == 2e6
    with pytest.raises(InputError, match=r"memory must be .* at least 0, got -1.0; it is in MB, e.g. memory=1000"):
        shards(settle(None, {"problem": {"shards": "apart", "memory": -1.0}}, USUAL))


def test_synthetic_data_is_sklearns() -> None:
    from sklearn.datasets import make_classification

    import adom

    config = settle(None, {"problem": {"nodes": 5, "samples": 4, "dim": 6, "kappa": 20.0, "seed": 3}}, USUAL)
    A, b = make_classification(n_samples=20, n_features=6, random_state=3)
    expected = adom.LogisticRegression(A, b, 5, kappa=20.0)
    made = problem(config, 5)
    assert (made.mu, made.L) == (expected.mu, expected.L)


def test_parameters_in_text() -> None:
    with pytest.raises(InputError, match="got 'eta=x'"):
        parameters("unit,eta=x")
    with pytest.raises(InputError, match="got 'unit'"):
        parameters("eta=1,unit")


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    Path("bom.toml").write_bytes(b"\xef\xbb\xbf[run]\nrounds = 3\n")
    assert settle(Path("bom.toml"), {}, USUAL).run.rounds == 3


@pytest.mark.parametrize("code", ["utf-16", "utf-16-le", "latin-1"])
def test_other_encodings_are_named(code: str) -> None:
    Path("other.toml").write_bytes("# é\n[run]\nrounds = 3\n".encode(code))
    with pytest.raises(InputError, match=r"other.toml is not UTF-8 text.*save it in UTF-8"):
        settle(Path("other.toml"), {}, USUAL)


def test_methods_are_a_list_or_text_in_both_tables() -> None:
    for given in ('["adom", "pngd"]', '"adom, pngd"'):
        config = settled(f"[compare]\nmethods = {given}\n[sweep]\nmethods = {given}\n")
        assert str(config.compare.methods).replace(" ", "") == "adom,pngd"
        assert config.sweep.methods == ["adom", "pngd"]
    one = settled('[sweep]\nparameters = "unit,eta=1"\noracles = "exact, gd:1"\nkappas = 10\nseeds = 3\n').sweep
    assert (one.parameters, one.oracles, one.kappas, one.seeds) == (["unit,eta=1"], ["exact", "gd:1"], [10], [0, 1, 2])


def test_a_path_that_config_toml_cannot_hold_is_refused() -> None:
    with pytest.raises(InputError, match=r"--data 'caf\\udce9' is not a name in UTF-8"):
        settle(None, {"problem": {"data": "caf\udce9"}}, USUAL)


PIECES = (
    *("rounds", "nodes", "kind", "chi", "seed", "data", "methods", "grid", "tol", "[run]", "[problem]", "[[run]]"),
    *("[sweep.grid]", "=", "= =", "true", "nan", "-inf", "1e999", "0x" + "f" * 300, "9" * 5000, "-1", "1_000", "''"),
    *('"a\\u0000b"', '"' + "x" * 300 + '"', "2020-01-01", "[1, 'a', []]", "{a = {b = 1}}", "[" * 3000, "\n", "\r", "#"),
    *("\ufeff", "\0", "\x85", "'ring,star'", '"geometric"', "é", '"""', "\\"),
)


def test_no_text_gives_anything_but_settings_or_one_line() -> None:
    """A thousand files, most of them nonsense, through the reader of the commands."""
    path = Path("whole.toml")
    write_toml(settle(None, {}, USUAL), path)
    text = path.read_text()
    lines = text.splitlines()
    chance = random.Random(13)
    good = 0
    for damaged in mutants(text.encode(), 300, seed=13):
        good += _settles(path, damaged)
    for _ in range(700):
        made = [*lines]
        for _ in range(chance.choice((1, 1, 2, 5))):
            place = chance.randrange(len(made))
            name = made[place].partition("=")[0]
            piece = chance.choice(PIECES)
            made[place] = chance.choice((piece, f"{name}= {piece}", f"{made[place]}\n{made[place]}", ""))
        good += _settles(path, "\n".join(made).encode(errors="replace"))
    assert 50 < good < 900


def _settles(path: Path, content: bytes) -> bool:
    overwrite(path, content)
    config, refusal = attempt(lambda: settle(path, {}, USUAL))
    assert "\n" not in refusal
    assert len(refusal) < 1500
    if refusal:
        return False
    assert isinstance(config, Config)
    overwrite(path, toml_text(config, path).encode())
    assert settle(path, {}, USUAL) == config
    return True
