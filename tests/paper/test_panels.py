"""The paper's panels as data: all of them, where they belong, and the jobs on them."""

import re
from collections import Counter
from itertools import product

import pytest

from adom.algorithms import COMPARED
from adom.errors import InputError
from adom.paper.panels import CHIS, DIMS, FIGURES, FULL, KAPPAS, QUICK, SETS, panels
from adom.paper.plan import OTHERS, SCALES, make_jobs, read_names, rounds_of, searched_for
from adom.paper.runs import PROTOCOLS, TUNE, VERIFY, ReproductionPlan, load_outcomes, load_plan

PAPER = {"slow2": (2, 4), "kappa": (4, 4), "chi": (4, 4), "real_kappa": (3, 4), "real_chi": (3, 4)}
PAPER |= {"real_networks": (2, 3)}


@pytest.fixture(scope="module")
def full():
    return make_jobs(list(FIGURES), SCALES["full"])


@pytest.mark.parametrize("size", ["full", "quick"])
@pytest.mark.parametrize("name", PAPER)
def test_each_figure_fills_its_grid(name, size):
    found = panels([name], SCALES[size].size)
    rows, columns = PAPER[name]
    assert sorted((one.row, one.column) for one in found) == list(product(range(rows), range(columns)))
    assert len({one.name for one in found}) == rows * columns


def test_the_settings_are_the_papers():
    assert [(p.settings["kappa"], p.settings["dim"]) for p in panels(["kappa"])] == list(product(KAPPAS, DIMS))
    assert [(p.settings["chi"], p.settings["dim"]) for p in panels(["chi"])] == list(product(CHIS, DIMS))
    assert {(p.settings["nodes"], p.settings["samples"], p.settings["graphs"]) for p in panels(["kappa", "chi"])} == {
        (100, 100, 1000)
    }
    assert [(p.settings["data"], p.settings["chi"]) for p in panels(["real_chi"])] == list(product(SETS, CHIS))
    slow = panels(["slow2"])
    assert [p.settings["every"] for p in slow] == [50, 20, 10, 5] * 2
    assert {p.settings["kappa"] for p in slow} == {30.0}
    assert round(slow[-1].settings["chi"], -1) == 1010
    assert {p.settings["network"] for p in panels(["real_networks"])} == {"infectious"}


def test_the_miniature_has_the_same_panels_at_the_same_places():
    for name in FIGURES:
        if name != "theory":
            ours, theirs = ([(p.figure, p.row, p.column) for p in panels([name], size)] for size in (QUICK, FULL))
            assert ours == theirs


@pytest.mark.parametrize("size", [FULL, QUICK])
def test_a_panel_is_named_by_what_is_run(size):
    for one in panels(list(FIGURES), size):
        numbers = dict(re.findall(r"(?:^|-)(d|kappa|chi|every)([0-9.]+)", one.name))
        assert numbers or one.name == "small"
        for name, text in numbers.items():
            assert one.settings[{"d": "dim"}.get(name, name)] == float(text), one.name
        assert f"d = {one.settings.get('dim')}" in one.title or "d = " not in one.title


def test_at_full_size_the_names_are_the_papers():
    assert [p.name for p in panels(["kappa"])] == [f"d{d}-kappa{k:g}" for k, d in product(KAPPAS, DIMS)]
    assert [p.name for p in panels(["chi"])] == [f"d{d}-chi{c:g}" for c, d in product(CHIS, DIMS)]
    assert [p.name for p in panels(["real_chi"])] == [f"{s}-chi{c:g}" for s, c in product(SETS, CHIS)]


def test_methods_are_ranked_over_three_seeds_that_were_not_tuned_on(full):
    runs = [job for job in full if not job.variant]
    for figure in PAPER:
        for protocol in PROTOCOLS:
            seeds = Counter(j.seed for j in runs if (j.panel.figure, j.protocol) == (figure, protocol))
            assert set(seeds) == ({1} if protocol == "auto" else {1, 2, 3})
            assert len(set(seeds.values())) == 1
    assert {job.seed for job in full if job.variant == TUNE} == {0}


