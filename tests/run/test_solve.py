import json
import os
import signal
import sys
from dataclasses import replace

import numpy as np
import pytest

import adom
from adom.algorithms import Method
from adom.errors import InputError
from adom.run.constants import check_pair
from adom.run.progress import Progress
from adom.run.ranks.on_ranks import on_one_rank
from adom.run.request import Request
from support.reference import adom_run, adom_theory, agd_oracle, gd_oracle, logistic_data, logistic_gradient, quadratics

COLUMNS = ["iteration", "round", "gradients", "floats_sent", "seconds", "error", "consensus"]


@pytest.fixture(scope="module")
def logistic():
    A, b = logistic_data(12, 10, 4)
    return (
        adom.LogisticRegression(A.reshape(-1, 4), b.ravel(), nodes=12, kappa=40.0),
        logistic_gradient(A, b, None),
        A,
        b,
    )


@pytest.fixture(scope="module")
def network():
    return adom.networks.geometric(12, 0.4, graphs=17, seed=5)


@pytest.fixture(scope="module")
def quadratic():
    return adom.Quadratic(*quadratics(12, 3, 30.0))


@pytest.mark.parametrize("oracle", [("gd", 1), ("agd", 3)])
def test_follows_an_independent_dense_transcription_over_500_rounds(logistic, network, oracle):
    problem, _, A, b = logistic
    gradient = logistic_gradient(A, b, problem.l2)
    result = adom.solve(problem, network, parameters="theory", oracle=oracle, rounds=500)
    kind, steps = oracle
    dual = (
        gd_oracle(gradient, problem.L, steps, (12, 4))
        if kind == "gd"
        else agd_oracle(gradient, problem.mu, problem.L, steps, (12, 4))
    )
    matrices = [network.matrix(k) for k in range(network.period)]
    parameters = adom_theory(problem.mu, problem.L, network.lambda_min_plus, network.lambda_max)
    rows = [x for x, *_ in adom_run(dual, matrices, parameters, (12, 4), 500)]
    error = [((x - problem.solution()) ** 2).sum() for x in rows]
    consensus = [((x - x.mean(axis=0)) ** 2).sum() for x in rows]
    np.testing.assert_allclose(result.history["error"], error, rtol=1e-9)
    np.testing.assert_allclose(result.history["consensus"], consensus, rtol=1e-9)
    np.testing.assert_allclose(result.x, rows[-1], rtol=1e-9)


def test_books_are_kept(logistic, network):
    problem, *_ = logistic
    result = adom.solve(problem, network, "adom", "theory", ("gd", 2), rounds=40)
    history = result.history
    assert list(history.columns) == COLUMNS
    assert history["iteration"].tolist() == list(range(1, 41))
    assert history["round"].tolist() == list(range(1, 41))
    assert history["gradients"].tolist() == list(range(2, 81, 2))
    links = np.array([2 * network.graph(k).number_of_edges() for k in range(40)])
    np.testing.assert_array_equal(history["floats_sent"], np.cumsum(links * 2 * problem.dim))  # two vectors a round
    assert (np.diff(history["seconds"]) > 0).all()
    assert result.status == "max_rounds"


@pytest.mark.parametrize(("every", "expected"), [(1, 25), (7, 4), (25, 1), (100, 1)])
def test_records_every_so_often_and_always_the_last(quadratic, network, every, expected):
    every_round = adom.solve(quadratic, network, parameters="theory", oracle="exact", rounds=25).history
    history = adom.solve(quadratic, network, parameters="theory", oracle="exact", rounds=25, record_every=every).history
    assert len(history) == expected
    assert history["iteration"].iloc[-1] == 25
    chosen = every_round.set_index("iteration").loc[history["iteration"]]
    np.testing.assert_allclose(history["error"], chosen["error"], rtol=1e-12)


def test_stops_at_the_tolerance_with_the_rows_of_that_record(quadratic, network):
    whole = adom.solve(quadratic, network, parameters="unit", oracle="exact", rounds=3000)
    tol = 1e-10
    result = adom.solve(quadratic, network, parameters="unit", oracle="exact", rounds=3000, tol=tol)
    assert result.status == "converged"
    first = int((whole.history["error"] <= tol).idxmax())
    assert len(result.history) == first + 1
    assert result.history["error"].iloc[-1] <= tol < result.history["error"].iloc[-2]
    assert ((result.x - quadratic.solution()) ** 2).sum() == pytest.approx(result.history["error"].iloc[-1], rel=1e-9)


