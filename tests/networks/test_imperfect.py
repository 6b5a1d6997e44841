"""Networks with messages that are late, coarse, partial or noisy: what they say of themselves, and what is refused."""

import json
from html import unescape

import numpy as np
import pytest

import adom
from adom.errors import InputTypeError
from adom.networks import bounded, delayed, directed_ring, lossy, noisy, quantised, ring, sparsified
from adom.networks.recipes import rebuild


def test_delay_and_what_is_left_out_count_in_the_spectrum():
    whole = ring(6)
    for rounds, gain in ((0, 2.0), (1, 1.0), (2, 0.618), (5, 0.2846)):
        late = delayed(whole, rounds)
        # x(k + 1) = x(k) - a x(k - rounds) stops shrinking at `gain`; half of it is what averaging takes at most.
        assert whole.lambda_max / late.lambda_max == pytest.approx(gain / 2, rel=1e-3)
        companion = np.eye(rounds + 1, k=-1)
        companion[0, 0] += 1
        companion[0, -1] -= gain
        assert abs(np.linalg.eigvals(companion)).max() == pytest.approx(1, abs=1e-3)
        assert late.lambda_min_plus == pytest.approx(whole.lambda_min_plus)
    partial = sparsified(whole, 0.25, "random", feedback=False)
    assert partial.chi == pytest.approx(4 * whole.chi)
    assert partial.lambda_max == whole.lambda_max
    assert quantised(whole, 4).chi == noisy(whole, 1.0).chi == whole.chi
    assert lossy(quantised(whole, 4, feedback=False), 0.5).chi == pytest.approx(2 * whole.chi)


def test_recipes_make_the_same_network_again():
    network = delayed(quantised(sparsified(ring(6), 0.5, "random", seed=1), 5, False, seed=2), 3, True, seed=3)
    recipe = json.loads(json.dumps(network.recipe))
    again = rebuild(recipe, 7)
    alike = delayed(quantised(sparsified(ring(6), 0.5, "random", seed=7), 5, False, seed=7), 3, True, seed=7)
    assert again.channel == alike.channel != network.channel
    assert again.recipe == alike.recipe


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: delayed(ring(5), -1), "rounds must be a whole number of at least 0"),
        (lambda: quantised(ring(5), 1), "bits must be a whole number of at least 2"),
        (lambda: sparsified(ring(5), 0.0), "keep must be a finite number above 0"),
        (lambda: sparsified(ring(5), 0.5, "best"), "choice must be one of largest, random"),
        (lambda: noisy(ring(5), -1.0), "std must be a finite number at least 0"),
        (lambda: noisy(ring(5), 1e200), r"at most 1e\+150, got 1e\+200; the squares of larger numbers overflow"),
        (lambda: delayed(delayed(ring(5), 1), 1), "1 rounds late already"),
        (lambda: noisy(noisy(ring(5), 1.0), 1.0), "noise of 1 already"),
        (
            lambda: quantised(sparsified(ring(5), 0.5), feedback=False),
            "conflicts with feedback=True of the inner network",
        ),
        (lambda: noisy(quantised(ring(5)), 0.1), "noise would gather"),
        (lambda: lossy(quantised(ring(5)), 0.1), "feedback needs all messages"),
        (lambda: quantised(lossy(ring(5), 0.1)), "feedback needs all messages"),
        (lambda: lossy(delayed(ring(5), 1), 0.1), "healing=False"),
        (lambda: lossy(noisy(ring(5), 0.1), 0.1), "healing=False"),
        (lambda: lossy(delayed(ring(5), 1), healing=False, leaving={2: 4}), "would still arrive"),
        (lambda: bounded(delayed(ring(5), 1), 3.0), "a delayed network cannot be part"),
        (lambda: lossy(lossy(ring(5), 0.1), 0.1), "without loss"),
    ],
)
def test_what_is_refused(make, message):
    with pytest.raises(adom.InputError, match=message):
        make()


def test_a_network_says_what_its_links_do():
    links = delayed(sparsified(quantised(ring(5), 8), 0.5, "random"), 1)
    called = "delayed(sparsified(quantised(ring, bits=8), keep=0.5, choice='random'), rounds=1)"
    assert repr(links) == f"LossyNetwork({called}, nodes=5, graphs=1, period=1, edges=5)"
    assert called in unescape(links._repr_html_())
    assert repr(adom.networks.alternate([ring(5)] * 5, every=2)).startswith(
        "Network(alternate(ring, ring, ring, ..., e"
    )


def test_directed_networks_are_refused():
    for make in (quantised, lambda n: delayed(n, 1), lambda n: sparsified(n, 0.1), lambda n: noisy(n, 0.1)):
        with pytest.raises(InputTypeError, match="undirected network"):
            make(directed_ring(5))
