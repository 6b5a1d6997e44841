"""Runs on networks with messages that are late, coarse, partial or noisy."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import adom
from adom.algorithms import METHODS, method_class
from adom.networks import delayed, failing, geometric, lossy, noisy, quantised, ring, sparsified
from adom.run.auto.pilots import pilot_for
from adom.run.constants import make_method
from adom.run.links import as_run
from adom.util.programs import double_precision

NODES, DIM = 12, 3


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    bases = np.linalg.qr(rng.standard_normal((NODES, DIM, DIM)))[0]
    H = bases @ (np.array([1.0, 3.0, 10.0])[:, None] * bases.transpose(0, 2, 1))
    return adom.Quadratic(H, rng.standard_normal((NODES, DIM)))


@pytest.fixture(scope="module")
def network():
    return geometric(NODES, 0.7, graphs=20, seed=1)


def relative(result):
    return result.history["error"].to_numpy() / result.provenance["start_error"]


def solved(problem, network, method="adom", rounds=600, **more):
    return adom.solve(problem, network, method, "unit", rounds=rounds, record_every=20, **more)


def coded(network, rows, clocks=5):
    """Return rows after the coders of a network, as messages of both ends of some links, in one round or several."""
    code = np.arange(rows.shape[0] * rows.shape[1], dtype=np.uint64).reshape(rows.shape[:2])
    with double_precision():
        made = jax.jit(lambda clock: network.channel.coded(jnp.asarray(rows), clock, jnp.asarray(code)))
        return np.asarray(jax.vmap(made)(jnp.asarray(clocks)) if np.ndim(clocks) else made(jnp.int64(clocks)))


def test_numbers_of_a_few_bits():
    rows = np.random.default_rng(0).standard_normal((2, 5, 1, 7))
    scale = abs(rows).max(axis=-1, keepdims=True)
    nearest = coded(quantised(ring(4), 4, dither=False), rows)
    np.testing.assert_allclose(nearest, np.round(rows / scale * 7) * scale / 7, rtol=1e-12)
    many = coded(quantised(ring(4), 3), rows, np.arange(800))
    grid = many / (scale / 3)
    np.testing.assert_allclose(grid, grid.round(), atol=1e-9)
    assert abs(grid).max() <= 3 + 1e-9
    assert (abs(many.mean(axis=0) - rows) < 4.5 * scale / 3 * 0.5 / np.sqrt(800)).all()  # unbiased: 4.5 deviations
    assert (many[0] != many[1]).any()
    assert not coded(quantised(ring(4), 2), np.zeros((2, 1, 1, 3))).any()


@pytest.mark.parametrize("columns", [10, 200])  # compared one by one, and sorted
def test_the_largest_numbers_and_numbers_that_both_ends_draw(columns):
    rows = np.random.default_rng(1).standard_normal((2, 6, 2, columns))
    largest = coded(sparsified(ring(4), 0.3), rows)
    count = round(0.3 * columns)
    kept = np.sort(abs(rows), axis=-1)[..., -count:]
    np.testing.assert_array_equal(np.sort(abs(largest), axis=-1)[..., -count:], kept)
    assert ((largest != 0).sum(axis=-1) == count).all()
    drawn = coded(sparsified(ring(4), 0.3, "random"), rows)
    assert ((drawn != 0).sum(axis=-1) == count).all()
    assert ((drawn[0] != 0) == (drawn[1] != 0)).all()  # the same places at both ends
    assert ((drawn[0, 0] != 0) != (drawn[0, 1] != 0)).any()  # other places on another link


def test_floats_are_counted_as_bits_of_whole_messages(problem, network):
    sizes = {  # of two rows of three numbers
        quantised(network, 8): -(-2 * (3 * 8 + 64) // 64),
        sparsified(network, 0.3): -(-2 * (64 + 2) // 64),  # the place of one of three takes two bits
        sparsified(network, 0.3, "random"): 2,
        quantised(sparsified(network, 0.6), 4): -(-2 * (2 * (4 + 2) + 64) // 64),
        sparsified(network, 1.0): 2 * 3,  # nothing is left out, and no place is sent
        sparsified(network, 1e-6, "random"): 2,  # one number of each row at least
        sparsified(sparsified(network, 0.3), 0.6): -(-2 * (64 + 2) // 64),  # places are sent once
        sparsified(sparsified(network, 0.3, "random"), 0.6, "random"): 2,
        quantised(quantised(network, 8), 20): -(-2 * (3 * 20 + 64) // 64),  # one scale: what is sent is sent once
    }
    with double_precision():
        for imperfect, size in sizes.items():
            assert imperfect.channel.floats(2, 3, 64) == size
    links = np.array([2 * len(network.edges(g)) for g in network.order])[np.arange(40) % network.period].sum()
    for dtype, bits in (("float64", 64), ("float32", 32)):
        result = solved(problem, quantised(network, 8), rounds=40, dtype=dtype)
        assert result.history["floats_sent"].iloc[-1] == links * -(-2 * (3 * 8 + bits) // bits)
    for imperfect in (delayed(network, 2), noisy(network, 0.1)):
        assert solved(problem, imperfect, rounds=40).history["floats_sent"].iloc[-1] == links * 6


@pytest.mark.parametrize("method", ["adom", "acc-gt", "mudag"])
def test_feedback_goes_on_where_coarse_messages_stall(problem, network, method):
    rounds = {"adom": 600, "acc-gt": 1000, "mudag": 1500}[method]
    errors = relative(solved(problem, quantised(network, 6), method, rounds))
    assert errors.min() < 1e-16
    stalled = relative(solved(problem, quantised(network, 6, feedback=False), method, rounds))
    assert stalled.min() > 1e-9


def test_partial_messages(problem, network):
    for choice in ("largest", "random"):
        assert relative(solved(problem, sparsified(network, 0.6, choice), rounds=1200)).min() < 1e-14, choice
    # Both ends leave out the same numbers: each of them is gossiped on fewer links, and nothing else changes.
    assert relative(solved(problem, sparsified(network, 0.6, "random", feedback=False)))[-1] < 1e-14
    assert relative(solved(problem, sparsified(network, 0.6, feedback=False))).min() > 1e-4


def test_late_messages_are_those_of_a_transcription(problem, network):
    """DIGing by hand, with W(k - 2) v(k - 2) in the place of W(k) v(k)."""
    late = delayed(network, 2)
    result = adom.solve(problem, late, method_class("diging")(a=0.01), rounds=30)
    H, c = np.asarray(problem.H), np.asarray(problem.c)

    def gradient(x):
        return np.einsum("nij,nj->ni", H, x) - c

    x = np.zeros((NODES, DIM))
    s = g = gradient(x)
    sent = []
    for k in range(30):
        sent.append((network.matrix(k) @ x, network.matrix(k) @ s))
        W_x, W_s = sent[k - 2] if k >= 2 else (0 * x, 0 * s)
        x = x - W_x / late.lambda_max - 0.01 * s
        s = s - W_s / late.lambda_max + gradient(x) - g
        g = gradient(x)
    np.testing.assert_allclose(result.x, x, rtol=1e-10)


@pytest.mark.parametrize("varying", [False, True])
def test_delay_is_survived_and_conserves_in_the_end(problem, network, varying):
    for method, late, rounds in (("adom", 3, 2500), ("acc-gt", 1, 4000)):
        assert relative(solved(problem, delayed(network, late, varying), method, rounds)).min() < 1e-14


def test_noise_is_of_the_size_that_was_asked_for(problem, network):
    """One round of averaging: the rows are off by the noise of neighbours, with the weights of W."""
    method = method_class("diging")(a=1e-3)
    quiet, loud = (
        [adom.solve(problem, n, method, rounds=1).x for n in networks]
        for networks in ([network], [noisy(network, 0.01, seed) for seed in range(60)])
    )
    off = (np.array(loud) - quiet[0]).reshape(60, NODES, DIM)
    W = network.matrix(0) / network.lambda_max
    spread = 0.01 * np.sqrt((W**2).sum(axis=1) - np.diag(W) ** 2)
    np.testing.assert_allclose(off.std(axis=(0, 2)) / spread, np.ones(NODES), atol=0.25)
    small, large = (relative(solved(problem, noisy(network, std), rounds=400))[-5:].mean() for std in (1e-3, 1e-2))
    assert 10 < large / small < 1000  # about the square


def test_the_same_seed_gives_the_same_run_also_in_a_batch(problem, network):
    imperfect = quantised(sparsified(network, 0.6, "random", seed=1), 5, seed=2)
    one, same, other = (
        solved(problem, n, rounds=60).x
        for n in (imperfect, imperfect, quantised(sparsified(network, 0.6, "random", seed=1), 5, seed=3))
    )
    assert (one == same).all()
    assert (one != other).any()
    for net in (imperfect, noisy(delayed(network, 2, varying=True), 1e-3)):
        method = method_class("adom").unit(adom.constants(problem, net))
        settings = [method, replace(method, eta=method.eta / 2)]
        batch = adom.solve_many(problem, net, settings, rounds=60, record_every=60)
        for setting, member in zip(settings, batch, strict=True):
            alone = adom.solve(problem, net, setting, rounds=60, record_every=60)
            np.testing.assert_allclose(member.x, alone.x, rtol=1e-9, atol=1e-12)
            assert (member.history["floats_sent"] == alone.history["floats_sent"]).all()


def test_together_with_loss(problem, network):
    """Coarse rows may get lost, and ledgers heal them; the floor is that of coarse rows."""
    coarse = quantised(network, 12, feedback=False)
    healed = relative(solved(problem, lossy(coarse, 0.2)))[-1]
    printed = relative(solved(problem, lossy(coarse, 0.2, healing=False)))[-1]
    assert healed < 1e-5
    assert printed > 1e-3


def test_what_imperfect_links_cannot_carry(problem, network):
    for method, message in (
        ("mudag", "averages several times a step"),
        ("pngd", "uses full averaging, which cannot run on imperfect links"),
    ):
        with pytest.raises(adom.InputError, match=message):
            solved(problem, delayed(network, 2), method)
    with pytest.raises(adom.InputError, match=r"needs links that deliver messages unchanged and without delay"):
        adom.solve(problem, quantised(network), "adom", "auto", rounds=10)
    with pytest.raises(adom.InputError, match=r"got a quantised network; verify on the network it was made from"):
        adom.verify(problem, quantised(network), rounds=10)


@pytest.mark.parametrize("method", ["nids", "extra", "exact-diffusion"])
def test_second_order_consensus_does_not_bear_two_rounds_of_delay(problem, network, method, monkeypatch):
    fixed = geometric(NODES, 0.7, seed=1)
    for late in (delayed(fixed, 1), delayed(fixed, 2, varying=True)):
        assert relative(solved(problem, late, method, 3000))[-1] < 1e-9
    for late, rounds in ((delayed(fixed, 2), 2), (delayed(fixed, 5, varying=True), 2.5)):
        with pytest.raises(adom.InputError, match=f"unstable with any step size .* got {rounds:g}; take e.g. ADOM"):
            solved(problem, late, method)
    monkeypatch.setattr(method_class(method), "latest", 9)
    assert solved(problem, delayed(fixed, 2), method, 3000).status == "diverged"  # so it is refused with reason


def test_copies_follow_coarse_messages_of_many_numbers():
    """With the slope of finer messages they run away, and ADOM with them."""
    H = np.stack([np.eye(300) * h for h in np.geomspace(1, 10, NODES)])
    problem = adom.Quadratic(H, np.random.default_rng(0).standard_normal((NODES, 300)))
    coarse = quantised(geometric(NODES, 0.7, graphs=20, seed=1), 2)
    result = adom.solve(problem, coarse, "adom", "theory", rounds=700, record_every=100)
    assert relative(result)[-1] < 1e-3


def test_wrappers_that_change_nothing_return_the_network(network):
    assert delayed(network, 0) is network
    assert noisy(network, 0.0) is network


WRAPPED = {
    "lossy": lambda network: lossy(network, 0.1),
    "late": lambda network: delayed(network, 1),
    "later": lambda network: delayed(network, 2),
    "coarse": quantised,
    "noisy": lambda network: noisy(network, 1e-3),
    "late windows": lambda network: delayed(failing(network, 0.9, graphs=40), 1),
}


def refusal(problem, network, name, parameters):
    """Return why a run would be refused; "" if it would not be."""
    try:
        method = make_method(problem, network, name, parameters)
        if parameters != "auto" or pilot_for(problem, network, type(method)) is None:
            as_run(method, network, DIM)
    except adom.InputError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("links", WRAPPED)
@pytest.mark.parametrize("parameters", ["auto", "unit"])
def test_no_refusal_has_a_remedy_that_is_refused_too(problem, network, parameters, links):
    imperfect, refused = WRAPPED[links](network), []
    for name in METHODS:
        message = refusal(problem, imperfect, name, parameters)
        remedies = [(name, word) for word in ("theory", "unit") if f"'{word}'" in message]
        remedies += [("nids", parameters)] * ("e.g. NIDS" in message)
        if "e.g. ADOM with parameters='theory'" in message:
            remedies = [("adom", "theory")]
        if message:
            refused.append(name)
            assert remedies or "take the network without delay, or use repair=True" in message, name
        for method, given in remedies:
            assert refusal(problem, imperfect, method, given) == "", (name, method, given)
    assert {"msda", "opapc", "pngd", "push-pull", "push-diging"} <= set(refused)
    assert ("nids" in refused) == (links in ("late windows", "later"))


def test_no_proof_speaks_of_imperfect_links(problem, network):
    fixed = geometric(NODES, 0.7, seed=1)
    whole = "links that carry every message, whole and at once"
    for imperfect in (
        delayed(fixed, 1),
        quantised(fixed),
        sparsified(fixed, 0.5),
        noisy(fixed, 0.1),
        lossy(fixed, 0.1),
    ):
        for method in ("adom", "nids"):
            assert solved(problem, imperfect, method, 2).outside == f"proved for {whole}"
    assert solved(problem, delayed(network, 1), "nids", 2).outside == (
        f"proved for networks that do not change, and for {whole}"
    )
    assert solved(problem, lossy(fixed, leaving={2: 1}), "adom", 2).outside == "proved for nodes that stay"
    assert solved(problem, lossy(fixed), "adom", 2).outside == ""
