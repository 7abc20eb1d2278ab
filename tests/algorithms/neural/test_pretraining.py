"""Learning from other users: it helps, it is remembered, and no user it has seen is scored."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
import torch
from lstm_start.pretrain import main as learn
from safetensors.numpy import save_file
from trial import REVIEWS, fitted

import srs_eval as se
from srs_eval.algorithms.neural.curves import GruCurves, LstmCurves
from srs_eval.algorithms.neural.published import Gru, GruP, Nn17, Transformer
from srs_eval.algorithms.neural.recipes import RECIPES, Recipe
from srs_eval.algorithms.recurrent.lstm import Lstm
from srs_eval.algorithms.recurrent.weights import SeenUser, Weights, digests_of
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.errors import ConfigError, FitSkipped
from srs_eval.evaluation.checks.toy_log import trial_task
from srs_eval.protocol.fractional_days import SrsBenchmarkSecs
from srs_eval.protocol.srs_benchmark import SrsBenchmark


def brief(kind, epochs=1, batch_size=400):
    """Make an algorithm that is pretrained in no time."""
    pretraining = Recipe(epochs, batch_size, learning_rate=0.04)
    recipes = replace(RECIPES[kind.name], pretraining=pretraining)
    return type(kind.__name__, (kind,), {"recipes": recipes})()


def lessons(*, same_day, seeds=range(4)):
    for seed in seeds:
        log = trial_task(same_day=same_day, seed=seed).reviews
        yield replace(log, user=f"user {seed}"), np.flatnonzero(log.elapsed_days > 0)


def pretrained(algorithm):
    users = lessons(same_day=algorithm.same_day)
    return algorithm.pretrain(users, np.random.default_rng(0))


@pytest.mark.parametrize("kind", [Gru, GruP, Nn17, Transformer, GruCurves, LstmCurves])
def test_weights_are_repeated_saved_and_read_back_and_nobody_they_have_seen_is_scored(
    kind, tmp_path
):
    before, algorithm = torch.get_rng_state(), brief(kind)
    learned = pretrained(algorithm)
    assert learned == pretrained(algorithm)
    assert torch.equal(torch.get_rng_state(), before)
    for reviews, rows in lessons(same_day=kind.same_day):
        with pytest.raises(FitSkipped, match=r"was seen in pretraining"):
            fitted(learned, reviews, rows)
    ((other, rows),) = lessons(same_day=kind.same_day, seeds=[9])
    assert fitted(learned, other, rows).predict(other, rows).all()
    path = tmp_path / "weights.safetensors"
    learned.weights.save(path)
    from_file = replace(algorithm, weights=str(path))
    assert from_file.start == learned.weights
    assert replace(from_file, epochs=3).recipe == replace(algorithm.recipes.learned, epochs=3)
    assert [user.name for user in learned.weights.seen] == [f"user {seed}" for seed in range(4)]


DAYS = SrsBenchmark()(REVIEWS, same_day=False).reviews
SECONDS = SrsBenchmarkSecs()(REVIEWS, same_day=True).reviews
LATER = np.flatnonzero(DAYS.elapsed_days != 0)
OTHERWISE_CALLED = replace(SECONDS, user="somebody", card=SECONDS.card * 3 + 5, day=SECONDS.day + 9)


def first(count, **changed):
    return replace(DAYS.take(np.arange(count)), **changed)


def with_another_rating_at(row):
    rating = DAYS.rating.copy()
    rating[row] = 4 - rating[row]
    return replace(DAYS, rating=rating)


@pytest.mark.parametrize(
    ("learned_from", "log", "is_seen"),
    [
        *((DAYS, DAYS, True), (DAYS, SECONDS, True), (SECONDS, DAYS, True)),
        (DAYS, OTHERWISE_CALLED, True),
        *((DAYS, first(LATER[40]), True), (first(300), SECONDS, True)),
        (DAYS, with_another_rating_at(LATER[-1]), True),
        (DAYS, with_another_rating_at(LATER[16]), True),
        (DAYS, with_another_rating_at(LATER[15]), False),
        (DAYS, trial_task(same_day=False, seed=5).reviews, False),
        # The first day of new cards, all known, is the same for many.
        (first(256), first(256, user="somebody"), True),
        (first(255), first(255, user="somebody"), False),
        *((first(1), first(1), True), (first(0), first(0), False)),
    ],
)
def test_a_seen_user_is_recognised(learned_from, log, is_seen):
    seen = SeenUser(learned_from.user, len(learned_from), digests_of(learned_from))
    with pytest.raises(FitSkipped) if is_seen else nullcontext():
        Weights("gru", (), (), (), (seen,)).refuse(log)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.unlink(),
        lambda path: path.write_bytes(b"x" * 100),
        lambda path: save_file({"parameters": np.zeros(39)}, path),  # no record of users
        lambda path: Weights("gru_p", (2,), (0.0,) * 39, (), ()).save(path),
        lambda path: Weights("gru", (3,), (0.0,) * 39, (), ()).save(path),
    ],
)
def test_weights_that_cannot_be_trusted_are_refused(tmp_path, spoil):
    path = tmp_path / "w.safetensors"
    for value in (1.0, 0.0):  # a file that changes is read again
        weights = Weights("gru", (2,), (value,) * 39, (), ())
        weights.save(path)
        assert Weights.of("gru", [(2,)], path) == weights
    spoil(path)
    with pytest.raises(ConfigError):
        Gru(weights=str(path))


@pytest.mark.parametrize("algorithm", [brief(Gru), Lstm()])
def test_nothing_to_learn_from_is_refused(algorithm):
    for users in ([(REVIEWS, np.zeros(0, np.int64))], []):
        with pytest.raises(ConfigError, match="needs users"):
            algorithm.pretrain(users, np.random.default_rng(0))


def test_the_program_repeats_itself_and_nobody_it_has_learned_from_is_scored(tmp_path, capsys):
    paths = [tmp_path / f"{number}.safetensors" for number in (1, 2)]
    for path in paths:
        learn([f"weights={path}", "algo.hidden=2", "data.users=3", "data.size_scale=0.02"])
        assert "78 parameters" in capsys.readouterr().out
    assert paths[0].read_bytes() == paths[1].read_bytes()
    learned = se.algorithm("lstm", hidden=2, weights=str(paths[0]))
    log = SyntheticUsers(users=4, size_scale=0.02).read(3)
    with pytest.raises(FitSkipped, match="was seen in pretraining"):
        fitted(learned, log, np.arange(len(log)))
