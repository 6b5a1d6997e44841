"""Agents on data that lie apart: shards prepared together, models as those of the pooled data, refusals of one line."""

import json
import subprocess

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("zenoh")

from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

import adom
from adom.agents.configuration import as_toml, make_config
from adom.agents.service import Service
from adom.cli.main import app
from adom.data.node_shards import write_shard
from adom.errors import InputError
from support import apart
from support.agents_made import free_ports, near, ring
from support.agents_running import make_service, process_of, run_all, start, stop, told, wait_for

QUICK = {"patience": 2.0, "gone": 2.0, "gather": 20.0, "watch": 0.05}
NAMES = ["a", "b", "c"]


def table(rows=30, seed=0, labels=("no", "yes")):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"age": 40 + 9 * rng.standard_normal(rows), "dose": rng.standard_normal(rows) + seed})
    frame["ill"] = np.where(frame["age"] + 9 * rng.standard_normal(rows) > 40, *reversed(labels))
    return frame


def shard(folder, name, content):
    content.to_csv(folder / f"{name}.csv", index=False)
    return write_shard(folder / f"{name}.csv", name, folder, target="ill", overwrite=True)


def services(folder, names=NAMES, ports=None, **more):
    """Return services on a path; their shards must be there."""
    ports = dict(zip(NAMES, ports or free_ports(len(NAMES)), strict=True))
    made = []
    for name in names:
        others = NAMES[max(0, NAMES.index(name) - 1) :][: 3 if name != NAMES[0] else 2]
        given = {"name": name, "listen": f"tcp/127.0.0.1:{ports[name]}", "data": str(folder / name)}
        usual = {"out": str(folder / f"out-{name}"), "nodes": len(names), "l2": 0.3, "scale": True, **QUICK}
        neighbours = {other: f"tcp/127.0.0.1:{ports[other]}" for other in others if other != name}
        made.append(make_service({**usual, **given, **more}, neighbours))
    RUNNING.extend(made)
    return made


@pytest.fixture(autouse=True)
def end_all():
    """End all services, also those of a test that failed."""
    yield
    for service in RUNNING:
        service.ask_to_stop("asked to")
        service.links.close()
    RUNNING.clear()


RUNNING: list[Service] = []


def pooled(tables, scaling, C):
    """Return coefficients and intercept of scikit-learn on some tables, scaled by others' means and spreads."""
    every, base = pd.concat(tables), pd.concat(scaling)[["age", "dose"]]
    X = (every[["age", "dose"]] - base.mean()) / base.std(ddof=0)
    model = LogisticRegression(C=C, tol=1e-13, solver="newton-cholesky").fit(X, every["ill"])
    return np.append(model.coef_[0], model.intercept_)


def numbers(model):
    return np.append(model.coefficients[0], model.intercept)


def test_four_machines_as_processes(tmp_path):
    """The story of docs/apart.md: a folder a machine, a shard in each, an agent on each, and a model in use."""
    homes = {node: tmp_path / node for node in apart.NODES}
    apart.write("cancer", list(homes.values()))
    ports = dict(zip(apart.NODES, free_ports(4), strict=True))
    links, running = ring(apart.NODES), {}
    for node, home in homes.items():
        tables = {
            "agent": {"name": node, "listen": f"tcp/127.0.0.1:{ports[node]}", "gone": 4.0, "gather": 20.0},
            "neighbours": {other: f"tcp/127.0.0.1:{ports[other]}" for other in near(node, links)},
            "problem": {"data": "shards", "nodes": 4, **apart.SETTINGS["cancer"]},
            "run": {"tol": apart.TOL, "seconds": 120},
            "files": {"out": "out"},
        }
        (home / "agent.toml").write_text(as_toml(tables))
        call, environment = process_of(home / "agent.toml")
        running[node] = subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
    for node, process in running.items():
        out, err = process.communicate(timeout=150)
        assert process.returncode == 0, err
        assert json.loads(out.splitlines()[-1])["why"] == "agreed", out[-2000:]
        model = adom.load_model(homes[node] / "out" / "model.json")
        apart.assert_is_the_pooled_one(model, "cancer")
        assert model.penalty["C"] == pytest.approx(apart.SETTINGS["cancer"]["C"])
        assert model.provenance["nodes"] == list(apart.NODES)
    new = apart.frame("cancer")
    new.to_csv(tmp_path / "new.csv", index=False)
    place, file = str(homes["west"] / "out" / "model.json"), str(tmp_path / "new.csv")
    assert CliRunner().invoke(app, ["predict", place, file, "--out", str(tmp_path / "p.csv")]).exit_code == 0
    right = (pd.read_csv(tmp_path / "p.csv")["prediction"] == new["target"].to_numpy()).mean()
    assert right > 0.95
    scored = json.loads(CliRunner().invoke(app, ["score", place, file, "--json"]).stdout)
    assert scored["score"] == pytest.approx(right)


