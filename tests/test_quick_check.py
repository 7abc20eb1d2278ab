"""Classes from elsewhere are tried before they are evaluated; those of srs_eval are not."""

import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import QUIET, SMALL, Here, outcome_of
from offenders import CHEATS, HONEST, ReadsItsOwnRating, SkipsEveryUser, predicts

import srs_eval as se
from srs_eval.checks.assertions import CheckFailed
from srs_eval.checks.quick import check_quickly
from srs_eval.compute.serial import Serial
from srs_eval.compute.shard import Shard
from srs_eval.run.experiment import refuse_lookahead
from srs_eval.run.plan import Job
from srs_eval.tracking.nothing import NoTracker
from srs_eval.tuning.progress import RunningTrial

# They would lead every board.
PLAIN = """
    ReadsItsOwnRating ReadsItsOwnDuration ReadsALaterReviewOfAnotherCard
    ReadsTheAverageOfTheWholeLog ReadsGapsBetweenLaterDays LearnsFromNewCardsWithoutSayingSo
    LearnsUntilTheDayBeforeWithoutSayingSo TimesTheAnswersOfTheDay
"""


@pytest.mark.parametrize("name", PLAIN.split())
def test_what_reads_the_answers_plainly_is_caught_quickly(name: str) -> None:
    with pytest.raises(CheckFailed, match=name):
        check_quickly(CHEATS[name]())


@pytest.mark.parametrize("made", [*HONEST, SkipsEveryUser, CHEATS["PredictsEveryReview"]])
def test_what_is_honest_or_reported_elsewhere_is_let_through(made: Any) -> None:
    check_quickly(made())


@pytest.mark.parametrize(("noise", "seed"), [(1e-6, 0), (2e-5, 0), (2e-5, 1), (0.1, 0)])
def test_noise_of_an_honest_class_is_no_knowledge(noise: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    check_quickly(predicts("Noise", lambda _, rows: 0.5 + noise * rng.standard_normal(len(rows)))())


def test_a_check_draws_no_number_that_the_run_would_draw() -> None:
    torch = pytest.importorskip("torch")

    def numbers() -> tuple[float, ...]:
        return np.random.random(), random.random(), float(torch.rand(1))  # noqa: NPY002

    draws = predicts("Draws", lambda _, rows: np.full(len(rows), 0.5) + 1e-9 * sum(numbers()))
    drawn = []
    for check in (lambda algorithm: None, check_quickly):
        for seed in (np.random.seed, random.seed, torch.manual_seed):
            seed(3)
        check(draws())
        drawn.append(numbers())
    assert drawn[0] == drawn[1]


def test_the_checks_are_not_loaded_for_an_algorithm_of_srs_eval(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "srs_eval.checks.quick", None)
    cheat = ReadsItsOwnRating()
    inside = {"_target_": "srs_eval.algorithms.combined.blend.Blend"}
    refuse_lookahead(cheat, inside)
    for outside in ("srs_evaluation.Mine", "offenders.KeepsALambda"):
        with pytest.raises(ImportError):
            refuse_lookahead(cheat, {**inside, "base": {"_target_": outside}})


def test_a_search_and_the_shards_of_a_run_check_once() -> None:
    def checks(**given: Any) -> bool:
        return Job(None, None, Path("x"), Serial(), NoTracker(), **given).checks_algorithm

    assert checks()
    assert not checks(check_lookahead=False)
    assert [checks(trial=RunningTrial(number, "auc")) for number in (0, 1)] == [True, False]
    assert [checks(shard=Shard(number, 2)) for number in (1, 2)] == [True, False]
    assert not checks(is_merge=True)


def test_a_class_of_a_program_is_refused_unless_it_is_asked_for() -> None:
    data: dict[str, Any] = {"users": 1, "size_scale": 0.02, "max_reviews": 900}
    given = {**data, "data": "synthetic", "panel": "quick", "progress": False}
    cheat = ReadsItsOwnRating()
    with pytest.raises(CheckFailed, match="check_lookahead"):
        se.evaluate(cheat, **given)
    assert se.evaluate(cheat, **given, check_lookahead=False).facts.metrics["auc"].mean_users == 1


def test_a_run_of_a_class_that_reads_the_answer_is_refused_before_it_begins(here: Here) -> None:
    (here.folder / "own" / "algo").mkdir(parents=True)
    option = here.folder / "own" / "algo" / "peeks.yaml"
    option.write_text("_target_: offenders.ReadsItsOwnRating\n", encoding="utf-8")
    words = ["--config-dir=own", "algo=peeks", *SMALL, *QUIET]
    done = here(*words, "hydra.run.dir=refused")
    assert (done.status, "check_lookahead=false" in done.err) == (1, True)
    assert outcome_of(here.folder / "refused")["status"] == "failed"
    assert not (here.folder / "refused" / "summary.json").exists()
    done = here(*words, "hydra.run.dir=out", "check_lookahead=false")
    assert (done.status, outcome_of(here.folder / "out")["status"]) == (0, "ok")
