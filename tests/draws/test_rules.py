"""The generator of version 3, and the lots of every version, against draws one by one."""

import numpy as np
import pytest

from srs_eval.data.anki.fuzz import chacha12, fuzz_bounds, fuzz_factor
from srs_eval.draws.lots import Lots, joined
from srs_eval.draws.rules import Before, Rule, drawn, lots_of


def answers(n, seed=0):
    rng = np.random.default_rng(seed)
    return Before(
        rating=rng.integers(2, 5, n),
        interval=rng.choice([1, 2, 3, 5, 8, 13, 25, 60], n),
        late=rng.choice([0, 0, 1, 3, 10], n),
        ease=rng.choice([1.3, 1.8, 2.5, 2.65], n),
        modifier=rng.choice([1.0, 0.9, 1.3], n),
        hard=rng.choice([1.2, 1.0, 1.5], n),
        easy=np.full(n, 1.3),
        maximum=np.full(n, 100.0),
    )


def test_generator_reproduces_the_test_vector_of_rand():
    key = bytes([1, 0, 0, 0, 23, 0, 0, 0, 200, 1, 0, 0, 210, 30, 0, 0] + [0] * 16)
    low, high = chacha12([np.array([word]) for word in np.frombuffer(key, "<u4")])
    assert int(high[0]) << 32 | int(low[0]) == 10719222850664546238


def test_draws_are_uniform_and_change_with_every_answer():
    card, count = np.repeat(np.arange(10**12, 10**12 + 2000), 4), np.tile(np.arange(4), 2000)
    draws = fuzz_factor(card, count)
    assert draws.min() >= 0
    assert draws.max() < 1
    assert np.abs(np.histogram(draws, 10, (0, 1))[0] - 800).max() < 4 * np.sqrt(800)
    assert abs(np.corrcoef(draws[::4], draws[1::4])[0, 1]) < 4 / np.sqrt(2000)


@pytest.mark.parametrize(
    ("days", "expected"),
    [(1, (1, 1)), (2.4, (2, 2)), (2.5, (2, 4)), (7, (5, 9)), (20, (17, 23)), (100, (93, 107))],
)
def test_published_bounds(days, expected):
    low, high = fuzz_bounds(np.array([days]), 1, 36500)
    assert (low[0], high[0]) == expected


def test_bounds_stay_within_the_limits_and_are_widened_where_they_meet():
    low, high = fuzz_bounds(np.array([7.0, 7.0, 7.0]), np.array([1, 9, 12]), np.array([6, 99, 99]))
    assert [*zip(low.tolist(), high.tolist(), strict=True)] == [(4, 6), (9, 11), (12, 14)]


