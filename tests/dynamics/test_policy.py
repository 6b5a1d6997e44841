"""Decisions from what canaries and the run show, without any run."""

import json

import numpy as np
import pytest

from adom.algorithms import Constants
from adom.algorithms.adom import ADOM
from adom.dynamics.auto_state import SETTINGS
from adom.dynamics.policy import Policy

AROUND, FIRST, MOST, STIFFNESS = SETTINGS.around, SETTINGS.first, SETTINGS.most, SETTINGS.stiffness
CONSTANTS = Constants(1.0, 100.0, 1.0, 1.0, 20)


def policy(constants=CONSTANTS, plain=False):
    return Policy(ADOM, constants, plain)


def block(chosen, rates, steps=(1.0, 1.0, 1.0, 1.0)):
    """Show a block in which the canaries of each assumption shrink at a rate per round; return whether it ended."""
    for quarter, step in enumerate(steps):
        top = np.exp(-np.asarray(rates) * quarter * chosen.quarter)
        if chosen.see(np.repeat(top, len(STIFFNESS)), step):
            return quarter
    raise AssertionError("a block has four quarters")


def decide(chosen, rates, steps=(1.0, 0.9, 0.8, 0.7), clock=100):
    block(chosen, rates, steps)
    return chosen.decide(clock, CONSTANTS.mu, CONSTANTS.L)


def test_where_all_canaries_die_at_once_the_boldest_wins():
    chosen = policy()
    decision = decide(chosen, [9.0] * len(FIRST))
    assert decision.power == FIRST[0] + 1  # a margin while blocks are short
    assert not decision.back


def test_where_bold_canaries_grow_the_best_of_the_others_wins():
    chosen = policy()
    assert decide(chosen, [-1, -1, -0.5, 9.0, 9.0, 9.0]).power == FIRST[3] + 1


def test_where_all_canaries_grow_the_run_becomes_more_careful_than_all_of_them():
    assert decide(policy(), [-0.2] * len(FIRST)).power > FIRST[-1]


def test_growth_that_a_short_block_cannot_tell_from_a_start_is_no_reason_to_be_careful():
    """With kappa of 10,000 nothing moves in 8 rounds; growth by a tenth is how momentum begins."""
    slow = policy(Constants(1.0, 1e4, 1.0, 1.0, 20))
    block(slow, [-0.1 / (2 * slow.quarter)] * len(FIRST))
    assert slow.decide(10, 1.0, 1e4).power == FIRST[0] + 1


def test_the_next_canaries_lie_around_the_choice_and_blocks_grow_up_to_a_bound():
    chosen, sizes = policy(), []
    for clock in range(0, 20_000, 1000):
        sizes.append(chosen.state.block.rounds)
        power = decide(
            chosen, [9.0] * len(chosen.state.window), np.array([1, 0.9, 0.8, 0.7]) / (1 + clock), clock
        ).power
        assert chosen.state.window == [max(0, power + offset) for offset in AROUND]
    assert sizes[:3] == [SETTINGS.first_block, 2 * SETTINGS.first_block, 4 * SETTINGS.first_block]
    assert sizes[-1] == SETTINGS.longest_block


def test_where_no_canary_lives_nothing_is_known_and_the_run_is_careful():
    chosen = policy()
    for _ in range(4):
        chosen.see(np.zeros(len(FIRST) * len(STIFFNESS)), 0.1)
    assert chosen.decide(8, 1.0, 100.0).power == SETTINGS.careful


def test_own_canaries_that_explode_end_a_block_at_once():
    chosen = policy()
    assert block(chosen, [-3.0] * len(FIRST)) < 3
    before = chosen.state.block.rounds
    chosen.decide(10, 1.0, 100.0)
    assert chosen.state.block.rounds <= before


@pytest.mark.parametrize("step", [1e3, np.inf, np.nan])
def test_a_run_whose_steps_grow_goes_back_and_becomes_more_careful(step):
    chosen = policy()
    first = decide(chosen, [9.0] * 6)
    assert first.good
    second = decide(chosen, [9.0] * 6, (1.0, 1.0, 1.0, step), 200)
    assert second.back
    assert second.power > first.power
    assert not second.good


