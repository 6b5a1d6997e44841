"""Networks with messages that are late, coarse, partial or noisy: what they say of themselves, and what is refused."""

import json
from html import unescape
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
import pytest

import adom
from adom.cli.settings import SETTINGS
from adom.errors import InputTypeError
from adom.networks import bounded, delayed, directed_ring, lossy, noisy, quantised, ring, sparsified
from adom.networks.imperfect import LINKS
from adom.networks.lossy import Channel, with_channel
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
        (lambda: sparsified(ring(5), 0.0), "keep must be a finite number at least 1e-09 and at most 1"),
        (lambda: sparsified(ring(5), 1e-320), "at most 1, got 1e-320; it is the share of numbers that are sent"),
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


def test_the_options_of_every_kind_are_settings_and_arguments():
    for link in LINKS.values():
        arguments = signature(link.make).parameters
        for setting, argument in link.options.items():
            assert ("network", setting) in SETTINGS
            assert setting.startswith("no_") == (arguments[argument].default is True)


class Signs(NamedTuple):
    """A kind of link of the user: messages of one bit per number, its sign, and their mean size."""

    sent: float = 1.0
    share: float = 1.0

    def coded(self, rows, clock, code):
        return rows.__array_namespace__().sign(rows) * abs(rows).mean(axis=-1, keepdims=True)

    def spread(self, columns):
        return 0

    def size(self, size: Any, columns):
        return size._replace(each=1, scaled=True)


def test_a_kind_of_link_is_one_class():
    rng = np.random.default_rng(0)
    problem = adom.Quadratic(np.stack([np.diag([1.0, 2.0, k]) for k in (1, 2, 3, 4, 5)]), rng.standard_normal((5, 3)))
    network = with_channel(ring(5), Channel((Signs(),), feedback=True), {"generator": "signs"})
    result = adom.solve(problem, network, "nids", rounds=400, record_every=400)
    assert result.history["error"].iloc[-1] < 1e-6 * result.provenance["start_error"]
    links = 2 * 5 * 400
    assert result.history["floats_sent"].iloc[-1] == links * -(-(3 * 1 + 64) // 64)
    assert result.outside == "proved for links that carry every message, whole and at once"


def test_a_varying_delay_is_drawn_evenly_from_none_to_the_longest():
    late, code = delayed(ring(5), 3, varying=True).channel.late, np.arange(4000, dtype=np.uint64).reshape(2, -1)
    by = late.by(np.full((2, 2000), 7), code, 3).astype(int).ravel()
    assert np.bincount(by) / by.size == pytest.approx([0.25] * 4, abs=0.03)
