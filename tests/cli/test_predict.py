"""`adom predict`, `adom score` and `adom summary`: columns by name, every format, refusals of one line."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

from adom.data.model import Model, load_model


@pytest.fixture
def model(tmp_path):
    fitted = Model("logistic", [[1.0, -2.0]], [0.5], ("a", "b"), ("no", "yes"), target="ill")
    return fitted.save(tmp_path / "model.json")


def test_rows_of_a_csv_file_are_predicted_by_the_names_of_its_columns(adom, model, tmp_path):
    (tmp_path / "new.csv").write_text("name,b,a\nJo,1,3\nAl,1,0\n")
    outcome = adom("predict", model, "new.csv")
    p = 1 / (1 + np.exp(-1.5))
    assert outcome.out.splitlines()[0] == "prediction,p(no),p(yes)"
    assert [line.partition(",")[0] for line in outcome.out.splitlines()] == ["prediction", "yes", "no"]
    assert adom("predict", model, "new.csv", "--out", "p.csv").code == 0
    assert (tmp_path / "p.csv").read_text() == outcome.out
    found = adom("predict", model, "new.csv", "--json").json
    assert (found["rows"], [row[0] for row in found["predictions"]]) == (2, ["yes", "no"])
    assert found["predictions"][0][2] == pytest.approx(p)


def test_other_formats_and_a_model_of_numbers(adom, tmp_path):
    X = np.array([[1.0, 2.0], [3.0, 0.0], [0.0, 0.0]])
    y = np.array([5.0, 3.0, 1.0])
    Model("ridge", [[1.0, 2.0]], [0.5], ("x1", "x2")).save("model.json")
    np.savez("rows.npz", X=X, y=y)
    dump_svmlight_file(X, y, "rows.svm", zero_based=False)
    for file in ("rows.npz", "rows.svm"):
        assert adom("predict", "model.json", file).out == "prediction\n5.5\n3.5\n0.5\n"
        scored = adom("score", "model.json", file, "--target", "y", "--json").json
        assert scored == {"samples": 3, "measure": "R^2", "kind": "ridge", "score": pytest.approx(1 - 0.75 / 8)}


def test_scores_count_the_right_ones(adom, model):
    Path("held.csv").write_text("a;b;ill\n3;1;yes\n0;1;no\n0;1;yes\n9;0;yes\n")
    assert adom("score", model, "held.csv", "--json").json["score"] == 0.75
    assert "accuracy   0.75" in adom("score", model, "held.csv").out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,c,ill\n1,2,no\n", "has no column 'b'; it has a, c, ill"),
        ("c,d,ill\n1,2,no\n", "has no column 'a' and lacks 1 more: b"),
        ("a,b,ill\n1,inf,no\n", "line 2, column 2 (b): 'inf' is not a finite number"),
        ("a,b,ill\n", "has no rows"),
        ("1,2,3\n1,2,3\n", "begins with numbers, not names"),
    ],
)
def test_wrong_tables_are_refused_in_one_line(refused, model, text, words):
    Path("held.csv").write_text(text)
    assert words in refused("score", model, "held.csv")


def test_what_is_no_model_or_no_file_is_refused(refused, model, tmp_path):
    (tmp_path / "new.csv").write_text("a,b\n1,2\n")
    assert "is not a whole model file" in refused("predict", "new.csv", "new.csv")
    assert "cannot read none.csv: No such file" in refused("predict", model, "none.csv")
    assert "has no column 'ill'" in refused("score", model, "new.csv")


def test_a_run_on_a_file_leaves_a_model_that_predicts_it(adom, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((24, 2))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    rows = "\n".join(f"{a!r},{label},{b!r}" for (a, b), label in zip(X.tolist(), y, strict=True))
    (tmp_path / "all.csv").write_text(f"left,ill,right\n{rows}\n")
    words = ("--label", "ill", "--nodes", 4, "--network", "ring", "--kappa", 5, "--oracle", "exact", "--json")
    files = adom("solve", "--data", "all.csv", *words).json["files"]
    assert "right" in Path(files["model"]).read_text()
    scored = adom("score", files["model"], "all.csv", "--target", "ill", "--json").json
    assert (scored["samples"], scored["score"] > 0.8) == (24, True)


def test_from_files_that_lie_apart_to_predictions(adom, refused, tmp_path):
    rng = np.random.default_rng(0)
    for node, rows in (("north", 30), ("south", 12)):
        X = rng.standard_normal((rows, 2)) * [1, 50]
        lines = [f"{a!r},{b!r},{'ill' if a + b / 50 > 0 else 'well'}" for a, b in X.tolist()]
        (tmp_path / f"{node}.csv").write_text("\n".join(["age,dose,state", *lines]) + "\n")
        made = adom("shard", f"{node}.csv", "--node", node, "--out", "apart", "--json").json
        assert (made["samples"], made["features"], made["target"]) == (rows, ["age", "dose"], "state")
    assert "fingerprint" in adom("shard", "south.csv", "--node", "other", "--out", "elsewhere").out
    words = ("--shards", "apart", "--network", "path", "--method", "adom+", "--scale", "--C", 0.5)
    done = adom("solve", *words, "--json").json
    assert (done["status"], done["nodes"], done["penalty"]["C"]) == ("converged", 2, pytest.approx(0.5))
    again = adom("solve", "out/config.toml", "--json", "--out", "again").json
    assert Path(again["files"]["model"]).read_text().count("age") == Path(done["files"]["model"]).read_text().count(
        "age"
    )
    assert adom("score", done["files"]["model"], "south.csv", "--json").json["score"] > 0.9
    assert adom("predict", done["files"]["model"], "north.csv").out.startswith("prediction,p(ill),p(well)\n")
    assert "elsewhere holds one shard; say how many nodes there are" in refused("solve", "--shards", "elsewhere")
    assert "--scale is for shards that `adom shard` made" in refused("solve", "--scale")
    assert "--dim 3 has no effect on shards" in refused("solve", *words, "--dim", 3)
    assert "which `adom solve` alone takes" in refused("compare", "--shards", "apart", "--network", "path")


def test_a_fit_by_newton_without_a_penalty_and_its_errors(adom, refused, tmp_path):
    rng = np.random.default_rng(0)
    for node, rows in (("north", 30), ("south", 12)):
        ages = rng.normal(50, 10, rows)
        lines = [f"{age!r},{rng.poisson(np.exp(age / 50))}" for age in ages.tolist()]
        (tmp_path / f"{node}.csv").write_text("\n".join(["age,visits", *lines]) + "\n")
        adom("shard", f"{node}.csv", "--node", node, "--out", "apart")
    words = ("--shards", "apart", "--network", "path", "--model", "poisson")
    assert "ADOM needs a loss with a greatest curvature, got model='poisson'" in refused("solve", *words)
    done = adom("solve", *words, "--method", "newton", "--alpha", 0, "--json").json
    assert (done["status"], done["penalty"]) == ("converged", {"l2": 0.0})
    assert adom("solve", "out/config.toml", "--out", "again", "--json").json["rounds"] == done["rounds"] < 60
    model = load_model("out/model.json")
    found = adom("summary", "out/model.json", "--level", 0.9, "--json").json
    right = model.summary(level=0.9)
    for row, name in zip(found["coefficients"], ("age", "intercept"), strict=True):
        assert row == {"column": name, **right.loc[name].to_dict()}
    assert (found["samples"], found["nodes"], found["refused"]) == (42, 2, None)
    robust = adom("summary", "out/model.json", "--robust", "--json").json
    assert robust["coefficients"][0]["std_error"] == model.summary(robust=True)["std_error"]["age"]
    shown = adom("summary", "out/model.json").out
    assert "p_value" in shown
    assert f"{found['log_likelihood']:.7g}" in shown
    assert "level must be" in refused("summary", "out/model.json", "--level", 1.5)
    adom("solve", *words, "--method", "newton", "--out", "held")
    assert "a penalty moves the coefficients" in adom("summary", "held/model.json").out.replace("\n", " ")


def test_a_model_without_errors_says_why(adom, model):
    shown = adom("summary", model)
    assert shown.code == 0
    assert "no errors" in shown.out
    assert adom("summary", model, "--json").json["refused"].startswith("this fit computed no errors")