def test_ordinary_swings_are_no_reason_to_go_back():
    chosen = policy()
    decide(chosen, [9.0] * 6)
    assert not decide(chosen, [9.0] * 6, (1.0, 3.0, 1.0, 5.0), 200).back


def test_canaries_that_always_explode_do_not_drive_the_assumption_beyond_all_numbers():
    chosen = policy()
    for clock in range(2000):
        block(chosen, [-50.0] * 6, (1.0, 1e9, 1e9, 1e9))
        power = chosen.decide(clock, 1.0, 100.0).power
    assert power == MOST
    assert SETTINGS.ratio**chosen.state.power < 1e11


def test_a_canary_at_the_floor_of_rounding_counts_as_dead_not_as_one_that_stopped():
    chosen = policy()
    for quarter in range(4):
        chosen.see(np.full(len(FIRST) * len(STIFFNESS), 1.0 if quarter == 0 else 1e-17 * (1 + quarter)), 0.1)
    assert chosen.decide(50, 1.0, 100.0).power == FIRST[0] + 1


def test_no_progress_for_long_adds_caution_whatever_the_canaries_say():
    chosen, powers = policy(), []
    for clock in range(100, 40_000, 2000):
        powers.append(decide(chosen, [9.0] * 6, (1.0, 1.0, 1.0, 1.0), clock).power)
    assert powers[-1] >= powers[0] + 3


def test_no_assumption_is_credited_with_more_than_a_perfect_network_allows():
    """Careful canaries shrink faster at first; that says nothing about the long run."""
    chosen = policy()
    assert decide(chosen, [0.2, 0.3, 0.4, 0.5, 0.6, 0.7]).power == FIRST[0] + 1


def test_adom_begins_as_plain_descent_while_canaries_try_momentum():
    chosen = policy(plain=True)
    assert chosen.state.power == MOST == chosen.careful
    assert chosen.state.window == [*FIRST, MOST]
    assert decide(chosen, [9.0] * 7).power == FIRST[0] + 1


def test_plain_descent_goes_on_where_it_is_faster_and_canaries_stay_around_the_best_of_the_others():
    chosen = policy(Constants(1.0, 2.0, 1.0, 1.0, 20), plain=True)
    block(chosen, [-1.0, -1.0, -1.0, -1.0, 0.0, -1.0, 0.5])
    decision = chosen.decide(8, 1.0, 2.0)
    assert decision.power == MOST
    assert "plain descent" in decision.why
    assert chosen.state.window == [*(FIRST[4] + 1 + offset for offset in AROUND), MOST]


def test_plain_descent_that_has_hardly_begun_to_shrink_is_not_believed():
    chosen = policy(Constants(1.0, 2.0, 1.0, 1.0, 20), plain=True)
    hardly = 0.5 * SETTINGS.plain_shown / (2 * chosen.quarter)
    block(chosen, [-1.0, -1.0, -1.0, -1.0, 0.0, -1.0, hardly])
    assert chosen.decide(8, 1.0, 2.0).power == FIRST[4] + 1


def test_decisions_go_on_from_what_a_checkpoint_holds():
    one, other = policy(plain=True), policy(plain=True)
    block(one, [0.1] * 7)
    one.decide(50, 1.0, 100.0)
    other.recall(json.loads(json.dumps(one.facts)))
    assert decide(one, [0.2] * 7) == decide(other, [0.2] * 7)
    assert one.facts == other.facts


def test_where_the_first_rounds_average_fully_chi_is_1_and_momentum_is_left_alone():
    chosen = policy(plain=True)
    assert chosen.see(np.ones(len(chosen.state.window) * len(STIFFNESS)), 1.0, fully=True)
    assert chosen.decide(4, 1.0, 100.0).power == 0
    decision = decide(chosen, [9.0] * 7, clock=24)
    assert (decision.power, decision.rest, decision.back) == (0, False, False)
    grew = decide(chosen, [-0.3] * 7, clock=60)  # it no longer does
    assert grew.power > 0
    assert decide(chosen, [9.0] * 7, clock=130).why == "its canaries died fastest"
