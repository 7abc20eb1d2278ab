import hashlib
from itertools import pairwise

import numpy as np
import pytest
from cases import rest_nightly
from invented import expect_one_log

from srs_eval.data.simulated.learner import draw_later_reviews
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.errors import ReviewLogError
from srs_eval.protocol.fractional_days import SrsBenchmarkSecs

PUBLISHED = {1: 785, 5: 1635, 10: 2350, 25: 4780, 50: 12500, 75: 35995, 90: 89750, 95: 147010}
COLUMNS = ("card", "day", "rating", "elapsed_days", "elapsed", "row", "elapsed_seconds")
COLUMNS += ("duration_ms", "state", "truth")


@pytest.fixture(scope="module", params=rest_nightly([2, 1]))
def logs(request):
    source = SyntheticUsers(users=40, seed=11, max_reviews=4000, version=request.param)
    return [source.read(user) for user in source.users()]


@pytest.fixture(scope="module")
def pooled(logs):
    return {
        name: np.concatenate([getattr(log, name) for log in logs])
        for name in (*COLUMNS, "recalled")
    }


def standard_score(recalled, truth):
    """How many standard errors the recalls are away from what the truth promises."""
    return (recalled.sum() - truth.sum()) / np.sqrt((truth * (1 - truth)).sum())


def test_a_user_is_the_same_however_many_are_asked_for():
    few, many = SyntheticUsers(users=8), SyntheticUsers(users=10_000)
    many.read(3)
    one, other = few.read(7), many.read(7)
    assert one.user == other.user == 7
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


# Version, seed, scale and most reviews; a digest of all whole numbers, and means of truth, answer
# times and intervals.
PINNED = [
    (1, 2026, 0.2, 2000, "879819815c904b34", (0.73671650, 10579.108, 501388.40)),
    (1, 777, 0.2, 5000, "defa12dac72aac94", (0.86447610, 12168.903, 975327.01)),
    (1, 5, 0.9, None, "3a1e6eb33edd75ad", (0.81408361, 18167.840, 1136832.65)),
    (2, 2026, 0.2, 2000, "0d24dacf1092679f", (0.63822563, 6996.0855, 637084.88)),
    (2, 777, 0.2, 5000, "abf210bcbb07457c", (0.77119141, 30463.132, 1253787.15)),
    (3, 777, 0.2, 2000, "dcd0dc7febe9ffd8", (0.74664096, 31049.289, 648819.35)),
]


@pytest.mark.parametrize(("version", "seed", "scale", "most", "digest", "means"), PINNED)
def test_logs_of_a_version_stay_what_they_are(version, seed, scale, most, digest, means):
    source = SyntheticUsers(version=version, seed=seed, size_scale=scale, max_reviews=most)
    log = source.read(1)
    whole = np.concatenate([log.card, log.day, log.rating, log.elapsed_days, log.state])
    found = [np.mean(each) for each in (log.truth, log.duration_ms, log.elapsed_seconds)]
    assert hashlib.sha256(whole.astype("<i8").tobytes()).hexdigest()[:16] == digest
    assert found == pytest.approx(means, rel=1e-7)
    assert (log.deck is None) == (version == 1)


def test_version_3_is_version_2_with_the_clock_of_published_logs():
    two, three = (SyntheticUsers(version=v, max_reviews=1500).read(1) for v in (2, 3))
    later = two.elapsed_days >= 0
    for name in ("card", "day", "rating", "elapsed_days", "duration_ms", "state", "truth", "deck"):
        np.testing.assert_array_equal(getattr(two, name), getattr(three, name))
    np.testing.assert_array_equal(
        three.elapsed_seconds[later], np.rint(two.elapsed_seconds + two.duration_ms / 1000)[later]
    )
    # The protocol subtracts the answer time: in version 3 the question is left, without a trace
    # of the time that its answer took.
    to_question = np.maximum(two.elapsed_seconds, 1)
    for log, finds_it in ((two, False), (three, True)):
        elapsed = 86_400 * SrsBenchmarkSecs()(log, same_day=True).reviews.elapsed
        assert np.allclose(elapsed[later], to_question[later]) == finds_it


def test_sizes_follow_the_published_percentiles():
    # 1.2 later reviews to a scored one, and the outlier rule takes 4 % away.
    generators = [np.random.default_rng([2026, user]) for user in range(1, 2001)]
    scored = [draw_later_reviews(each, 1) * 0.96 / 1.2 for each in generators]
    for percent, expected in PUBLISHED.items():
        share = np.mean(np.array(scored) < expected)
        error = np.sqrt(percent / 100 * (1 - percent / 100) / 2000)
        assert share == pytest.approx(percent / 100, abs=4 * error), percent


def test_retention_spreads_over_users_as_published(logs):
    rates = [log.recalled[log.elapsed_days > 0].mean() for log in logs]
    low, middle, high = np.percentile(rates, [10, 50, 90])
    # From the published log losses of AVG: 0.65, 0.86, 0.97.
    assert 0.55 < low < 0.78
    assert 0.82 < middle < 0.92
    assert 0.93 < high < 0.985


def test_truth_is_the_probability_of_recall_whatever_is_known_before_an_answer(logs, pooled):
    recalled, truth = pooled["recalled"], pooled["truth"]
    for column in ("truth", "state", "elapsed_days", "card", "elapsed_seconds"):
        values = pooled[column]
        edges = np.quantile(values, np.linspace(0, 1, 21 if column == "truth" else 5))
        for low, high in pairwise(edges):
            rows = (values >= low) & (values <= high)
            assert abs(standard_score(recalled[rows], truth[rows])) < 4.5, (column, low)
    gains = []
    for log in logs:
        after_again = np.r_[False, log.rating[:-1] == 1]
        for rows in (slice(None), after_again):
            assert abs(standard_score(log.recalled[rows], log.truth[rows])) < 4.5
        later = log.elapsed_days > 0
        recalled, truth = log.recalled[later], log.truth[later]
        rate = recalled.mean()
        entropy = -(rate * np.log(rate) + (1 - rate) * np.log1p(-rate))
        gains.append(1 + np.where(recalled, np.log(truth), np.log1p(-truth)).mean() / entropy)
    # The rate was taken from the very outcomes it is scored on.
    assert min(gains) > -0.03
    assert 0.1 < np.median(gains) < 0.35


def test_a_simulated_log_hangs_together(logs):
    for log in logs:
        expect_one_log(log)
        assert log.day[0] == 0
        assert np.array_equal(log.row, np.arange(len(log)))
        # Cards are numbered as they come, and the first answer took time as well.
        assert log.card[log.elapsed_days < 0].tolist() == [*range(log.card.max() + 1)]
        assert log.elapsed_seconds[log.elapsed_days >= 0].min(initial=20) >= 20


def test_a_source_says_what_it_is_and_reads_only_whom_it_has():
    for user in (0, 9, -1, "1", "anna"):
        with pytest.raises(ReviewLogError, match="numbered from 1 to 8"):
            SyntheticUsers().read(user)
    many = SyntheticUsers(users=1_000_000_000, max_reviews=50)
    assert len(many.users()) == 1_000_000_000
    assert len(many.read(999_999_999)) <= 50
    assert SyntheticUsers(max_reviews=1).read(1).elapsed_days.tolist() == [-1]
    assert SyntheticUsers().name == "synthetic"
    for version, said in ((1, ""), (2, "version 2, ")):
        alone = SyntheticUsers(users=1, max_reviews=None, version=version)
        assert alone.location == f"1 simulated user ({said}seed 2026, size x 0.2)"
    assert "at most 10,000 reviews each" in SyntheticUsers().location
