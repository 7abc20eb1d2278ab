"""The same simulated people under several schedulers: how far the ranking of models moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pandas as pd
from evaluations import MODELS, PUBLISHED, Change, Scored, score, with_means
from findings import findings, panels
from matplotlib.figure import Figure
from scipy.special import rel_entr
from scipy.stats import kendalltau

from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.metrics.proper import CLIP
from srs_eval.nouns import Algorithm, FloatArray, IntArray, Task, User
from srs_eval.plots.style import BLUE, GREEN, INK, MUTED, VERMILION
from srs_eval.protocol.split import used_rows
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.run.study import Findings
from srs_eval.stats.estimate import mean_of_users

SCHEDULERS = ("own", "fsrs_90", "fsrs_80", "fsrs_70", "sm2", "fixed")
BASELINE = "FSRS-6"
HIGH, LOW = "fsrs_90", "fsrs_70"
MOVES = ((LOW, HIGH), (HIGH, LOW))  # scored under, and fitted under instead
QUICK, QUICK_SCHEDULERS = (BASELINE, "HLR", "share of recalls"), (HIGH, LOW, "fixed")
Found = Mapping[str, Mapping[str, Scored]]  # by scheduler and model


def excess(truth: FloatArray, p: FloatArray) -> float:
    """Return by how much the expected log loss exceeds that of the truth, mean over reviews."""
    p = np.clip(np.asarray(p, np.float64), CLIP, 1 - CLIP)
    return float(np.mean(rel_entr(truth, p) + rel_entr(1 - truth, 1 - p)))


def excesses(source: SyntheticUsers, each: Scored) -> FloatArray:
    """Return the excess log loss of each user."""
    found = []
    for user, own in each.predictions.items():
        truth = source.read(user).truth
        assert truth is not None
        found.append(excess(truth[own.row], own.p))
    return np.array(found)


def described(found: Found) -> pd.DataFrame:
    """Return what the logs of each scheduler are like."""
    rows = []
    for name, evaluated in found.items():
        own = list(evaluated[BASELINE].predictions.values())
        days = np.concatenate([np.asarray(each.elapsed_days) for each in own])
        row = {"scheduler": name, "users": len(own), "scored reviews": len(days)}
        row["recalled"] = float(np.mean([np.mean(each.recalled) for each in own]))
        rows.append(row | {"median days": float(np.median(days))})
    return pd.DataFrame(rows)


def by_scheduler(found: Found, of: Callable[[str, str], object]) -> pd.DataFrame:
    """Return a value of every scheduler and model: one row a model, one column a scheduler."""
    cells = {name: {model: of(name, model) for model in own} for name, own in found.items()}
    return pd.DataFrame(cells).rename_axis("model").reset_index()


def agreement(losses: pd.DataFrame) -> pd.DataFrame:
    """Return Kendall's tau between the orders of models, of every two schedulers."""
    at = losses.set_index("model")
    rows = [
        {"scheduler": one}
        | {other: float(kendalltau(at[one], at[other]).statistic) for other in at if other != one}
        for one in at
    ]
    return pd.DataFrame(rows)[["scheduler", *at]]


def reversals(found: Found) -> tuple[list[str], int]:
    """Return pairs of models of which each is significantly better under some scheduler.

    The second value is the number of pairs.
    """
    pairs = list(combinations(next(iter(found.values())), 2))
    turned = []
    for one, other in pairs:
        changes = [own[one].less(own[other]) for own in found.values()]
        sure = [each.mean for each in changes if each.settled]
        if sure and min(sure) < 0 < max(sure):
            turned.append(f"{one} and {other}")
    return turned, len(pairs)


