"""What every method of the table must satisfy, whatever it computes."""

import ast
import inspect
import re
import sys
from dataclasses import replace
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

import adom
from adom.algorithms import COMPARED, METHODS, Constants, Method, method_class
from adom.errors import InputError
from support.reference import Gossip, Oracle, logistic_data, quadratics

NODES, DIM = 6, 3
CONSTANTS = Constants(mu=1.0, L=20.0, lambda_min_plus=0.2, lambda_max=1.0, nodes=NODES)
every_method = pytest.mark.parametrize("name", METHODS)


@pytest.fixture(scope="module")
def network():
    return adom.networks.geometric(NODES, 0.45, graphs=5, seed=3)


@pytest.fixture(scope="module")
def problem():
    return adom.Quadratic(*quadratics(NODES, DIM, 20.0))


def stirred(method, oracle, gossip, steps=3):
    """A state with nothing special about it."""
    state = method.init(np.zeros((NODES, DIM)), oracle)
    for _ in range(steps):
        state, _ = method.step(state, oracle, gossip)
    return state


def way(name):
    """The oracle that a method can be given."""
    return {"oracle": ("agd", 2)} if method_class(name).oracle == "dual" else {}


def arrays(tree):
    return [leaf for leaf in tree if isinstance(leaf, np.ndarray)]


def file_of(cls):
    return cls.__module__.rpartition(".")[2]