def test_a_tolerance_may_be_relative_to_the_error_at_zero(quadratic, network):
    start = quadratic.nodes * float((quadratic.solution() ** 2).sum())
    result = adom.solve(quadratic, network, rounds=5000, rtol=1e-6)
    assert result.status == "converged"
    assert result.provenance["tol"] == 1e-6 * start
    assert result.history["error"].iloc[-1] <= 1e-6 * start < result.history["error"].iloc[-2]
    with pytest.raises(
        adom.InputError, match=r"^rtol=0.1 needs a problem that knows its solution, got object; give tol$"
    ):
        adom.solve(object(), network, rtol=0.1)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_members_that_end_in_the_middle_of_a_chunk_keep_the_rows_of_their_last_record(quadratic, network, dtype):
    good = adom.ADOM.unit(adom.constants(quadratic, network))
    members = [good, replace(good, theta=50.0), good, good]
    options = {"oracle": "exact", "rounds": 1500, "dtype": dtype}
    results = adom.solve_many(quadratic, network, members, tol=[1e-1, 1e-9, 1e-3, 1e-9], **options)
    alone = [adom.solve(quadratic, network, good, tol=tol, **options) for tol in (1e-1, 1e-3)]
    assert [result.status for result in results[:3]] == ["converged", "diverged", "converged"]
    assert len({len(result.history) for result in results}) == 4
    for result in (*results, *alone):
        error = ((result.x.astype(float) - quadratic.solution()) ** 2).sum()
        apart = ((result.x.astype(float) - result.x.astype(float).mean(axis=0)) ** 2).sum()
        assert result.history["error"].iloc[-1] == pytest.approx(error, rel=1e-12)
        assert result.history["consensus"].iloc[-1] == pytest.approx(apart, rel=1e-9)


def test_divergence_is_detected_and_dated(quadratic, network):
    wild = replace(adom.ADOM.theory(adom.constants(quadratic, network)), theta=50.0)
    result = adom.solve(quadratic, network, wild, oracle="exact", rounds=5000)
    last = int(result.history["round"].iloc[-1])
    assert result.status == "diverged"
    assert last < 5000
    assert f"by round {last}" in result.message
    start = 12 * (quadratic.solution() ** 2).sum()
    assert result.history["error"].iloc[-1] > 1e12 * start
    assert result.history["error"].iloc[-2] <= 1e12 * max(start, result.history["error"].iloc[0])


def test_a_diverging_member_does_not_disturb_the_others(quadratic, network):
    good = adom.ADOM.theory(adom.constants(quadratic, network))
    wild = replace(good, theta=1e6)
    calm, lost = adom.solve_many(quadratic, network, [good, wild], oracle="exact", rounds=300)
    alone = adom.solve(quadratic, network, good, oracle="exact", rounds=300)
    assert (calm.status, lost.status) == ("max_rounds", "diverged")
    assert len(lost.history) < len(calm.history) == 300
    np.testing.assert_allclose(calm.history["error"], alone.history["error"], rtol=1e-9)


def press_ctrl_c(monkeypatch):
    """Press Ctrl-C when progress is shown for the first time."""
    update, pressed = Progress.update, []

    def press(self, done, error):
        update(self, done, error)
        if not pressed:
            pressed.append(done)
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Progress, "update", press)


def test_ctrl_c_returns_what_there_is(quadratic, network, monkeypatch):
    press_ctrl_c(monkeypatch)
    handler = signal.getsignal(signal.SIGINT)
    result = adom.solve(quadratic, network, "adom", "theory", "exact", rounds=10_000_000, record_every=1_000_000)
    assert result.status == "interrupted"
    assert len(result.history) == 1
    assert result.x.shape == (12, 3)
    assert ((result.x - quadratic.solution()) ** 2).sum() == pytest.approx(result.history["error"].iloc[-1], rel=1e-9)
    assert signal.getsignal(signal.SIGINT) is handler


