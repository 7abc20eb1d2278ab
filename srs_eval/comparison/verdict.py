"""The whole comparison of runs by one metric, as values that reports are made of."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from srs_eval.comparison.board import WEIGHTINGS, Board, boards
from srs_eval.comparison.by_users import Extremes, extremes, mean_ranks, superiority_matrix
from srs_eval.comparison.one_user import board_of_one
from srs_eval.comparison.pairing import Paired
from srs_eval.comparison.standing import Rules
from srs_eval.comparison.strata import Where, where
from srs_eval.errors import ConfigError
from srs_eval.metrics.intervals import bounds_of
from srs_eval.metrics.panel import default_panel
from srs_eval.nouns import Better, FloatArray
from srs_eval.results.run import UNLIKE, Run, protocols
from srs_eval.stats.paired import Weighting

# Shown beside the metric that is compared, where all runs have them.
BESIDE = ("log_loss", "normalized_entropy", "brier_skill", "smece", "rmse_bins", "auc", "ici")
# In units of what was learned from: under another protocol, the same predictions score otherwise.
_BY_TRAINING = ("normalized_entropy_train",)
_UNBOUNDED = (-math.inf, math.inf)
_SIGN: Mapping[Better, float] = {"lower": 1.0, "higher": -1.0, "zero": 1.0}


@dataclass(frozen=True, slots=True)
class Verdict:
    """Finished runs compared.

    Attributes
    ----------
    paired : Paired
        The runs, and the users they were compared on.
    metric, better : str
        What they were compared by, and which way is better.
    baseline : int
        Number of the run that the others are compared with.
    scores : float64 [users, runs]
        Of the metric; sizes where it is best near 0.
    boards : tuple of Board
        By user, by review, by the logarithm of reviews; only one where there is one user.
    extremes : tuple of Extremes
        Users for whom each run differs most from the baseline.
    superiority : float64 [runs, runs]
    mean_ranks : float64 [runs]
    beside : mapping of metric to float64 [runs]
        Means over users of other metrics.
    where : Where or None
        Differences to the baseline in parts of the reviews.
    notes : tuple of str
        What every output has to say.
    """

    paired: Paired
    metric: str
    better: Better
    baseline: int
    scores: FloatArray
    boards: tuple[Board, ...]
    extremes: tuple[Extremes, ...]
    superiority: FloatArray
    mean_ranks: FloatArray
    beside: Mapping[str, FloatArray]
    where: Where | None
    notes: tuple[str, ...]

    @property
    def runs(self) -> tuple[Run, ...]:
        """The runs."""
        return self.paired.runs

    @property
    def board(self) -> Board:
        """The leaderboard in which each user counts once: the headline."""
        return self.boards[0]

    @property
    def order(self) -> list[int]:
        """Numbers of the runs, best first."""
        return self.board.order


def judge(paired: Paired, *, metric: str = "log_loss", baseline: str | None = None) -> Verdict:
    """Compare paired runs by one metric.

    Parameters
    ----------
    metric : str
        A metric every run should have; runs without it are shown without a number.
    baseline : str, optional
        Name, algorithm or folder of the run that the others are compared with; the first.

    Raises
    ------
    ConfigError
        If no run has the metric, if it has no better direction, if it depends on the protocol and
        there are several, or if no run is so called.
    """
    direction = better_of(metric, paired.runs)
    _refuse_by_training(metric, paired.runs)
    number = _baseline(paired, baseline) if baseline else 0
    scores = _scores(paired, metric, direction)
    has_any = ~np.isnan(scores).all(axis=0)
    # The users the leaderboard is about.
    kept = np.asarray(~np.isnan(scores[:, has_any]).any(axis=1), np.bool_)
    whole = scores[kept]
    notes = list(paired.notes)
    if not kept.all():
        notes.append(
            f"{metric} is not defined for {np.count_nonzero(~kept):,} of {len(scores):,} users, "
            "who are left out"
        )
    users = [user for user, is_kept in zip(paired.users, kept, strict=True) if is_kept]
    sign = _SIGN[direction]
    return Verdict(
        paired=paired,
        metric=metric,
        better=direction,
        baseline=number,
        scores=whole,
        boards=tuple(boards_of_runs(paired, metric, direction, baseline=number)),
        extremes=tuple(extremes(whole, users, number, sign=sign)),
        superiority=superiority_matrix(whole, sign=sign),
        mean_ranks=mean_ranks(whole, sign=sign),
        beside=_beside(paired, metric),
        where=where(paired, number, metric),
        notes=tuple(notes),
    )


def boards_of_runs(
    paired: Paired,
    metric: str,
    direction: Better,
    *,
    baseline: int = 0,
    weightings: Sequence[Weighting] = WEIGHTINGS,
) -> list[Board]:
    """Make the leaderboards of runs: one for each weighting, only one for a single user."""
    bounds = next((bounds_of(m) for m in default_panel() if m.name == metric), _UNBOUNDED)
    if direction == "zero":
        bounds = (0.0, max(map(abs, bounds)))
    rules = Rules(
        eligible=tuple(not set(run.traits) & set(UNLIKE) for run in paired.runs),
        sign=_SIGN[direction],
        baseline=baseline,
        bounds=bounds,
    )
    scores = _scores(paired, metric, direction)
    if len(paired.users) == 1:
        return [board_of_one(paired, metric, scores, rules)]
    return boards(scores, paired.reviews, rules, weightings=weightings)


def _scores(paired: Paired, metric: str, direction: Better) -> FloatArray:
    """Scores [users, runs]; their sizes where a metric is best near 0."""
    scores = paired.scores(metric)
    infinite = np.flatnonzero(np.isinf(scores).any(axis=0))
    if len(infinite):
        run = paired.runs[int(infinite[0])]
        raise ConfigError(f"{run.place}: {metric} of a user is infinite; scores are finite or NaN")
    return np.abs(scores) if direction == "zero" else scores


def better_of(metric: str, runs: Sequence[Run]) -> Better:
    """Say which way a metric is better.

    Raises
    ------
    ConfigError
        If no run has it, or neither direction is better.
    """
    held = dict.fromkeys(name for run in runs for name in run.scores)
    if metric not in held:
        close = difflib.get_close_matches(metric, held, 1)
        meant = f"did you mean {close[0]}?" if close else f"there are {', '.join(sorted(held))}"
        raise ConfigError(f"metric={metric}: no run has it; {meant}")
    known: dict[str, Better] = {"rmse": "lower", **{m.name: m.better for m in default_panel()}}
    direction = known.get(metric, "neither")
    if direction == "neither":
        ranked = sorted(name for name in held if known.get(name, "neither") != "neither")
        raise ConfigError(
            f"metric={metric}: it is not known which way it is better; "
            f"choose one of {', '.join(ranked)}"
        )
    return direction


def _baseline(paired: Paired, asked: str) -> int:
    """Find the baseline; a run that predicts as another one does is that one."""
    run = paired.every_run[find_run(paired.every_run, asked)]
    twin = next((one.twin for one in paired.duplicates if one.run is run), run)
    return next(number for number, other in enumerate(paired.runs) if other is twin)


def find_run(runs: Sequence[Run], asked: str) -> int:
    """Find a run by its name, its algorithm or its folder.

    Raises
    ------
    ConfigError
        If none or several are so called.
    """
    names = [run.name for run in runs]
    places = [run.place.resolve() for run in runs]
    ways: tuple[tuple[object, Sequence[object]], ...] = (
        (asked, names),
        (asked, [str(run.summary.get("label", "")) for run in runs]),
        (asked, [str(run.summary.get("algo", "")) for run in runs]),
        (asked, [place.name for place in places]),
        (Path(asked).expanduser().resolve(), places),
    )
    for meant, called in ways:
        if called.count(meant) == 1:
            return called.index(meant)
    close = difflib.get_close_matches(asked, names, 1)
    advice = f"did you mean {close[0]}?" if close else f"there are {', '.join(names)}"
    raise ConfigError(f"baseline={asked}: no run is so called, or more than one; {advice}")


def _refuse_by_training(metric: str, runs: Sequence[Run]) -> None:
    """Refuse to compare under several protocols what depends on the reviews learned from."""
    several = protocols(runs)
    if metric in _BY_TRAINING and len(several) > 1:
        raise ConfigError(
            f"metric={metric}: it is in units of a constant learned from each protocol's own "
            f"training reviews, so that the same predictions score otherwise under each of "
            f"{', '.join(several)}; metric=normalized_entropy goes by the scored reviews alone"
        )


def _beside(paired: Paired, metric: str) -> dict[str, FloatArray]:
    """Means over users of other metrics, each over the users every run has a number for."""
    found = {}
    for name in BESIDE:
        if name == metric:
            continue
        scores = paired.scores(name)
        scores = scores[~np.isnan(scores).any(axis=1)]
        if len(scores):
            found[name] = scores.mean(axis=0)
    return found
