"""Folds of users."""

from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import mkdtemp
from types import SimpleNamespace

import numpy as np
import pytest
from invented import Told
from saved import run_of, setup_of

from srs_eval.algorithms.algorithm import Algorithm
from srs_eval.algorithms.fsrs.early import Fsrs45
from srs_eval.errors import ConfigError
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.scores import log_loss
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.protocol.user_folds import UserFolds
from srs_eval.protocol.validation import Validation
from srs_eval.runs.config import build, composed


@dataclass(frozen=True)
class Level(Algorithm):
    """Predicts how much other users recall, 0.5 before it has learned from any."""

    weights: object = None

    def pretrain(self, users, rng):
        mean = np.mean([log.recalled[rows].mean() for log, rows in users])
        return replace(self, weights=SimpleNamespace(parameters=(mean,)))

    def fit(self, reviews, rows, rng):
        return Told(0.5 if self.weights is None else self.weights.parameters[0])


@pytest.fixture
def scored(logs_of, tmp_path):
    """Evaluate an algorithm on five users, each time in a folder of its own."""

    def run(algorithm, protocol):
        setup = setup_of(algorithm, logs_of(*range(1, 6)), Panel([log_loss]), protocol)
        return run_of(setup, Path(mkdtemp(dir=tmp_path)))

    return run


def test_users_are_divided_by_their_names_into_folds_of_equal_size():
    users = [f"user {number}" for number in range(41)]
    for count in (2, 3, 20):
        fold_of = UserFolds(user_folds=count).fold_of(users)
        assert fold_of == UserFolds(user_folds=count).fold_of(users[::-1])
        sizes = np.bincount([*fold_of.values()])
        assert (len(sizes), np.ptp(sizes) <= 1) == (count, True)
    assert {*UserFolds(user_folds=3).fold_of(users[:3]).values()} == {0, 1, 2}
    with pytest.raises(ConfigError):
        UserFolds(user_folds=3).fold_of(users[:2])


def test_each_user_is_scored_by_what_the_users_of_other_folds_have_taught(logs_of, scored):
    protocol, source = UserFolds(user_folds=2), logs_of(*range(1, 6))
    fold_of, result = protocol.fold_of(source.users()), scored(Level(), protocol)
    shares = {}
    for user in source.users():
        task = SrsBenchmark()(source.read(user), same_day=False)
        rows = np.r_[task.folds[-1].train, task.folds[-1].test]
        shares[user] = task.reviews.recalled[rows].mean()
    for user in source.users():
        taught = np.mean([shares[other] for other in shares if fold_of[other] != fold_of[user]])
        assert result.predictions(user).p == pytest.approx(taught)
    assert result.facts.pretrained
    with pytest.raises(ConfigError):  # weights that were given are not passed over
        scored(Level(weights="level.safetensors"), UserFolds())


def test_an_algorithm_that_learns_from_no_one_else_is_as_under_the_base(scored):
    base = SrsBenchmark(refits=6)
    one, other = (scored(Fsrs45(fit="default"), each) for each in (base, UserFolds(base)))
    assert one.by_user.values.tolist() == other.by_user.values.tolist()
    assert other.facts.rows_fingerprint == one.facts.rows_fingerprint
    assert not other.facts.pretrained


@pytest.mark.parametrize("base", [SrsBenchmark(), Validation()])
def test_it_is_an_option_of_other_protocols(base):
    name = "validation" if base.name.startswith("validation") else base.name
    chosen, values = {"protocol": name, "tracking": "none"}, {"protocol.user_folds": 3}
    assert build(*composed(chosen, values)).protocol == UserFolds(base, user_folds=3)
    assert UserFolds(base).is_validation == isinstance(base, Validation)