def one_by_one(rule, before, draws):
    """Draw one answer many times in plain Python: the interval of each button in turn."""
    days, late, ease = int(before.interval[0]), int(before.late[0]), float(before.ease[0])
    modifier, hard, easy = (float(x[0]) for x in (before.modifier, before.hard, before.easy))
    rating, most = int(before.rating[0]), int(before.maximum[0])
    first = days + 1 if hard > 1 else 1
    if rule is Rule.V1:
        ideal = [int(max((days + late // 4) * 1.2 * modifier, days + 1))]
        ideal.append(int(max((days + late // 2) * ease * modifier, ideal[-1] + 1)))
        ideal.append(int(max((days + late) * ease * easy * modifier, ideal[-1] + 1)))
    else:
        scaled = [days * hard, (days + late // 2) * ease, (days + late) * ease * easy]
        ideal = [int(each * modifier) for each in scaled]
    for draw in draws:
        last = days
        for button in range(2, rating + 1):
            interval = ideal[button - 2]
            share, least = (0.25, 1) if interval < 7 else (0.15, 2) if interval < 30 else (0.05, 4)
            around = max(int(interval * share), least)
            low, high = interval - around, interval + around
            low, high = {0: (1, 1), 1: (1, 1), 2: (2, 3)}.get(interval, (low, high))
            chosen = low + int(next(draw) * (high - low + 1))
            least_days = days + 1 if rule is Rule.V1 else first if button == 2 else last + 1
            last = min(max(chosen, least_days), most)
        yield last


def of_version_3(rule, before, k, draw):
    """Compute one interval of version 3 in plain Python: one draw for all buttons."""
    days, late, ease = int(before.interval[k]), int(before.late[k]), float(before.ease[k])
    modifier, hard, easy = (float(x[k]) for x in (before.modifier, before.hard, before.easy))
    scaled = [days * hard, (days + late / 2) * ease, (days + late) * ease * easy]
    last, most = days, int(before.maximum[k])
    for button in range(2, int(before.rating[k]) + 1):
        least = days + 1 if hard > 1 else [1, days + 1, last + 1][button - 2]
        least = min(max(least, last + 1) if button > 2 and hard > 1 else least, most)
        if rule is Rule.V3_OLD:
            interval = int(int(scaled[button - 2]) * modifier)
            share, around = (0.25, 1) if interval < 7 else (0.15, 2) if interval < 30 else (0.05, 4)
            around = max(interval * share, around)
            low, high = (interval - around, interval + around + 1) if interval > 2 else (2, 3)
            low, high = (1, 1) if interval < 2 else (low, high)
            last = min(max(int(low + draw * (high - low) + 0.5), least), most)
        else:
            interval = min(max(scaled[button - 2] * modifier, least), most)
            parts = [(2.5, 7, 0.15), (7, 20, 0.1), (20, 1e9, 0.05)]
            delta = 1 + sum(s * max(min(interval, end) - start, 0) for start, end, s in parts)
            delta = 0 if interval < 2.5 else delta
            low, high = int(interval - delta + 0.5), int(interval + delta + 0.5)
            low, high = (min(max(bound, least), most) for bound in (low, high))
            high += low == high and 2 < high < most
            last = int(low + draw * (1 + high - low))
    return last


@pytest.mark.parametrize("rule", [Rule.V3, Rule.V3_OLD])
def test_intervals_of_version_3_are_those_of_plain_python(rule):
    before, draw = answers(600, seed=3), np.random.default_rng(4).random(600)
    expected = [of_version_3(rule, before, k, draw[k]) for k in range(600)]
    # single precision moves a few that are on the edge
    assert np.mean(drawn(rule, before, draw) == expected) > 0.99


@pytest.mark.parametrize("rule", Rule)
def test_lots_sum_to_one_and_are_those_of_draws(rule):
    before, repeats = answers(24), 4000
    lots = lots_of(rule, before)
    assert np.add.reduceat(lots.probability, lots.begins[:-1]) == pytest.approx(np.ones(24))
    assert (lots.probability > 0).all()
    rng = np.random.default_rng(1)
    for answer in range(24):
        own = before.take(np.full(repeats, answer))
        if rule.is_seeded:
            days = drawn(rule, own, (np.arange(repeats) + 0.5) / repeats)
        else:
            every = (iter(row) for row in rng.random((repeats, 3)))
            days = np.array([*one_by_one(rule, own, every)])
        part = lots.take([answer])
        shares = (days[:, None] == part.days).mean(0)
        assert shares.sum() == pytest.approx(1)  # nothing else was drawn
        noise = 1e-3 if rule.is_seeded else 5 * np.sqrt(part.probability / repeats)
        assert (np.abs(shares - part.probability) < noise + 1e-3).all()


def test_lots_are_selected_joined_and_compared():
    lots = Lots.uniform(np.array([2, 7, 2]), np.array([4, 7, 4]))
    again = joined([lots.take([0]), lots.take([1, 2])])
    assert again.days.tolist() == lots.days.tolist()
    assert again.begins.tolist() == lots.begins.tolist()
    assert lots.mean(lots.days.astype(float)) == pytest.approx([3, 7, 3])
    below, exactly = lots.below(np.array([3, 7, 9]))
    assert below == pytest.approx([1 / 3, 0, 1])
    assert exactly == pytest.approx([1 / 3, 1, 0])
    cell = lots.cells(np.zeros(3, np.int64))
    assert cell[0] == cell[2] != cell[1]
