"""What a report reads: files and folders of every command, told apart and put in order."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import adom
from adom.errors import InputError
from adom.page.reading import kind, read
from adom.problems.quadratic import Quadratic
from support.damage import overwrite


@pytest.fixture(scope="module")
def pair():
    rng = np.random.default_rng(0)
    diagonal = 1 + 4 * rng.random((5, 3))
    return Quadratic(np.stack([np.diag(row) for row in diagonal]), rng.standard_normal((5, 3))), adom.networks.ring(5)


def _drawn(seed):
    rng = np.random.default_rng(seed)
    return Quadratic(np.stack([np.diag(row) for row in 1 + 4 * rng.random((5, 3))]), rng.standard_normal((5, 3)))


@pytest.fixture(scope="module")
def folders(pair, tmp_path_factory):
    """One folder for each command."""
    home = tmp_path_factory.mktemp("report")
    adom.solve(*pair, "adom", rounds=30).save(home / "solve" / "result.npz")
    methods = ["adom", ("my <b>own</b>", "diging"), ("again", "adom")]
    adom.compare(*pair, methods, "unit", rounds=40).save(home / "compare")
    factors = {"a": [0.5, 1.0, 2.0]}
    adom.sweep(*pair, "diging", factors=factors, rounds=20, folder=home / "sweep" / "members").save(home / "sweep")
    drawn = adom.networks.geometric(5, 0.6, graphs=2, seed=0)
    two = {"a": [0.5, 1.0]}
    adom.sweep(pair[0], drawn, "diging", factors=two, seeds=[0, 1, 2], rounds=20).save(home / "seeds")
    methods = [("b", "diging"), "diging"]
    networks = {"ring": pair[1], "radio": drawn}
    compared = adom.compare(_drawn, None, methods, {"b": "unit"}, rounds=20, seeds=2, networks=networks)
    compared.save(home / "compared")
    (home / "reproduce").mkdir()
    (home / "reproduce" / "plan.json").touch()
    return home


def only(content):
    (figure,) = content.figures
    ((place,),) = figure.pages.values()
    return place


def test_what_an_input_is(folders, tmp_path):
    kinds = {"solve": "folder", "compare": "folder", "sweep": "sweep", "reproduce": "reproduction"}
    assert {name: kind(folders / name) for name in kinds} == kinds
    assert kind(folders / "solve" / "result.npz") == "file"
    with pytest.raises(InputError, match=r"there is no .*nowhere; give result files"):
        kind(tmp_path / "nowhere")
    with pytest.raises(InputError, match="has no results; give one that"):
        kind(tmp_path)
    with pytest.raises(InputError, match="nothing to report"):
        read([])


@pytest.mark.parametrize("closed", ["sweep/members", "compare"])
def test_a_folder_that_cannot_be_read_is_not_called_empty(folders, closed, monkeypatch):
    usual = Path.iterdir

    def iterdir(path):  # as of a folder of another user's
        if path == folders / closed:
            raise PermissionError(13, "Permission denied", str(path))
        return usual(path)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    with pytest.raises(
        InputError, match=f"cannot read the folder .*{closed}: permission denied; check its permissions"
    ):
        read([folders / closed.partition("/")[0]])


def test_a_comparison_has_the_labels_and_the_order_of_its_table(folders):
    content = read([folders / "compare"])
    assert [line.label for line in only(content).lines] == ["ADOM", "my <b>own</b>", "again"]
    assert [line.method for line in only(content).lines] == ["adom", "diging", "adom"]
    assert [run.cells["method"] for run in content.runs] == ["ADOM", "my <b>own</b>", "again"]
    assert content.title == "Runs of ADOM, my <b>own</b>, again"


def test_members_of_a_sweep_are_told_apart_by_what_was_varied(folders):
    labels = [line.label for line in only(read([folders / "sweep"])).lines]
    assert len(set(labels)) == 3
    assert all(label.startswith("DIGing, unit with a=") for label in labels)


def test_lines_of_a_sweep_are_in_the_order_of_its_settings(pair, tmp_path):
    factors = {"a": [2.0, 1.0, 0.5]}
    adom.sweep(*pair, ["diging", "dgd"], factors=factors, rounds=20, folder=tmp_path / "members").save(tmp_path)
    results = [line.runs[0] for line in only(read([tmp_path])).lines]
    swept = [run.provenance["sweep"] for run in results]
    assert [(at["label"], at["factors"]["a"]) for at in swept] == [
        *(("diging", factor) for factor in (0.5, 1.0, 2.0)),
        *(("dgd", factor) for factor in (0.5, 1.0, 2.0)),
    ]


def test_seeds_of_a_sweep_are_one_line_each(folders):
    assert kind(folders / "seeds") == "sweep"
    content = read([folders / "seeds"])
    lines = only(content).lines
    assert {line.label for line in lines} == {"DIGing, unit, a x 0.5", "DIGing, unit, a x 1"}
    for line in lines:
        assert {run.provenance["network"]["seed"] for run in line.runs} == {0, 1, 2}
        assert len({run.provenance["sweep"]["factors"]["a"] for run in line.runs}) == 1
    assert len(content.runs) == 6


def test_a_comparison_over_seeds_has_a_panel_for_each_network_and_its_own_order(folders, tmp_path):
    (figure,) = read([folders / "compared"]).figures
    (panels,) = figure.pages.values()
    assert [(place.title, place.row, place.column) for place in panels] == [
        ("_drawn on ring", 0, 0), ("_drawn on radio", 0, 1)
    ]  # fmt: skip
    for place in panels:
        assert [line.label for line in place.lines] == ["b", "DIGing"]
        assert [[run.provenance["compare"]["seed"] for run in line.runs] for line in place.lines] == [[0, 1], [0, 1]]
    shutil.copytree(folders / "compared", tmp_path / "tuned")
    path = next((tmp_path / "tuned" / "members").glob("*.npz"))
    searched = adom.load(path)
    place = {**searched.provenance["compare"], "search": True}
    replace(searched, provenance={**searched.provenance, "compare": place}).save(path)
    assert len(read([tmp_path / "tuned"]).runs) == 7  # what only tuned is not judged


def test_runs_of_one_label_are_one_line_under_its_newest_title(folders, tmp_path):
    for name, kind_of, seeds in (("compared", "compare", 2), ("seeds", "sweep", 3)):
        shutil.copytree(folders / name, tmp_path / name)
        files = [path for path in (tmp_path / name / "members").iterdir() if adom.load(path).label == "DIGing"]
        renamed = [path for path in files if adom.load(path).provenance[kind_of]["label"] == "diging"]
        run = adom.load(renamed[-1])
        provenance = {**run.provenance, "created": "2999-01-01T00:00:00Z"}
        provenance["method"] = {**provenance["method"], "title": "Better name"}
        replace(run, provenance=provenance).save(renamed[-1])
        content = read([tmp_path / name])
        lines = [line for panels in content.figures[0].pages.values() for place in panels for line in place.lines]
        assert {len(line.runs) for line in lines} == {seeds}
        assert "DIGing" not in " ".join(line.label for line in lines)
        assert any(line.label.startswith("Better name") for line in lines)
        assert "DIGing" not in {run.cells["method"] for run in content.runs}


def test_files_are_drawn_together_and_like_ones_numbered(folders, tmp_path):
    path = folders / "solve" / "result.npz"
    (tmp_path / "other.npz").write_bytes(path.read_bytes())
    place = only(read([path, tmp_path / "other.npz"], title="mine"))
    assert [line.label for line in place.lines] == ["ADOM #1", "ADOM #2"]
    assert "parameters auto" in place.about
    several = read([path, folders / "compare", folders / "sweep"])
    assert [one.title for one in several.figures] == ["Results", "Runs in compare", "Sweep in sweep"]
    assert {run.cells["source"] for run in several.runs} == {"results", "compare", "sweep"}


def test_folders_of_one_name_are_told_apart(folders, tmp_path):
    (tmp_path / "solve").mkdir()
    (tmp_path / "solve" / "a.npz").write_bytes((folders / "solve" / "result.npz").read_bytes())
    names = [one.name for one in read([folders / "solve", tmp_path / "solve"]).figures]
    assert len(set(names)) == 2
    assert all(name.endswith("/solve") for name in names)


def test_where_a_run_comes_from_is_said(folders):
    (run,) = read([folders / "solve"]).runs
    result = adom.load(folders / "solve" / "result.npz")
    assert run.details["file"] == "result.npz"
    assert run.details["created"] == result.provenance["created"]
    assert "jax" in run.details["environment"]
    assert f"alpha {result.provenance['method']['parameters']['alpha']:.5g}" in run.details["parameters"]
    assert run.cells["rounds"] == 30
    assert run.cells["relative error"] == pytest.approx(
        result.history["error"].iloc[-1] / result.provenance["start_error"]
    )


def test_a_run_without_monitoring_has_no_curve_and_says_so(folders, tmp_path):
    result = adom.load(folders / "solve" / "result.npz")
    bare = replace(result, history=result.history.drop(columns=["error", "consensus"]))
    bare.save(tmp_path / "bare.npz")
    content = read([tmp_path / "bare.npz"])
    assert only(content).lines == []
    assert "1 of 1 runs have no curve" in only(content).reason
    assert np.isnan(content.runs[0].cells["error"])


def test_a_long_sweep_shows_its_best_first(folders, tmp_path):
    result = adom.load(folders / "solve" / "result.npz")
    for number in range(30):
        history = result.history.assign(error=result.history["error"] * (30 - number))
        replace(result, history=history).save(tmp_path / f"{number:02}.npz")
    lines = only(read([tmp_path])).lines
    assert len(lines) == 30
    assert [line.shown for line in lines] == [True] * 11 + [False] * 19
    ends = [line.runs[0].history["error"].iloc[-1] for line in lines]
    assert ends == sorted(ends)


def test_a_file_that_is_cut_short_is_refused(folders, tmp_path):
    path = Path(tmp_path / "cut.npz")
    path.write_bytes((folders / "solve" / "result.npz").read_bytes()[:-50])
    with pytest.raises(InputError, match="not a whole result file"):
        read([path])


def test_a_damaged_file_in_a_folder_is_named_and_the_others_are_read(folders, tmp_path):
    for name in ("compare", "sweep"):
        folder = tmp_path / name
        shutil.copytree(folders / name, folder)
        first, *rest = sorted(folder.rglob("*.npz"))
        overwrite(first, first.read_bytes()[:-90])
        said = []
        assert len(read([folder], progress=False, say=said.append).runs) == len(rest)
        assert [line.partition(" is not")[0] for line in said] == [f"left out: {first}"]
        with pytest.raises(InputError, match=f"{first.name} is not a whole result file"):
            read([first], progress=False)
        for path in rest:
            overwrite(path, b"")
        with pytest.raises(InputError, match="is not a whole result file"):
            read([folder], progress=False)
