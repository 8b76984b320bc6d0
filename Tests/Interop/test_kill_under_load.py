"""Kills `holdfast device serve` (SIGKILL) again and again while provers use up counted tokens.

After each kill the device must start again, its audit chain must be whole, and what it acted upon must be remembered: no
token is ever accepted more often than its `max` says, and one that is used up stays so.
"""

import random

import pytest
from holdfast_peer.session import COSE, STATUS
from load import MAXIMUM_USES, check_uses, kill_once, use_up

KILLS, TOKENS = 15, 3


@pytest.fixture(scope="module")
def moments():
    """Of the kills: the same in each run."""
    return random.Random(1)


@pytest.fixture(scope="module")
def grants(linux_device):
    return [linux_device.grant(COSE, maximumUses=MAXIMUM_USES) for _ in range(TOKENS)]


@pytest.fixture(scope="module")
def tallies():
    """The statuses that each token has got so far."""
    return [[] for _ in range(TOKENS)]


@pytest.mark.parametrize("number", range(1, KILLS + 1))
def test_a_kill_makes_the_device_forget_nothing(linux_device, grants, tallies, moments, number):
    kill_once(linux_device, grants, tallies, moments.uniform(0, 0.03), in_use=number % 2 == 0)


def test_the_kills_came_while_tokens_were_being_used(tallies):
    assert sum(tally.count(STATUS["accepted"]) for tally in tallies) > 0, "no round was accepted before a kill"


def test_no_token_was_accepted_more_often_than_it_may_be(tallies):
    check_uses(tallies)


@pytest.mark.parametrize("token", range(TOKENS))
def test_a_token_that_is_used_up_stays_so(linux_device, grants, tallies, token):
    use_up(linux_device, grants[token], tallies[token])