def test_every_tuned_run_has_a_search_of_its_method_with_as_many_candidates(full):
    searches = {job.key: job for job in full if job.variant == TUNE}
    assert {job.candidates for job in searches.values()} == {24}
    for job in full:
        if job.protocol == "tuned" and not job.variant:
            search = searches[job.tuning]
            assert (search.method, search.oracle, search.panel.row) == (job.method, job.oracle, job.panel.row)
            assert search.panel.settings["kappa"] == job.panel.settings["kappa"]


def test_a_search_serves_the_row_where_only_the_dimension_differs():
    scale = SCALES["full"]
    for one in panels(["chi", "real_chi"]):
        shared = searched_for(one, scale)
        ours, theirs = ({**panel.settings, "dim": 0, "samples": 0} for panel in (one, shared))
        assert ours == theirs
        assert shared.settings["samples"] == (100 if one.figure == "chi" else 50)


def test_keys_tell_all_jobs_apart_and_survive_the_plan(full, tmp_path):
    assert len({job.key for job in full}) == len(full)
    plan = ReproductionPlan(False, full, list(FIGURES), ((16, 2.0),), {"a6a": "gone"}, "abc")
    plan.save(tmp_path)
    again = load_plan(tmp_path)
    assert [job.key for job in again.jobs] == [job.key for job in full]
    assert (again.stages, again.refused, again.commit) == ([(16, 2.0)], {"a6a": "gone"}, "abc")
    reasons = Counter(one.reason for one in load_outcomes(tmp_path))
    assert reasons["gone"] == sum(job.panel.settings["data"] == "a6a" for job in full)
    assert set(reasons) == {"gone", "not run yet"}


def test_quick_and_full_share_no_key(full):
    quick = {job.key for job in make_jobs(list(FIGURES), SCALES["quick"]) if job.panel.figure in PAPER}
    assert not quick & {job.key for job in full}


def test_budgets_grow_with_chi_and_kappa_and_are_whole_records(full):
    scale = SCALES["full"]
    for protocol in PROTOCOLS:
        first, last = panels(["kappa"])[0], panels(["kappa"])[-1]
        assert rounds_of(first, protocol, scale) < rounds_of(last, protocol, scale)
    assert all(job.rounds % job.records == 0 for job in full if not job.leaves_data)


def test_claims_have_the_runs_that_they_need(full):
    assert {job.variant for job in full} == {"", "exact", "auto", "split-label", OTHERS, TUNE, VERIFY}
    exact = {job.panel.figure for job in full if job.variant == "exact"}
    assert exact == {"slow2", "kappa", "chi"}
    rates = {job.method for job in full if job.panel.figure == "rates"}
    assert rates == {"adom", "mudag", "acc-dngd", "apm", "diging", "panda"}
    assert {job.method for job in full if job.panel.figure == "complete"} == {"adom", "pngd"}


def test_nothing_is_given_under_auto_and_every_method_runs_in_the_first_panel_of_each_row(full):
    found = [job for job in full if job.protocol == "auto"]
    assert {job.oracle for job in found} == {"auto", ""}
    for row in {(job.panel.figure, job.panel.row) for job in full if job.panel.figure in PAPER}:
        first = [job for job in found if (job.panel.figure, job.panel.row, job.panel.column) == (*row, 0)]
        assert {job.method for job in first} == {*COMPARED} - {"pngd", "push-pull"}


def test_names_are_put_in_order_and_wrong_ones_refused():
    assert read_names(["chi", "kappa/d40-kappa10"]) == ["kappa/d40-kappa10", "chi"]
    assert read_names(None) == list(FIGURES)
    with pytest.raises(InputError, match=r"no figure is called 'kapa'; did you mean 'kappa'\? known: network, slow2"):
        read_names(["kapa"])
    with pytest.raises(InputError, match=r"figure chi has no panel 'd7'; .*it has d40-chi9"):
        read_names(["chi/d7"])
    assert read_names(["chi/d25-chi120"], QUICK) == ["chi/d25-chi120"]
    with pytest.raises(InputError, match=r"figure chi has no panel 'd100-chi521'; .*it has d10-chi9"):
        read_names(["chi/d100-chi521"], QUICK)


def test_a_damaged_plan_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot read"):
        load_plan(tmp_path)
    (tmp_path / "plan.json").write_text('{"format": "adom-reproduction-1", "panels": 3}')
    with pytest.raises(InputError, match="not a plan of a reproduction"):
        load_plan(tmp_path)