def test_ctrl_c_ends_settings_that_run_one_after_the_other(logistic, network, monkeypatch):
    press_ctrl_c(monkeypatch)
    problem = logistic[0]
    base = adom.ADOM.theory(adom.constants(problem, network))
    results = adom.solve_many(problem, network, [base, base, base], rounds=10_000_000, record_every=1_000_000)
    assert [result.status for result in results] == ["interrupted"] * 3
    assert all(len(result.history) == 1 for result in results)


def test_progress_only_where_someone_watches(quadratic, network, capfd):
    adom.solve(quadratic, network, parameters="theory", oracle="exact", rounds=50)
    assert capfd.readouterr() == ("", "")
    adom.solve(quadratic, network, parameters="theory", oracle="exact", rounds=50, progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "ADOM" in err


def test_same_seed_same_result():
    results = []
    for _ in range(2):
        A, b = logistic_data(12, 10, 4)
        problem = adom.LogisticRegression(A.reshape(-1, 4), b.ravel(), nodes=12, kappa=40.0)
        network = adom.networks.geometric(12, 0.4, graphs=17, seed=5)
        results.append(adom.solve(problem, network, rounds=60))
    np.testing.assert_array_equal(results[0].x, results[1].x)
    np.testing.assert_array_equal(results[0].history["error"], results[1].history["error"])


def test_thousands_of_nodes_run_without_a_dense_matrix():
    nodes = 3000
    problem = adom.Quadratic(np.ones((nodes, 1, 1)), np.arange(nodes, dtype=float)[:, None] / nodes)
    network = adom.networks.erdos_renyi(nodes, 12 / nodes, graphs=3, seed=0)
    result = adom.solve(problem, network, parameters="unit", oracle="exact", rounds=150, record_every=50)
    assert result.history["error"].iloc[-1] < 1e-3 * result.history["error"].iloc[0]


def test_parameters_may_be_overridden(quadratic, network):
    constants = adom.constants(quadratic, network)
    theory = adom.ADOM.theory(constants)
    given = adom.solve(quadratic, network, parameters={"eta": 0.01}, oracle="exact", rounds=5)
    assert given.provenance["method"]["parameters"] == {**theory.parameters(), "eta": 0.01}
    unit = adom.solve(quadratic, network, parameters={"protocol": "unit"}, oracle="exact", rounds=5)
    assert unit.provenance["method"]["parameters"] == adom.ADOM.unit(constants).parameters()


def test_provenance_tells_how_it_was_made(quadratic, network):
    provenance = adom.solve(quadratic, network, oracle=("gd", 3), rounds=5).provenance
    json.dumps(provenance, allow_nan=False)
    assert provenance["method"]["name"] == "adom"
    assert provenance["protocol"] == "auto"
    assert provenance["oracle"] == "gd:3"
    assert provenance["network"]["seed"] == 5
    assert provenance["network"]["chi"] == network.chi
    assert provenance["problem"]["kappa"] == quadratic.kappa
    assert set(provenance["versions"]) >= {"adom", "python", "jax", "numpy"}
    assert provenance["start_error"] == pytest.approx(12 * (quadratic.solution() ** 2).sum())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rounds": -5}, "rounds must be a whole number of at least 1, got -5"),
        ({"rounds": 0}, "rounds must be a whole number"),
        ({"rounds": 10.0}, "rounds must be a whole number"),
        ({"record_every": 0}, "record_every must be a whole number"),
        ({"tol": 0.0}, "tol must be a positive number"),
        ({"tol": "small"}, "tol must be a positive number"),
        ({"rtol": 1.5}, "rtol must be a finite number above 0 and at most 1, got 1.5; e.g. rtol=1e-6"),
        ({"tol": 1e-6, "rtol": 1e-6}, "rtol=1e-06 and tol=1e-06 exclude each other; give one"),
        ({"engine": "cloud"}, "unknown engine 'cloud'; known: local"),
        ({"dtype": "int8"}, "dtype must be one of float64, float32"),
        ({"oracle": "newton"}, "unknown oracle 'newton'"),
        ({"method": "adon"}, "did you mean 'adom'"),
        ({"method": 3}, "method must be a name or a Method instance, got int"),
        ({"method": type("Mine", (Method,), {})}, "the method Mine is not a dataclass; write @dataclass"),
        ({"parameters": "best"}, "parameters must be one of theory, unit"),
        ({"parameters": {"gamma": 1.0}}, r"ADOM has no parameter 'gamma'; did you mean 'sigma'\? it has alpha, eta"),
        ({"parameters": {"eta": "big"}}, "eta must be a number, got 'big'; leave it out"),
        ({"parameters": {"tau": 1.3}}, r"tau must lie in \(0, 1\), got 1.3"),
    ],
)
def test_bad_requests_are_refused_in_one_line(quadratic, network, options, message):
    with pytest.raises(InputError, match=message) as caught:
        adom.solve(quadratic, network, **options)
    assert "\n" not in str(caught.value)


