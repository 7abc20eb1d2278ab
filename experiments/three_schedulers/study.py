"""The same simulated people under several schedulers: how far the ranking of models moves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from paired_losses import Scored, score, settled, with_interval
from scipy.special import rel_entr
from scipy.stats import kendalltau
from usual_models import MODELS, PUBLISHED

from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.metrics.proper import CLIP
from srs_eval.nouns import Algorithm, FloatArray, IntArray, Task, User
from srs_eval.plots.style import (
    BLUE,
    GREEN,
    INK,
    MUTED,
    VERMILION,
    house_style,
    new_figure,
    style_axes,
)
from srs_eval.protocol.split import used_rows
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.run.study import Findings
from srs_eval.stats.estimate import mean_of_users

SCHEDULERS = ("own", "fsrs_90", "fsrs_80", "fsrs_70", "sm2", "fixed")
BASELINE = "FSRS-6"
HIGH, LOW = "fsrs_90", "fsrs_70"
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
        recalls = [float(np.mean(each.recalled)) for each in own]
        rows.append(
            {
                "scheduler": name,
                "users": len(own),
                "scored reviews": sum(map(len, own)),
                "recalled": float(np.mean(recalls)),
                "median days": float(np.median(days)),
            }
        )
    return pd.DataFrame(rows)


def by_scheduler(values: Mapping[str, Mapping[str, float]]) -> pd.DataFrame:
    """Return one row a model, and one column a scheduler."""
    return pd.DataFrame(values).rename_axis("model").reset_index()


def differences(found: Found) -> pd.DataFrame:
    """Return the difference of log loss to the baseline, * where it is significant."""
    columns: dict[str, dict[str, str]] = {}
    for scheduler, own in found.items():
        changes = {name: each.less(own[BASELINE]) for name, each in own.items()}
        columns[scheduler] = {
            name: "" if name == BASELINE else f"{each.mean:+.4f}" + " *" * settled(each)
            for name, each in changes.items()
        }
    return pd.DataFrame(columns).rename_axis("model").reset_index()


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
    names = list(next(iter(found.values())))
    turned = []
    for one, other in combinations(names, 2):
        changes = {name: own[one].less(own[other]) for name, own in found.items()}
        sure = {name: each.mean for name, each in changes.items() if settled(each)}
        if sure and min(sure.values()) < 0 < max(sure.values()):
            turned.append(f"{one} and {other}")
    return turned, len(names) * (len(names) - 1) // 2


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
        for scored, other in ((LOW, HIGH), (HIGH, LOW)):
            stayed, came = own[scored, scored], own[other, scored]
            change = mean_of_users(came - stayed)
            row[f"{scored}, fitted there"] = float(stayed.mean())
            row[f"{scored}, fitted at {other}"] = float(came.mean())
            row[f"{scored}, change"] = with_interval(change)
            row[f"{scored}, mean"], row[f"{scored}, settled"] = change.mean, settled(change)
        rows.append(row)
    return pd.DataFrame(rows)


def draw(losses: pd.DataFrame) -> Figure:
    """Draw the rank of each model under each scheduler."""
    ranks = losses.set_index("model").rank().astype(int)
    with house_style():
        figure = new_figure(7.5, 1.2 + 0.3 * len(ranks))
        axes = figure.subplots()
        palette = iter((BLUE, VERMILION, GREEN))
        for name, own in ranks.iterrows():
            shown = own.max() - own.min() >= 3
            colour = next(palette, INK) if shown else MUTED
            axes.plot(range(len(own)), own, marker="o", markersize=4, color=colour)
            axes.annotate(
                str(name),
                (len(own) - 1, own.iloc[-1]),
                (8, 0),
                textcoords="offset points",
                va="center",
                color=colour,
                fontsize=10,
                annotation_clip=False,
            )
        axes.set_xticks(range(ranks.shape[1]), list(ranks))
        axes.set_yticks(range(1, len(ranks) + 1))
        axes.invert_yaxis()
        axes.set_ylabel("rank by log loss")
        style_axes(axes)
        figure.suptitle("The same people under several schedulers", x=0.01, ha="left")
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
        scheduler: {name: score(source, MODELS[name], SrsBenchmark(), fewest=1) for name in names}
        for scheduler, source in sources.items()
    }
    across = moved({name: moved_excess(MODELS[name], sources) for name in names})
    return _findings(sources, found, across)


def _findings(
    sources: Mapping[str, SyntheticUsers],
    found: Found,
    across: pd.DataFrame,
) -> Findings:
    losses = by_scheduler(
        {name: {model: each.log_loss for model, each in own.items()} for name, own in found.items()}
    )
    over_truth = by_scheduler(
        {
            name: {model: excesses(sources[name], each).mean() for model, each in own.items()}
            for name, own in found.items()
        }
    )
    agree = agreement(losses)
    taus = agree.set_index("scheduler").to_numpy(float)
    turned, pairs = reversals(found)
    at, above = losses.set_index("model"), over_truth.set_index("model")
    leaders = {name: str(at[name].idxmin()) for name in at}
    usual = at.loc[BASELINE]
    answer = (
        f"The orders of {len(at)} models under two schedulers agree by a Kendall's tau of "
        f"{np.nanmin(taus):.2f} to {np.nanmax(taus):.2f} (mean {np.nanmean(taus):.2f}). The lowest "
        f"log loss has {_by_value(leaders)}. {len(turned)} of {pairs} pairs of models turn round, "
        "so that each is significantly better under some scheduler"
        + (f": {'; '.join(turned)}." if turned else ".")
    )
    learned = [
        f"The log loss of {BASELINE} is {usual.min():.4f} ({usual.idxmin()}) to {usual.max():.4f} "
        f"({usual.idxmax()}) for the same people: log losses under different schedulers cannot be "
        "compared at all. What it loses against the truth moves from "
        f"{above.loc[BASELINE].min():.4f} to {above.loc[BASELINE].max():.4f}.",
        f"The difference between the best and the worst model is {_spreads(at)}.",
        *(_after_a_move(across, scored) for scored in (LOW, HIGH)),
    ]
    hidden = (", mean", ", settled")
    return Findings(
        answer=answer,
        learned=learned,
        tables={
            "schedulers": described(found),
            "losses": losses,
            "differences": differences(found),
            "over_truth": over_truth,
            "agreement": agree,
            "moved": across[[name for name in across if not name.endswith(hidden)]],
        },
        figures={"ranks": draw(losses)},
        metrics={"mean_tau": float(np.nanmean(taus)), "turned_round": float(len(turned))},
        formats={"recalled": ".1%", "median days": ".0f"},
    )


def _by_value(leaders: Mapping[str, str]) -> str:
    """List the leaders with the schedulers that each leads under."""
    return ", ".join(
        f"{model} ({', '.join(name for name, own in leaders.items() if own == model)})"
        for model in dict.fromkeys(leaders.values())
    )


def _spreads(at: pd.DataFrame) -> str:
    return ", ".join(f"{at[name].max() - at[name].min():.4f} ({name})" for name in at)


def _after_a_move(across: pd.DataFrame, scored: str) -> str:
    """Say what a fit under the other retention changes."""
    other = HIGH if scored == LOW else LOW
    own = across.set_index("model")
    change = own[f"{scored}, mean"].drop(PUBLISHED, errors="ignore")
    sure = own[f"{scored}, settled"].drop(PUBLISHED, errors="ignore")
    tau = kendalltau(own[f"{scored}, fitted there"], own[f"{scored}, fitted at {other}"]).statistic
    return (
        f"Scored on later reviews under {scored}, a fit to earlier reviews of the same person "
        f"under {other} instead of {scored} changes the excess log loss by {change.min():+.4f} "
        f"({change.idxmin()}) to {change.max():+.4f} ({change.idxmax()}), of {BASELINE} by "
        f"{own.loc[BASELINE, f'{scored}, change']}; {int(sure.sum())} of {len(sure)} changes are "
        f"significant. The two orders agree by a tau of {tau:.2f}."
    )
