"""Classes from elsewhere are tried before they are evaluated; those of srs_eval are not."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import rest_nightly
from commands import QUIET, SMALL, Here
from offenders import (
    HONEST,
    IsRandomWhenAsked,
    LearnsFromNewCardsWithoutSayingSo,
    LearnsWhileTestedWithoutSayingSo,
    NeedsManyReviews,
    PredictsEveryReview,
    ReadsALaterReviewOfAnotherCard,
    ReadsGapsBetweenLaterDays,
    ReadsItsOwnDuration,
    ReadsItsOwnRating,
    ReadsTheAverageOfTheWholeLog,
    SkipsEveryUser,
)

import srs_eval as se
from srs_eval.checks.assertions import CheckFailed
from srs_eval.checks.quick import check_quickly
from srs_eval.compute.serial import Serial
from srs_eval.compute.shard import Shard
from srs_eval.config.option_files import options
from srs_eval.experiment.outside import refuse_lookahead
from srs_eval.experiment.plan import RunOptions
from srs_eval.tracking.nothing import NoTracker
from srs_eval.tuning.progress import RunningTrial

MODULE = """
import numpy as np
from srs_eval.nouns import Algorithm

class Peeks(Algorithm):
    def fit(self, reviews, rows, rng):
        return self

    parameters = ()

    def predict(self, reviews, rows):
        return np.where(reviews.recalled[rows], 0.97, 0.5)
"""


@pytest.mark.parametrize(
    "cheat",
    [
        ReadsItsOwnRating,
        ReadsItsOwnDuration,
        ReadsALaterReviewOfAnotherCard,
        ReadsTheAverageOfTheWholeLog,
        ReadsGapsBetweenLaterDays,
        LearnsFromNewCardsWithoutSayingSo,
        LearnsWhileTestedWithoutSayingSo,
    ],
)
def test_what_would_lead_every_board_is_caught_quickly(cheat: Any) -> None:
    with pytest.raises(CheckFailed, match=cheat.__name__):
        check_quickly(cheat())


@pytest.mark.parametrize(
    "made", [*HONEST, NeedsManyReviews, SkipsEveryUser, IsRandomWhenAsked, PredictsEveryReview]
)
def test_what_is_honest_or_reported_elsewhere_is_let_through(made: Any) -> None:
    check_quickly(made())


@pytest.mark.parametrize("name", rest_nightly(sorted({*options("algo")} - {"fsrs_rs"}), 0))
def test_no_algorithm_of_srs_eval_would_be_refused(name: str) -> None:
    check_quickly(se.algorithm(name))


@pytest.mark.parametrize(("noise", "seed"), [(1e-6, 0), (2e-5, 0), (2e-5, 1)])
def test_noise_of_an_honest_class_is_no_knowledge(noise: float, seed: int) -> None:
    rng = np.random.default_rng(seed)

    class IsALittleRandom(IsRandomWhenAsked):
        def predicted(self, reviews: Any, rows: Any) -> Any:
            return 0.5 + noise * rng.standard_normal(len(rows))

    check_quickly(IsALittleRandom())


def test_a_check_draws_no_number_that_the_run_would_draw() -> None:
    torch = pytest.importorskip("torch")

    class DrawsFromEverywhere(ReadsItsOwnRating):
        def predicted(self, reviews: Any, rows: Any) -> Any:
            noise = np.random.random() + random.random() + float(torch.rand(1))  # noqa: NPY002
            return np.full(len(rows), 0.5) + 1e-9 * noise

    drawn = []
    for check in (lambda algorithm: None, check_quickly):
        np.random.seed(3)  # noqa: NPY002
        random.seed(3)
        torch.manual_seed(3)
        check(DrawsFromEverywhere())
        drawn.append((np.random.random(), random.random(), float(torch.rand(1))))  # noqa: NPY002
    assert drawn[0] == drawn[1]


def test_the_checks_are_not_loaded_for_an_algorithm_of_srs_eval(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "srs_eval.checks.quick", None)
    inside = {"_target_": "srs_eval.algorithms.combined.blend.Blend"}
    refuse_lookahead(ReadsItsOwnRating(), inside)
    for outside in ("srs_evaluation.Mine", "offenders.ReadsItsOwnRating"):
        with pytest.raises(ImportError):
            refuse_lookahead(ReadsItsOwnRating(), {**inside, "base": {"_target_": outside}})


def test_a_search_and_the_shards_of_a_run_check_once() -> None:
    def checks(**given: Any) -> bool:
        return RunOptions(Path("x"), Serial(), NoTracker(), **given).checks_algorithm

    assert checks()
    assert not checks(check_lookahead=False)
    assert [checks(trial=RunningTrial(number, "auc")) for number in (0, 1)] == [True, False]
    assert [checks(shard=Shard(number, 2)) for number in (1, 2)] == [True, False]
    assert not checks(is_merge=True)


def test_a_class_of_a_program_is_refused_unless_it_is_asked_for() -> None:
    data: dict[str, Any] = {"users": 1, "size_scale": 0.02, "max_reviews": 900, "version": 2}
    with pytest.raises(CheckFailed, match="check_lookahead"):
        se.evaluate(ReadsItsOwnRating(), "synthetic", **data, panel="quick", progress=False)
    made = se.evaluate(
        ReadsItsOwnRating(),
        "synthetic",
        **data,
        panel="quick",
        progress=False,
        check_lookahead=False,
    )
    assert made.facts.metrics["auc"].mean_users == 1


@pytest.mark.parametrize("words", [(), ("check_lookahead=false",)])
def test_a_run_of_a_class_that_reads_the_answer_is_refused_before_it_begins(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "peeking_plugin", raising=False)
    (tmp_path / "peeking_plugin.py").write_text(MODULE, encoding="utf-8")
    (tmp_path / "own" / "algo").mkdir(parents=True)
    option = tmp_path / "own" / "algo" / "peeks.yaml"
    option.write_text("_target_: peeking_plugin.Peeks\n", encoding="utf-8")
    given = ["--config-dir=own", "algo=peeks", *SMALL, *QUIET, "hydra.run.dir=out", *words]
    done = Here(tmp_path, capsys)(*given)
    outcome = json.loads((tmp_path / "out" / "job.json").read_text(encoding="utf-8"))
    if words:
        assert done.status == 0
        assert outcome["status"] == "ok"
    else:
        assert done.status == 1
        assert outcome["status"] == "failed"
        assert "check_lookahead=false" in done.err
        assert not (tmp_path / "out" / "summary.json").exists()