def test_problem_and_network_must_match(quadratic, network):
    with pytest.raises(InputError, match="the problem has 12 nodes and the network 5"):
        adom.solve(quadratic, adom.networks.ring(5))
    with pytest.raises(InputError, match="problem must be an adom problem"):
        adom.solve(np.eye(3), network)
    with pytest.raises(InputError, match="network must be an adom network"):
        adom.solve(quadratic, np.eye(12))
    with pytest.raises(InputError, match="instances of one method class"):
        adom.solve_many(quadratic, network, [])


@pytest.mark.parametrize("name", ["mudag", "apm"])
@pytest.mark.parametrize("every", [1, 4])
def test_no_step_is_begun_that_the_budget_does_not_cover(quadratic, network, name, every):
    result = adom.solve(quadratic, network, name, "theory", rounds=300, record_every=every)
    history = result.history
    method = adom.algorithms.method_class(name).theory(adom.constants(quadratic, network))
    taken = int(history["iteration"].iloc[-1])
    spent = np.cumsum([method.rounds_of_step(k) for k in range(taken + 1)])
    assert result.status == "max_rounds"
    assert spent[taken - 1] <= 300 < spent[taken]
    assert history["round"].tolist() == [int(spent[i - 1]) for i in history["iteration"]]
    whole = adom.solve(quadratic, network, name, "theory", rounds=300).history
    np.testing.assert_allclose(history["error"].iloc[-1], whole["error"].iloc[-1], rtol=1e-12)


def test_a_budget_below_one_step_is_refused(quadratic, network):
    with pytest.raises(InputError, match=r"rounds must be at least \d+, which one step of Mudag takes here, got 3"):
        adom.solve(quadratic, network, "mudag", rounds=3)


@pytest.mark.parametrize("method", ["diging", "adom+", "mudag"])
def test_averaging_does_not_depend_on_the_scale_of_gossip_matrices(method):
    """M = I - W / lambda_max is the same for W and 3 W, on the local engine and on ranks."""
    problem = adom.Quadratic(*quadratics(6, 2, 10.0))
    ring = np.asarray(adom.networks.ring(6).matrix(0))
    plain, scaled = (adom.networks.from_matrices([factor * ring]) for factor in (1.0, 3.0))
    made = adom.algorithms.method_class(method).unit(adom.constants(problem, plain))
    expected = adom.solve(problem, plain, made, rounds=60).history["error"]
    local = adom.solve(problem, scaled, made, rounds=60).history["error"]
    on_rank = on_one_rank(problem, scaled, made, "given", Request(rounds=60, engine="mpi")).history["error"]
    assert scaled.lambda_max == pytest.approx(3 * plain.lambda_max)
    np.testing.assert_allclose(local, expected, rtol=1e-9)
    np.testing.assert_allclose(on_rank, expected, rtol=1e-9)


def test_a_solve_checks_the_pair_once_and_makes_no_method_that_it_throws_away():
    watched = {check_pair.__code__: "check_pair", adom.ADOM.theory.__func__.__code__: "theory"}
    called = []

    def look(frame, event, _):
        if event == "call" and frame.f_code in watched:
            called.append(watched[frame.f_code])

    problem, network = adom.Quadratic([[[2.0]], [[4.0]]], [[2.0], [0.0]]), adom.networks.path(2)
    before = sys.getprofile()
    sys.setprofile(look)
    try:
        for parameters in ("auto", "theory"):
            adom.solve(problem, network, "adom", parameters, rounds=20)
    finally:
        sys.setprofile(before)
    assert called == ["check_pair", "check_pair", "theory"]
