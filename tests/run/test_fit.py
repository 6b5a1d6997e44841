"""From data that lie apart to a model: the same as scikit-learn's on the pooled data, on every rank."""

import json

import numpy as np
import pandas as pd
import pytest

import adom
from adom.data.node_shards import write_shard
from adom.run import stages
from adom.run.ranks.rank_rounds import deal
from support import apart
from support.apart import NODES, SETTINGS
from support.ranks import needs_mpi, run

REQUEST = {"rounds": 100_000, "record_every": 50, "tol": apart.TOL}


def made(folder, tables, **settings):
    """Return the data of tables as CSV files, each made a shard in one folder."""
    for node, table in tables.items():
        table.to_csv(folder / f"{node}.csv", index=False)
        write_shard(folder / f"{node}.csv", node, folder / "shards", target="ill")
    return adom.NodeData(folder / "shards", **settings)


def table(rows=12, seed=0, labels=("no", "yes")):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"age": rng.standard_normal(rows), "dose": rng.standard_normal(rows) + 3})
    frame["ill"] = np.where(frame["age"] + 0.3 * rng.standard_normal(rows) > 0, *reversed(labels))
    return frame


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """The models that one process finds."""
    found = {}
    for name, settings in SETTINGS.items():
        folder = tmp_path_factory.mktemp(name)
        apart.write(name, [folder])
        data = adom.NodeData(folder / "shards", **settings)
        result = adom.solve(data, adom.networks.complete(4), "adom+", "unit", **REQUEST)
        assert result.status == "converged", result
        found[name] = adom.load(result.save(folder / "result.npz"))
    return found


@pytest.mark.parametrize("name", SETTINGS)
def test_the_model_is_that_of_the_pooled_data(models, name):
    result = models[name]
    model = result.model()
    apart.assert_is_the_pooled_one(model, name)
    assert result.provenance["problem"]["samples"]["alike"] == "samples"
    assert result.provenance["problem"]["model"]["nodes"] == list(NODES)
    own = "alpha" if name == "diabetes" else "C"
    assert model.penalty[own] == pytest.approx(SETTINGS[name][own])
    rounds = result.history["round"].to_numpy()
    assert (np.diff(rounds) > 0).all()
    assert (result.history["stage"].iloc[-1] == 1) == (name == "diabetes")
    if name != "words":
        X = apart.frame(name).drop(columns="target")
        assert model.score(X, apart.frame(name)["target"]) > (0.4 if name == "diabetes" else 0.95)
        assert model.to_sklearn().predict(X).tolist() == pytest.approx(model.predict(X).tolist())


@needs_mpi
def test_four_machines_with_a_shard_each(models, tmp_path):
    """One start of four ranks: every fit, then the refusals, then a file that was changed ends the job."""
    machines = [tmp_path / f"machine{rank}" for rank in range(4)]
    for name in SETTINGS:
        apart.write(name, [machine / name for machine in machines])
    for number, (machine, node) in enumerate(zip(machines, NODES, strict=True)):
        own = table(seed=number)
        odd = number == 2
        tables = {
            "columns": own.rename(columns={"dose": "amount"}) if odd else own,
            "order": own[["dose", "age", "ill"]] if odd else own,
            "one-class": own.assign(ill="no"),
            "twice": own,
            "text": own,
            "changed": own,
        }
        for name, content in tables.items():
            home = machine / name
            home.mkdir()
            made(home, {"east" if name == "twice" and odd else node: content})
    shard = machines[1] / "changed" / "shards" / NODES[1] / "target.npy"
    shard.write_bytes(shard.read_bytes()[:-8] + np.float64(7).tobytes())
    code, out = run(4, "apart", tmp_path)
    files = [[(machine / name / "model.json").read_text() for machine in machines] for name in SETTINGS]
    for name, texts in zip(SETTINGS, files, strict=True):
        assert len({json.dumps(json.loads(text)["coefficients"]) for text in texts}) == 1, name
        model = adom.load_model(machines[3] / name / "model.json")
        alone = models[name].model().coefficients  # as in one process, to the bit where a compiled kernel sums
        np.testing.assert_allclose(model.coefficients, alone, rtol=0, atol=0 if name in ("cancer", "words") else 1e-9)
        apart.assert_is_the_pooled_one(model, name)
    said = [json.loads((tmp_path / f"said{rank}.json").read_text()) for rank in range(4)]
    assert all(each == said[0] for each in said)  # all ranks refuse alike
    columns, order, one_class, twice, text = said[0]
    assert "node south has no column 'dose', which node east has" in columns
    assert "nodes east and south have the same columns in another order" in order
    assert "all samples of all nodes have the class 'no' in ill; a model needs two or more" in one_class
    assert "ranks 0 and 2 have different shards of the same name, east" in twice
    assert "a ridge model needs numbers, and ill holds text" in text
    assert code != 0
    assert f"{shard} was changed after `adom shard` made it" in out
    assert "rank 1 of 4" in out


