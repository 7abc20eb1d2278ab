"""Folds of users, with leaks among them, and one side of the median interval against the other."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median_low
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from invented import Told

from srs_eval.algorithms.baselines import Average
from srs_eval.algorithms.fsrs.fsrs45 import Fsrs45
from srs_eval.checks import CheckFailed, check_user_folds
from srs_eval.config.building import build, resolved
from srs_eval.config.settings import BUILT_GROUPS, composed
from srs_eval.errors import ConfigError, FitSkipped
from srs_eval.evaluation.evaluate import EvaluateUser
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.proper import LogLoss
from srs_eval.nouns import Algorithm
from srs_eval.protocol.shifted import Shifted
from srs_eval.protocol.srs_benchmark import SrsBenchmark, SrsBenchmarkRefit
from srs_eval.protocol.user_folds import UserFolds
from srs_eval.protocol.validation import Validation
from srs_eval.run.evaluate import evaluate
from srs_eval.run.experiment import Experiment

PROTOCOLS = sorted(
    path.stem for path in (Path(__file__).parents[2] / "conf" / "protocol").glob("*.yaml")
)


@dataclass(frozen=True)
class Level(Algorithm):
    """Predicts how much other users recall, 0.5 before it has learned from any."""

    weights: object = None
    known: dict = field(default_factory=dict)

    def pretrain(self, users, rng):
        shares = {log.user: float(log.recalled[rows].mean()) for log, rows in users}
        return replace(self, weights=SimpleNamespace(parameters=(np.mean([*shares.values()]),)))

    def fit(self, reviews, rows, rng):
        return Told(0.5 if self.weights is None else self.weights.parameters[0])


class Remembers(Level):
    """Keeps what it has learned from anyone, in the class, for when it is to score them."""

    everyone: dict = {}

    def pretrain(self, users, rng):
        users = list(users)
        self.everyone.update({log.user: float(log.recalled[rows].mean()) for log, rows in users})
        return super().pretrain(users, rng)

    def fit(self, reviews, rows, rng):
        return Told(self.everyone.get(reviews.user, 0.5))


def scored(logs_of, algorithm, protocol, users=range(1, 6)):
    panel = Panel([LogLoss()])
    return evaluate(Experiment(algorithm, logs_of(*users), protocol, panel))


def test_users_are_divided_by_their_names_into_folds_of_equal_size():
    users = [f"user {number}" for number in range(41)]
    for count in (2, 3, 20):
        fold_of = UserFolds(user_folds=count).fold_of(users)
        assert fold_of == UserFolds(user_folds=count).fold_of(users[::-1])
        sizes = np.bincount([*fold_of.values()])
        assert (len(sizes), np.ptp(sizes) <= 1) == (count, True)
    with pytest.raises(ConfigError):
        UserFolds(user_folds=3).fold_of(users[:2])


def test_each_user_is_scored_by_what_the_users_of_other_folds_have_taught(logs_of):
    protocol, source = UserFolds(user_folds=2), logs_of(*range(1, 6))
    fold_of, result = protocol.fold_of(source.users()), scored(logs_of, Level(), protocol)
    shares = {}
    for user in source.users():
        task = SrsBenchmark()(source.read(user), same_day=False)
        rows = np.r_[task.folds[-1].train, task.folds[-1].test]
        shares[user] = task.reviews.recalled[rows].mean()
    for user in source.users():
        taught = np.mean([shares[other] for other in shares if fold_of[other] != fold_of[user]])
        assert result.predicted.read(user).p == pytest.approx(taught)
    assert result.facts.pretrained
    assert result.facts.protocol == "srs_benchmark_in_2_user_folds"


def test_an_algorithm_that_learns_from_no_one_else_is_as_under_the_base(logs_of):
    base = SrsBenchmarkRefit(refits=6)
    blind = Fsrs45(fit="default")  # to reviews of the same day
    one, other = (scored(logs_of, blind, each) for each in (base, UserFolds(base)))
    assert one.by_user.values.tolist() == other.by_user.values.tolist()
    assert other.facts.rows_fingerprint == one.facts.rows_fingerprint
    assert not other.facts.pretrained


def test_weights_that_were_given_are_not_passed_over(logs_of):
    with pytest.raises(ConfigError):
        scored(logs_of, Level(weights="level.safetensors"), UserFolds())


@pytest.mark.parametrize("name", PROTOCOLS)
def test_it_is_an_option_of_every_protocol(name):
    choices = dict.fromkeys(BUILT_GROUPS, name)
    plain, folded = (
        resolved(composed([f"protocol={name}", "tracking=none", *words]), choices)
        for words in ((), ("protocol.user_folds=3",))
    )
    base, protocol = (build(content, choices)["protocol"] for content in (plain, folded))
    assert protocol == UserFolds(base, user_folds=3)
    assert (protocol.folds, protocol.name.startswith(base.name)) == (base.folds, True)
    for trait in ("is_validation", "in_fractional_days"):
        assert getattr(protocol, trait) == getattr(base, trait, False)
    # Runs of before are resumed: nothing is left of the option where it is not used.
    assert "user_folds" not in plain["protocol"]


def test_what_is_learned_of_a_scored_user_in_another_fold_is_found():
    check_user_folds(Level())
    with pytest.raises(CheckFailed):
        check_user_folds(Remembers())


WAYS = [("short", "long"), ("long", "short"), ("both", "long"), ("both", "short")]


def plain_folds(log, same_day, train, test, median):
    """Split by the definition, review by review."""
    task = SrsBenchmark()(log, same_day=same_day)
    days, cards = task.reviews.elapsed_days.tolist(), task.reviews.card.tolist()
    for block in task.folds:
        known = {}
        for row in block.train.tolist():
            known.setdefault(cards[row] if median == "card" else "all", []).append(days[row])

        def side(row, known=known):
            own = known.get(cards[row] if median == "card" else "all")
            return own and ("long" if days[row] > median_low(own) else "short")

        learned = [row for row in block.train.tolist() if side(row) not in (test, None)]
        scored = [row for row in block.test.tolist() if side(row) == test]
        if train == "both":
            step = (len(block.train) - 1) / max(len(learned) - 1, 1)
            learned = [int(block.train[round(step * i)]) for i in range(len(learned))]
        if learned and scored:
            yield learned, scored


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    cards=st.sampled_from([30, 80, 250]),
    reviews_per_card=st.sampled_from([2, 3, 9]),
    intervals=st.sampled_from([(1,), (1, 2), (1, 2, 3, 7), (3, 3, 3, 5, 40)]),
    way=st.sampled_from(WAYS),
    median=st.sampled_from(["user", "card"]),
    same_day=st.booleans(),
)
def test_any_log_is_split_as_the_loops_split_it(make_log, way, median, same_day, **shape):
    log = make_log(**shape, same_day=0.2)
    try:
        expected = list(plain_folds(log, same_day, *way, median))
    except FitSkipped:
        return
    protocol = Shifted(*way, median=median)
    try:
        task = protocol(log, same_day=same_day)
    except FitSkipped as skipped:
        assert not expected
        used, task = 0, skipped
    else:
        found = [(fold.train.tolist(), fold.test.tolist()) for fold in task.folds]
        assert found == expected
        assert [fold.number for fold in task.folds] == list(range(len(found)))
        used = len({row for parts in found for part in parts for row in part})
    assert used + sum(task.dropped.values()) + sum(task.unscored.values()) == len(log)


def test_rows_for_choosing_options_are_scored_once_and_all_rows_are_fitted_at_the_end(
    make_log, logs_of
):
    log = make_log(cards=200, intervals=(1, 2, 3, 7, 20))
    task = Validation(Shifted())(log, same_day=False)
    tested = np.concatenate([fold.test for fold in task.folds])
    assert len(tested) == len(set(tested)) > 0
    shifted = Shifted()(log, same_day=False)
    work = EvaluateUser(logs_of(log), Average(), Shifted(), seed=0, curves=0)
    used = {row for fold in shifted.folds for row in (*fold.train, *fold.test)}
    assert work.fit_to_everything(log.user).fit.n_train == len(used)


@pytest.mark.parametrize("median", ["user", "card"])
def test_a_log_with_one_interval_has_no_other_side(make_log, median):
    with pytest.raises(FitSkipped) as caught:
        Shifted(median=median)(make_log(cards=100, intervals=(3,)), same_day=False)
    assert caught.value.dropped["outside both parts of the shifted split"] > 100