@dataclass(frozen=True)
class Halves:
    """The log of one person under one scheduler, of which the first half is learned from."""

    task: Task
    truth: FloatArray

    @classmethod
    def of(cls, source: SyntheticUsers, user: User, *, same_day: bool) -> Halves:
        """Read one log, and hide its truth from models."""
        task = SrsBenchmark()(source.read(user), same_day=same_day)
        truth = task.reviews.truth
        assert truth is not None
        return cls(replace(task, reviews=replace(task.reviews, truth=None)), truth)

    @property
    def rows(self) -> tuple[IntArray, IntArray]:
        """Return the first and the second half of the reviews that can be scored."""
        rows = used_rows(self.task.folds)
        return rows[: len(rows) // 2], rows[len(rows) // 2 :]


def moved_excess(
    algorithm: Algorithm, sources: Mapping[str, SyntheticUsers]
) -> dict[tuple[str, str], FloatArray]:
    """Return the excess log loss of each person, by the scheduler fitted under and scored under."""
    found: dict[tuple[str, str], list[float]] = {}
    for user in sources[HIGH].users():
        logs = {
            name: Halves.of(sources[name], user, same_day=algorithm.same_day)
            for name in (HIGH, LOW)
        }
        for fitted, first in logs.items():
            train, _ = first.rows
            known = first.task.reviews.take(np.arange(train[-1] + 1))
            model = algorithm.fit(known, train, np.random.default_rng(0))
            for scored, second in logs.items():
                _, test = second.rows
                p = model.predict(second.task.reviews, test)
                found.setdefault((fitted, scored), []).append(excess(second.truth[test], p))
    return {key: np.array(values) for key, values in found.items()}


def moved(found: Mapping[str, Mapping[tuple[str, str], FloatArray]]) -> pd.DataFrame:
    """Return the excess of each model on the second half, by where it was fitted."""
    rows = []
    for name, own in found.items():
        row: dict[str, object] = {"model": name}
        for scored, other in MOVES:
            stayed, came = own[scored, scored], own[other, scored]
            row[f"{scored}, fitted there"] = float(stayed.mean())
            row[f"{scored}, fitted at {other}"] = float(came.mean())
            row[f"{scored}, change"] = Change.of(mean_of_users(came - stayed))
        rows.append(row)
    return pd.DataFrame(rows)


def draw(losses: pd.DataFrame) -> Figure:
    """Draw the rank of each model under each scheduler."""
    ranks = losses.set_index("model").rank().astype(int)
    title = "The same people under several schedulers"
    with panels(7.5, 1.2 + 0.3 * len(ranks), title=title) as (figure, (axes,)):
        palette = iter((BLUE, VERMILION, GREEN))
        for name, own in ranks.iterrows():
            shown = own.max() - own.min() >= 3
            colour = next(palette, INK) if shown else MUTED
            axes.plot(range(len(own)), own, marker="o", markersize=4, color=colour)
            place, beside = (len(own) - 1, own.iloc[-1]), {"textcoords": "offset points"}
            name_of_line = axes.annotate(str(name), place, (8, 0), va="center", **beside)
            name_of_line.set(color=colour, fontsize=10, annotation_clip=False)
        axes.set_xticks(range(ranks.shape[1]), list(ranks))
        axes.set_yticks(range(1, len(ranks) + 1))
        axes.invert_yaxis()
        axes.set_ylabel("rank by log loss")
    return figure


def run(options: SimpleNamespace) -> Findings:
    """Evaluate every model on the logs that every scheduler makes of the same people."""
    users, reviews = (3, 1200) if options.small else (20, 4000)
    names = QUICK if options.small else tuple(MODELS)
    schedulers = QUICK_SCHEDULERS if options.small else SCHEDULERS
    sources = {
        name: SyntheticUsers(users=users, max_reviews=reviews, scheduler=name)
        for name in schedulers
    }
    found = {
        scheduler: {name: score(source, MODELS[name], SrsBenchmark()) for name in names}
        for scheduler, source in sources.items()
    }
    across = moved({name: moved_excess(MODELS[name], sources) for name in names})
    losses = by_scheduler(found, lambda name, model: found[name][model].log_loss)
    over_truth = by_scheduler(
        found, lambda name, model: excesses(sources[name], found[name][model]).mean()
    )
    differences = by_scheduler(
        found,
        lambda name, model: (
            "" if model == BASELINE else found[name][model].less(found[name][BASELINE]).starred
        ),
    )
    agree = agreement(losses)
    taus = agree.set_index("scheduler").to_numpy(float)
    turned, pairs = reversals(found)
    at = losses.set_index("model")
    best = at.idxmin()
    words = {
        "baseline": BASELINE,
        "losses": losses,
        "taus": {"min": np.nanmin(taus), "max": np.nanmax(taus), "mean": np.nanmean(taus)},
        "leaders": [
            {"model": model, "schedulers": ", ".join(best.index[best == model])}
            for model in best.unique()
        ],
        "turned": turned,
        "pairs": pairs,
        "usual": at.loc[BASELINE],
        "above": over_truth.set_index("model").loc[BASELINE],
        "spreads": [{"scheduler": name, "spread": at[name].max() - at[name].min()} for name in at],
        "moves": [_move(across.set_index("model"), *move) for move in MOVES],
    }
    tables = {"schedulers": described(found), "losses": losses, "differences": differences}
    return findings(
        "three_schedulers",
        tables | {"over_truth": over_truth, "agreement": agree, "moved": across},
        {"ranks": draw(losses)},
        words,
        metrics={"mean_tau": float(np.nanmean(taus)), "turned_round": float(len(turned))},
        formats={"recalled": ".1%", "median days": ".0f"},
    )


def _move(across: pd.DataFrame, scored: str, other: str) -> dict[str, object]:
    """Return what a fit under the other retention changes."""
    own = with_means(across, f"{scored}, change")
    there, elsewhere = own[f"{scored}, fitted there"], own[f"{scored}, fitted at {other}"]
    return {
        "scored": scored,
        "other": other,
        "fitted": own.drop(PUBLISHED, errors="ignore"),
        "baseline": own.loc[BASELINE, f"{scored}, change"],
        "tau": kendalltau(there, elsewhere).statistic,
    }
