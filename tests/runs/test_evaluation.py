"""All users of a run: evaluated, kept, counted, and evaluated again where something changed."""

import tracemalloc
import weakref
from dataclasses import dataclass, replace
from io import StringIO

import numpy as np
import pytest
from invented import Ends, Logs, invented_log, log_of
from saved import NO_BAR, run_of, setup_of
from tqdm import tqdm

from srs_eval.algorithms.algorithm import Algorithm
from srs_eval.algorithms.baselines import Average
from srs_eval.algorithms.fsrs.current import DEFAULTS, CurrentParameters
from srs_eval.errors import FailedAlikeError, FitError, FitSkipped
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.scores import brier, log_loss
from srs_eval.protocol.prequential import Prequential
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.protocol.task import Fold, Task
from srs_eval.protocol.validation import Validation
from srs_eval.runs import folder as files
from srs_eval.runs.evaluation import Checkpoint, added_up, data_fingerprint, evaluate, of_shard

PANEL = Panel([log_loss, brier])
GOOD = (1, 2, 3, 4, 5)
LOGS = {user: invented_log(seed=user, user=user) for user in GOOD}


def setup(algorithm=None, logs=LOGS, **changed):
    return setup_of(algorithm or Average(), Logs(logs), PANEL, **changed)


@pytest.mark.slow
def test_memory_does_not_grow_with_users(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_BYTES_IN_GROUP", 20_000)
    monkeypatch.setattr(files, "_FITS_AT_ONCE", 50)
    alive, peaks, write = [], [], Checkpoint.write

    def watched(checkpoint, scored, sums=None):
        alive.append(weakref.ref(scored.predictions.p))
        assert sum(each() is not None for each in alive) <= 2
        write(checkpoint, scored, sums)

    monkeypatch.setattr(Checkpoint, "write", watched)
    for users in (10, 40, 160):  # the first loads what is loaded once
        one = setup(logs={user: replace(LOGS[1], user=user) for user in range(users)})
        evaluation = evaluate(one, tmp_path / str(users), bar=NO_BAR)
        tracemalloc.start()
        added = added_up(one, evaluation.users, evaluation.checkpoint)
        adding = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        files.save(added, tmp_path / str(users))
        peaks.append(np.array([adding, tracemalloc.get_traced_memory()[1]]))
        tracemalloc.stop()
    assert max((peaks[2] - peaks[1]) / 120) < 3000  # bytes; what pools or predicts a user has more


def test_what_is_done_is_not_done_again_unless_its_log_or_file_has_changed(tmp_path):
    algorithm = Ends(None, users=[])
    one = setup(algorithm)
    evaluate(one, tmp_path, bar=NO_BAR)
    assert algorithm.fits == dict.fromkeys(GOOD, 5)
    damaged, gone, *_ = sorted((tmp_path / "checkpoint").rglob("*.pkl"))
    damaged.write_bytes(damaged.read_bytes()[:500])
    gone.unlink()
    checkpoint = Checkpoint(tmp_path, one.stamp)
    lost = [user for user in GOOD if checkpoint.find(user) is None]
    other = next(user for user in GOOD if user not in lost)
    log = replace(LOGS[other], rating=LOGS[other].rating[::-1].copy())
    changed = replace(one, source=Logs({**LOGS, other: log}))
    begun = []
    again = evaluate(changed, tmp_path, bar=NO_BAR, begin=lambda *counts: begun.append(counts))
    assert algorithm.fits == {user: 10 if user in (*lost, other) else 5 for user in GOOD}
    assert begun == [(3, 5)]
    assert data_fingerprint(one.source) != data_fingerprint(changed.source)
    assert again.summary.data_fingerprint == data_fingerprint(changed.source)


@dataclass(frozen=True)
class Fails(Algorithm):
    """Raises for some users, and learns an average for the others."""

    users: tuple
    error: type
    of_odd: type

    def fit(self, reviews, rows, rng):
        if reviews.user not in self.users:
            return Average().fit(reviews, rows, rng)
        raise (self.of_odd if len(rows) % 2 else self.error)(f"{len(rows)} reviews")


@pytest.mark.parametrize(
    ("users", "of", "kinds", "stops"),
    [
        ((1, 2, 3), 5, (KeyError, KeyError), True),
        ((1, 2, 3), 5, (FitError, FitError), True),
        ((1, 2, 3), 5, (KeyError, ValueError), False),  # not alike
        ((1, 2, 4), 5, (KeyError, KeyError), False),  # a fit of the third works
        ((1, 2, 3), 3, (KeyError, KeyError), False),  # nobody is left
        ((1, 2, 3), 5, (FitSkipped, FitSkipped), False),
    ],
)
def test_three_users_whose_fits_fail_alike_stop_a_run_of_more(tmp_path, users, of, kinds, stops):
    one = setup(Fails(users, *kinds), {user: LOGS[user] for user in GOOD[:of]})
    if stops:
        with pytest.raises(FailedAlikeError, match=f"stopped after 3 of {of} users"):
            evaluate(one, tmp_path, bar=NO_BAR)
        assert Checkpoint(tmp_path, one.stamp).find(1) is None  # tried again the next time
    one = replace(one, content={**one.content, "fail_fast": not stops})
    summary = evaluate(one, tmp_path, bar=NO_BAR).summary
    assert summary.users == of - len(users)
    assert summary.failed + summary.skipped == 5 * len(users)


def test_failures_alike_stop_no_run_that_goes_on_with_users_that_are_done(tmp_path):
    evaluate(setup(logs={user: LOGS[user] for user in (1, 2)}), tmp_path, bar=NO_BAR)
    one = setup(Fails((3, 4, 5), KeyError, KeyError))
    assert evaluate(one, tmp_path, bar=NO_BAR).summary.users == 2


def of_users(coverage):
    """Check that the reviews of a coverage add up, and return its numbers of users."""
    users, reviews = coverage.users, coverage.reviews
    assert users.read == users.scored + users.skipped + users.failed
    inside = sum((*reviews.dropped.values(), *reviews.unscored.values()))
    assert reviews.read == reviews.scored + reviews.skipped + reviews.failed + inside
    return users.read, users.scored, users.skipped, users.failed


def short_log(user, size):
    """A log of one card, which the rule of rare first intervals leaves nothing of."""
    day = np.arange(size)
    log = log_of([1] * size, day, elapsed_seconds=np.where(day == 0, -1, 86_400))
    return replace(log, user=user)


def test_users_and_reviews_without_a_score_are_counted_with_their_reasons(tmp_path):
    short = {user: short_log(user, 8 + place) for place, user in enumerate("abc")}
    logs = LOGS | short | {"broken": None, 2: replace(LOGS[2], left_out={"manual": 7})}
    summary = run_of(setup(logs=logs), tmp_path).facts
    coverage = summary.coverage
    assert of_users(coverage) == (9, 5, 3, 1)
    failed, skipped = sorted(coverage.left_out, key=lambda each: each.status)
    assert (failed.users, failed.reviews) == (1, 0)
    assert failed.reason.startswith("user broken: TypeError: ")
    assert (skipped.users, skipped.reviews) == (3, 8 + 9 + 10)
    assert "reviews can be scored, 6 are needed" in skipped.reason
    assert "of the users (4 of 9 read)" in coverage.caution
    assert (summary.failed, summary.skipped, summary.fits) == (1, 3, 29)
    assert summary.left_out == {"manual": 7}
    few = {n: invented_log(seed=n, user=n) for n in range(9)} | {9: short_log(9, 8)}
    bars = []

    def bar(**about):
        bars.append(tqdm(file=StringIO(), **about))
        return bars[-1]

    for _ in range(2):  # the second time all are done
        tenth = evaluate(setup(logs=few), tmp_path / "few", bar=bar)
    assert "of the users" not in tenth.summary.coverage.caution
    assert [(bar.n, bar.total) for bar in bars] == [(50, 50)] * 2  # one user has no folds


def test_a_shard_has_every_nth_user():
    assert [of_shard(GOOD, shard) for shard in ("1/2", "2/2", None)] == [(1, 3, 5), (2, 4), GOOD]


class Plain:
    """A protocol that says nothing of its rules."""

    name, version, folds = "plain", "1", 1

    def __call__(self, reviews, *, same_day):
        rows = np.arange(len(reviews))
        fold = Fold(0, train=rows[:10], test=rows[10:30])
        return Task(reviews, [fold], nth_review=rows, lapses=rows, log_row=rows)


PROTOCOLS = SrsBenchmark(), Plain(), Prequential(first=5, every=50), Validation()


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.name)
def test_every_protocol_accounts_for_every_review(protocol, tmp_path):
    summary = evaluate(setup(protocol=protocol), tmp_path, bar=NO_BAR).summary
    coverage = summary.coverage
    assert of_users(coverage) == (5, 5, 0, 0)
    assert coverage.reviews.read == sum(map(len, LOGS.values()))
    unscored = coverage.reviews.unscored
    assert unscored["only learned from"] > 0
    assert ("kept for the final score" in unscored) == isinstance(protocol, Validation)
    assert summary.is_validation == isinstance(protocol, Validation)
    if isinstance(protocol, Plain):
        others = coverage.reviews.read - 30 * len(GOOD)
        assert unscored == {"only learned from": 50, "not used by the protocol": others}


def test_settings_that_can_move_a_number_are_in_the_digest_and_no_others():
    one = setup()

    def digest(**changed):
        return replace(one, content={**one.content, **changed}).config_hash

    moving = [{key: {"x": 1}} for key in ("algo", "data", "protocol", "panel")]
    digests = {digest(**each) for each in (*moving, {"seed": 1}, {"curves_per_user": 0}, {})}
    assert len(digests) == 7
    assert digest(notes="x", name="y", figures=False, tags={"a": "b"}) == one.config_hash
    stored = [CurrentParameters({1: parameters}) for parameters in (DEFAULTS, DEFAULTS[::-1])]
    current = [replace(one, algorithm=algorithm) for algorithm in stored]
    assert len({each.config_hash for each in current}) == 2  # read from the data
