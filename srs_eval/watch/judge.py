"""What the days say: the evidence of each test after each day, and which reached their level."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from srs_eval.nouns import IntArray, Vector
from srs_eval.stats.sequential import Days, either, first_alarm, log_evidence
from srs_eval.watch.days import Question

CALIBRATION = "calibration"
BETTER, WORSE = "challenger_better", "challenger_worse"
ANSWERS = {
    CALIBRATION: "recall differs from what the champion predicts by more than the tolerance",
    BETTER: "the challenger predicts better than the champion",
    WORSE: "the challenger predicts worse than the champion",
}


@dataclass(frozen=True, slots=True)
class Evidence:
    """One test: how strong the evidence is after each day that it has seen."""

    day: IntArray  # [days]: days since 1970
    log_e: Vector  # [days]: logarithm of the e-process
    reached: int | None  # First day with an alarm, since 1970; None if there is none
    reviews: int  # How many it rests on
    mean: float  # of the residuals, recalls less predictions, or of the gain in log loss


@dataclass(frozen=True, slots=True)
class Judgement:
    """All tests."""

    tests: Mapping[str, Evidence]

    @property
    def alarms(self) -> tuple[str, ...]:
        """Tests that have reached their level, on the last day or before."""
        return tuple(name for name, test in self.tests.items() if test.reached is not None)


def judge(days: pd.DataFrame, question: Question) -> Judgement:
    """Compute the evidence after each day; what was known on a day never changes later."""
    tests = {}
    near = days[days["near"] > 0]
    share, noise = _means(near, "residual", "near")
    less = log_evidence(Days(-share - question.tolerance, noise))
    more = log_evidence(Days(share - question.tolerance, noise))
    tests[CALIBRATION] = _evidence(near, either(less, more), question, "residual", "near")
    if question.challenger is not None:
        # Days on which both predict the same in every review say nothing.
        differ = days[days["gain_noise"] > 0]
        gain, noise = _means(differ, "gain", "reviews")
        for name, sign in ((BETTER, 1), (WORSE, -1)):
            log_e = log_evidence(Days(sign * gain, noise))
            tests[name] = _evidence(differ, log_e, question, "gain", "reviews")
    return Judgement(tests)


def _means(days: pd.DataFrame, name: str, count: str) -> tuple[Vector, Vector]:
    """Return the mean of each day, and the mean of its square if reviews were independent."""
    n = days[count].to_numpy(np.float64)
    return days[name].to_numpy(np.float64) / n, days[f"{name}_noise"].to_numpy(np.float64) / n**2


def _evidence(
    days: pd.DataFrame, log_e: Vector, question: Question, name: str, count: str
) -> Evidence:
    day = days["day"].to_numpy(np.int64)
    alarm, n = first_alarm(log_e, question.level), float(days[count].sum())
    mean = float(days[name].sum()) / n if n else float("nan")
    return Evidence(day, log_e, None if alarm is None else int(day[alarm]), int(n), mean)