@every_method
def test_file_imports_only_the_standard_library_and_its_base(name):
    path = Path(sys.modules[method_class(name).__module__].__file__)
    here = [cls for cls in map(method_class, METHODS) if file_of(cls) == file_of(method_class(name))]
    bases = {file_of(base) for cls in here for base in cls.__mro__}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            assert all(alias.name.split(".")[0] in sys.stdlib_module_names for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            from_base = node.level == 1 and node.module in bases
            assert from_base or (node.level == 0 and node.module.split(".")[0] in sys.stdlib_module_names)


@every_method
def test_table_says_what_the_command_line_and_the_docs_need(name):
    cls = method_class(name)
    assert issubclass(cls, Method)
    assert cls.name == name
    assert cls.oracle in ("dual", "primal")
    assert cls.vectors_per_round >= 1
    assert cls.title
    assert cls.complexity
    assert "arXiv:" in cls.reference


@every_method
def test_lines_of_step_carry_the_numbers_of_their_formulas(name):
    comments = " ".join(re.findall("#.*", inspect.getsource(method_class(name).step)))
    if name in ("adom", "pngd"):  # the paper's lines, from where its loop begins
        assert re.findall(r"line (\d)", comments) == list({"adom": "45678", "pngd": "456"}[name])
    else:
        numbers = re.findall(r"\\qquad \((\d)\)", method_class(name).__doc__)
        assert numbers
        assert re.findall(r"\((\d)\)", comments) == numbers


@every_method
@pytest.mark.parametrize("protocol", ["theory", "unit"])
def test_step_is_pure(name, protocol, network):
    method = getattr(method_class(name), protocol)(CONSTANTS)
    matrices = [network.matrix(k) for k in range(network.period)]
    oracle = Oracle(*quadratics(NODES, DIM, 20.0))
    state = stirred(method, oracle, Gossip(matrices))
    for array in arrays(state):
        array.setflags(write=False)
    before = [array.copy() for array in arrays(state)]
    first, x = method.step(state, oracle, Gossip(matrices))
    second, y = method.step(state, oracle, Gossip(matrices))
    assert type(first) is type(state)
    np.testing.assert_array_equal(x, y)
    for a, b in zip(arrays(first), arrays(second), strict=True):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(arrays(state), before, strict=True):
        np.testing.assert_array_equal(a, b)


@every_method
def test_sends_as_many_vectors_as_the_table_says(name, network):
    sent = []

    class Counting(Gossip):
        def __call__(self, *vectors):
            sent.append(len(vectors))
            return super().__call__(*vectors)

        def project(self, v):
            sent.append(1)
            return super().project(v)

        def push(self, *vectors):
            sent.append(len(vectors))
            return super().push(*vectors)

        def push_pull(self, pulled, pushed):
            sent.append(2)
            return super().push_pull(pulled, pushed)

    method = method_class(name).theory(CONSTANTS)
    gossip = Counting([network.matrix(0)])
    stirred(method, Oracle(*quadratics(NODES, DIM, 20.0)), gossip)
    assert set(sent) == {method.vectors_per_round}
    if method.rounds_per_step is not None:
        assert gossip.clock == 3 * method.rounds_per_step


FEW_ROUNDS = {
    "mudag": {"K": 2.0},
    "apm": {"growth": 0.5},
    "adom+multi": {"T": 2.0},
    "acc-gt-multi": {"T": 2.0},
}  # so that a step does not reach the whole path


@pytest.mark.parametrize("name", [name for name in METHODS if name != "pngd"])  # which averages over all nodes
def test_a_round_reaches_neighbours_only(name):
    nodes = 12
    W = adom.networks.path(nodes).matrix(0)
    method = replace(method_class(name).theory(CONSTANTS), **FEW_ROUNDS.get(name, {}))
    H, c = quadratics(nodes, DIM, 20.0)
    state = method.init(np.zeros((nodes, DIM)), Oracle(H, c))
    for _ in range(3):
        state, _ = method.step(state, Oracle(H, c), Gossip([W]))
    node = 6
    for position, value in enumerate(state):
        if not isinstance(value, np.ndarray):
            continue
        moved = value.copy()
        moved[node] += 1.0
        parts = list(state)
        parts[position] = moved
        gossip = Gossip([W])
        after, x = method.step(type(state)(*parts), Oracle(H, c), gossip)
        plain, y = method.step(state, Oracle(H, c), Gossip([W]))
        changed = set(np.flatnonzero((x != y).any(axis=1)))
        for a, b in zip(arrays(after), arrays(plain), strict=True):
            changed |= set(np.flatnonzero((a != b).any(axis=1)))
        assert gossip.clock <= 2
        assert changed <= set(range(node - gossip.clock, node + gossip.clock + 1))
        assert node in changed


@every_method
def test_batched_settings_give_what_single_runs_give(name, problem, network):
    base = method_class(name).theory(adom.constants(problem, network))
    first = next(iter(base.parameters()))
    settings = [replace(base, **{first: getattr(base, first) * f}) for f in (0.5, 1.0, 1.5)]
    together = adom.solve_many(problem, network, settings, rounds=60, record_every=7, **way(name))
    for one, batched in zip(settings, together, strict=True):
        alone = adom.solve(problem, network, one, rounds=60, record_every=7, **way(name))
        for column in ("iteration", "round", "gradients", "floats_sent"):
            np.testing.assert_array_equal(alone.history[column], batched.history[column])
        np.testing.assert_allclose(batched.history["error"], alone.history["error"], rtol=1e-9)
        np.testing.assert_allclose(batched.x, alone.x, rtol=1e-9, atol=1e-12)


@pytest.fixture(scope="module")
def same_problem_in_three_ways():
    A, b = logistic_data(NODES, 5, DIM)
    flat, labels = A.reshape(-1, DIM), b.ravel()
    dense = adom.LogisticRegression(flat, labels, nodes=NODES, l2=0.2)
    sparse = adom.LogisticRegression(sp.csr_array(flat), labels, nodes=NODES, l2=0.2)

    def loss(x, node):
        features, signs = node
        return jnp.logaddexp(0.0, -signs * (features @ x)).mean() + 0.1 * (x * x).sum()

    return dense, sparse, adom.from_loss(loss, (A, b), mu=0.2, L=dense.L_nodes)


@pytest.mark.parametrize(
    ("name", "parameters"), [(name, "theory") for name in COMPARED] + [("adom", "auto"), ("diging", "auto")]
)
def test_methods_take_every_kind_of_problem(name, parameters, same_problem_in_three_ways, network):
    dense, *others = (
        adom.solve(problem, network, name, parameters, rounds=60, **way(name)) for problem in same_problem_in_three_ways
    )
    for other in others:
        np.testing.assert_allclose(other.history["error"], dense.history["error"], rtol=1e-9)
        np.testing.assert_array_equal(other.history["gradients"], dense.history["gradients"])


@every_method
def test_float32_is_kept_and_said(name, problem, network):
    shared = {"rounds": 60, "record_every": 7, **way(name)}  # the program of single runs above
    result = adom.solve(problem, network, name, "theory", dtype="float32", **shared)
    assert result.x.dtype == np.float32
    assert result.provenance["dtype"] == "float32"
    double = adom.solve(problem, network, name, "theory", **shared)
    np.testing.assert_allclose(result.x, double.x, rtol=2e-4, atol=1e-5)


@every_method
@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf")])
def test_each_bad_parameter_is_refused_by_name(name, bad):
    good = method_class(name).theory(CONSTANTS)
    for parameter in good.parameters():
        with pytest.raises(InputError, match=f"^{parameter} must .*got {bad!r}; .*theory") as caught:
            replace(good, **{parameter: bad})
        assert "\n" not in str(caught.value)


@every_method
def test_arrays_of_parameters_are_checked_throughout(name):
    good = method_class(name).theory(CONSTANTS)
    first = next(iter(good.parameters()))
    value = getattr(good, first)
    replace(good, **{first: np.array([value, value])})
    with pytest.raises(InputError, match=first):
        replace(good, **{first: np.array([value, -value])})


def test_unknown_name_suggests_the_nearest():
    with pytest.raises(InputError, match=r"unknown method 'adon'; did you mean 'adom'\?"):
        method_class("adon")


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ({"mu": 0.0}, "0 < mu <= L"),
        ({"mu": 2.0, "L": 1.0}, "0 < mu <= L"),
        ({"lambda_min_plus": 0.0}, "lambda_min_plus"),
        ({"lambda_min_plus": 2.0, "lambda_max": 1.0}, "lambda_min_plus"),
    ],
)
def test_impossible_constants_are_refused(values, rule):
    with pytest.raises(InputError, match=rule):
        Constants(**{"mu": 1.0, "L": 1.0, **values})