def test_a_node_may_have_one_class_only(tmp_path):
    tables = {"a": table(30), "b": table(20, 1).assign(ill="yes"), "c": table(10, 2)}
    data = made(tmp_path, tables, C=0.1)
    model = adom.solve(data, adom.networks.complete(3), "adom+", "unit", **REQUEST).model()
    from sklearn.linear_model import LogisticRegression

    every = pd.concat(tables.values())
    pooled = LogisticRegression(C=0.1, tol=1e-13, solver="newton-cholesky").fit(every[["age", "dose"]], every["ill"])
    np.testing.assert_allclose(model.coefficients, pooled.coef_, atol=1e-6)
    np.testing.assert_allclose(model.intercept, pooled.intercept_, atol=1e-6)  # of features that were not scaled
    assert model.scales is None


def test_without_an_intercept_and_with_nodes_that_count_alike(tmp_path):
    tables = {"a": table(30), "b": table(7, 1)}
    data = made(tmp_path, tables, l2=0.3, count="nodes", intercept=False)
    model = adom.solve(data, adom.networks.path(2), "adom+", "unit", **REQUEST).model()
    pairs = [(each[["age", "dose"]].to_numpy(), each["ill"].to_numpy()) for each in tables.values()]
    expected = adom.LogisticRegression.from_nodes(pairs, l2=0.3).solution()
    np.testing.assert_allclose(model.coefficients[0], expected, atol=1e-6)
    assert model.intercept.tolist() == [0.0]
    assert model.penalty == {"l2": 0.3}
    shrunk = adom.NodeData(tmp_path / "shards", kappa=50.0)
    result = adom.solve(shrunk, adom.networks.path(2), "adom+", "unit", **REQUEST)
    assert result.model().penalty["C"] > 0


def test_intercepts_that_have_not_settled_are_no_convergence(tmp_path, monkeypatch):
    data = made(tmp_path, {"a": table(30), "b": table(20, 1)}, C=0.1)
    monkeypatch.setattr(stages, "STAGES", 2)
    result = adom.solve(data, adom.networks.path(2), "adom+", "unit", **REQUEST)
    assert result.history["stage"].unique().tolist() == [1, 2]
    assert (result.status, result.message) == ("stalled", "the intercepts had not settled after 2 stages")


def test_who_holds_which_node():
    four, two, one = ({name: name for name in names} for names in ("abcd", "ab", "c"))
    assert deal([four, four], 4) == [["a", "b"], ["c", "d"]]
    assert deal([one, two], 3) == [["c"], ["a", "b"]]
    assert deal([two, one, two], 3) == [["a"], ["c"], ["b"]]
    assert "see 3 shards, but there should be 4 nodes" in deal([one, two], 4)
    assert "3 ranks cannot share the shards a, b; start 2 or fewer there" in deal([two] * 3, 2)
    assert "both see the shard a, but not the same folder" in deal([two, {"a": "a"}], 2)


def test_wrong_requests_are_refused(tmp_path):
    made(tmp_path, {"a": table(), "b": table(5, 1)})
    folder = tmp_path / "shards"
    for settings, words in (
        ({"nodes": 1}, "nodes must be a whole number of at least 2"),
        ({"model": "lasso"}, "model must be one of logistic, ridge, poisson, .*, got 'lasso'"),
        ({"alpha": 1.0}, "alpha=1.0 has no effect on a logistic model; give C"),
        ({"C": 1.0, "l2": 1.0}, "give one of C, l2"),
        ({"C": 0.0}, "C must be a finite number above 0"),
        ({"C": 1.0, "count": "nodes"}, "nodes do; give l2"),
        ({"count": "nodes"}, "needs l2 or kappa"),
    ):
        with pytest.raises(adom.InputError, match=words):
            adom.NodeData(folder, **settings)
    with pytest.raises(adom.InputError, match="holds no shard; make one with `adom shard"):
        adom.NodeData(tmp_path / "elsewhere")
    with pytest.raises(adom.InputError, match="see 2 shards, but there should be 3 nodes"):
        adom.solve(adom.NodeData(folder, nodes=3), adom.networks.ring(3))
    with pytest.raises(adom.InputError, match="checkpoints are written by engine 'mpi' alone"):
        adom.solve(adom.NodeData(folder), adom.networks.path(2), checkpoints=adom.Checkpoints(tmp_path / "c"))
    two = adom.NodeData(folder)
    for network, method, words in (
        (adom.networks.directed_ring(2), "adom+", "ADOM\\+ needs links that go both ways"),
        (adom.networks.path(2), "push-pull", "with Push-Pull the nodes cannot agree on the end of a fit"),
        (adom.networks.lossy(adom.networks.path(2), one_way=0.1), "adom+", "needs perfect links"),
    ):
        with pytest.raises(adom.InputError, match=words):
            adom.solve(two, network, method)