def test_one_that_comes_late_uses_the_scales_of_those_who_agreed(tmp_path):
    tables = {name: table(20 + 10 * i, i) for i, name in enumerate(NAMES)}
    tables["b"] = tables["b"].assign(ill="yes")  # one class only, which is allowed
    for name, content in tables.items():
        shard(tmp_path, name, content)
    ports = free_ports(3)
    first = services(tmp_path, ["a", "b"], ports)
    threads, _ = start(first)
    early = [tables["a"], tables["b"]]
    samples = sum(map(len, early))
    expected = pooled(early, early, 1 / (0.3 * samples))

    def near(made, wanted):
        models = [(s.agreed.model_rows(s.agent.x[None])[0] if s._ready else np.inf) for s in made]
        return all(np.abs(model - wanted).max() < 1e-7 for model in models)

    wait_for(lambda: near(first, expected))
    late = services(tmp_path, ["c"], ports, nodes=2)
    more, _ = start(late)
    # every agent brings l2 / 2 |w|^2, and 2 / N of each of its samples' losses, N of the two that agreed
    wait_for(lambda: near([*first, *late], pooled(list(tables.values()), early, 2 / samples / (3 * 0.3))))
    assert late[0].agreed.names == ["a", "b"]
    stop([*first, *late], [*threads, *more])
    # a restart needs nobody to agree with, and goes on from where it was
    again = services(tmp_path, ["a"], nodes=2, rounds=1, gather=0.1)
    assert set(run_all(again).values()) == {"rounds"}
    assert again[0].resumed
    np.testing.assert_array_equal(again[0].agreed.means, first[0].agreed.means)
    with pytest.raises(InputError, match="belongs to another agent, problem or method; remove it"):
        services(tmp_path, ["a"], nodes=2, l2=0.4)


def test_what_nodes_refuse_together(tmp_path):
    said = {}
    for case in ("columns", "order", "one-class", "text"):
        home = tmp_path / case
        home.mkdir()
        for i, name in enumerate(NAMES):
            content = table(seed=i)
            if case == "columns" and name == "c":
                content = content.rename(columns={"dose": "amount"})
            if case == "order" and name == "c":
                content = content[["dose", "age", "ill"]]
            shard(home, name, content.assign(ill="no") if case == "one-class" else content)
        endings = run_all(services(home, kind="ridge" if case == "text" else "logistic", gone=1.0))
        assert len(endings) == 3, case
        assert len(set(endings.values())) == 1, endings  # all refuse alike
        said[case] = endings["a"]
    assert "node c has no column 'dose', which node a has" in said["columns"]
    assert "nodes a and c have the same columns in another order" in said["order"]
    assert "all samples of all nodes have the class 'no' in ill; a model needs two or more" in said["one-class"]
    assert "a ridge model needs numbers, and ill holds text" in said["text"]


def test_data_that_change_while_agents_run(tmp_path):
    tables = {name: table(20 + 10 * i, i) for i, name in enumerate("ab")}
    for name, content in tables.items():
        shard(tmp_path, name, content)
    made = services(tmp_path, ["a", "b"])
    threads, _ = start(made)
    wait_for(lambda: all(s._ready and s.agent.round > 20 for s in made))
    place = tmp_path / "b" / "target.npy"
    whole = place.read_bytes()
    place.write_bytes(whole[:-8] + np.float64(7).tobytes())
    wait_for(lambda: told(made[1], "data refused"))
    assert "was changed after `adom shard` made it" in told(made[1], "data refused")[-1]["why"]
    shard(tmp_path, "b", table(30, 1, ("no", "perhaps")))
    wait_for(lambda: len(told(made[1], "data refused")) >= 2)
    assert "node b has the class 'perhaps' in ill" in told(made[1], "data refused")[-1]["why"]
    shard(tmp_path, "b", table(30, 1).rename(columns={"dose": "amount"}))
    wait_for(lambda: "other columns" in told(made[1], "data refused")[-1]["why"])
    new = table(45, 7)
    shard(tmp_path, "b", new)
    wait_for(lambda: told(made[1], "data read"))
    samples = sum(map(len, tables.values()))
    expected = pooled([tables["a"], new], list(tables.values()), 1 / (0.3 * samples))  # scales and l2 stay
    wait_for(lambda: all(np.abs(s.agreed.model_rows(s.agent.x[None])[0] - expected).max() < 1e-7 for s in made))

    def published():
        return numbers(adom.load_model(tmp_path / "out-a" / "model.json"))

    wait_for(lambda: np.abs(published() - expected).max() < 1e-7)
    stop(made, threads)
    assert np.abs(published() - expected).max() < 1e-7  # what the last one writes alone is a candidate


def test_settings_of_shards_are_checked(tmp_path):
    for name in "ab":
        shard(tmp_path, name, table())
    for given, words in (
        ({"nodes": None}, "agents prepare shards together and must know how many start; add e.g. nodes = 4"),
        ({"dim": 3}, "dim has no effect on .*: a shard already defines its columns and classes"),
        ({"C": 1.0, "l2": 1.0}, "give one of C, l2"),
        ({"alpha": 1.0}, "alpha=1.0 has no effect on a logistic model"),
        ({"scale": 1}, "scale must be true or false, got 1"),
        ({"data": str(tmp_path)}, "holds 2 shards, but an agent takes one; e.g. data = '.*a'"),
        ({"data": str(tmp_path / "a.csv")}, "scale has no effect on .*a.csv: it is only for shards"),
    ):
        usual = {"name": "a", "data": str(tmp_path / "a"), "nodes": 2, "scale": True}
        values = {key: value for key, value in {**usual, **given}.items() if value is not None}
        with pytest.raises(InputError, match=words):
            make_config(values, {})
