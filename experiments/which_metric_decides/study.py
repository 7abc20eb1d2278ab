"""How many users put two models in the right order, by metric: paired and unpaired.

Users are drawn from a cohort with replacement, and the order in the whole cohort counts as right.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from pathlib import Path

import srs_eval as se  # before NumPy

sys.path.append(str(Path(__file__).parents[1]))

import hydra
import numpy as np
import pandas as pd
from book import Options, existing, panels, ticks_on_log_scale, write
from hydra.core.config_store import ConfigStore
from matplotlib.figure import Figure
from scipy.special import nctdtr, stdtrit
from scipy.stats import kendalltau

from srs_eval.data.reviews import FloatArray
from srs_eval.metrics.means import mean_of_users
from srs_eval.metrics.significance import ALPHA
from srs_eval.plots.style import BLUE, GREEN, INK, MUTED, VERMILION

SEED = 2026
METRICS = {
    "log_loss": "log loss",
    "rmse": "root of Brier score",
    "rmse_bins": "RMSE(bins)",
    "auc": "AUC",
    "ici": "ICI",
}
COLOURS = dict(zip(METRICS, (INK, BLUE, VERMILION, GREEN, "#CC79A7"), strict=True))
SIZES = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
DRAWS = 500
WAYS = ("paired", "unpaired")
POWER = 0.8
STRATA = 5  # of size, and again of log loss of the base rate
MINI = 100
NEIGHBOURS = "neighbours"
FOUND = "power found"
SWAPPED, BOTH = "pairs in another order", "significant by both"
LEFT_OUT = "neighbours left out"
# Quick ones, the quickest first.
SIMULATED = {
    "avg": {},
    "sm2": {},
    "constant": {"p": 0.9},
    "moving_avg": {},
    "fsrs6": {"fit": "default"},
    "fsrs45": {"fit": "default"},
}


@dataclass(frozen=True)
class Cohort:
    """Scores of users by model and metric, lower is better throughout."""

    name: str
    users: np.ndarray
    reviews: np.ndarray
    models: tuple[str, ...]
    scores: FloatArray  # [metrics, models, users], NaN where a metric is not defined
    base_rate: str  # The model that knows nothing

    @cached_property
    def means(self) -> FloatArray:
        """Means over users [metrics, models]."""
        return np.asarray(np.nanmean(self.scores, axis=2))

    def are_told_apart(self, metric: int, a: int, b: int) -> bool:
        """Return whether two models differ significantly in the whole cohort."""
        difference = self.scores[metric, a] - self.scores[metric, b]
        return mean_of_users(difference).p_value < ALPHA

    def ranked(self, metric: int = 0) -> list[int]:
        """Return the models from best to worst."""
        return [int(model) for model in np.argsort(self.means[metric])]


def published(path: Path) -> Cohort:
    """Read the published scores of each user."""
    table = pd.read_parquet(path)
    table["auc"] = -table["auc"]
    wide = table.pivot_table(index="user", columns="model", values=list(METRICS), observed=True)
    reviews = table.groupby("user", observed=True)["size"].first().loc[wide.index]
    models = tuple(sorted(table["model"].unique().tolist()))
    scores = np.stack([wide[metric][list(models)].to_numpy().T for metric in METRICS])
    name = f"{len(wide):,} published users"
    return Cohort(name, wide.index.to_numpy(), reviews.to_numpy(), models, scores, "AVG")


def simulated(users: int, size: float, models: int) -> Cohort:
    """Evaluate quick models on simulated users."""
    tables = []
    chosen = dict(list(SIMULATED.items())[:models])
    for model, arguments in chosen.items():
        result = se.evaluate(
            model, "synthetic", users=users, size_scale=size, curves_per_user=0, **arguments
        )
        found = result.scores.copy()
        found["rmse"], found["auc"] = np.sqrt(found["brier"]), -found["auc"]
        tables.append(found)
    scores = np.stack([[table[metric].to_numpy() for table in tables] for metric in METRICS])
    reviews, names = tables[0]["reviews"].to_numpy(), tables[0].index.to_numpy()
    return Cohort(f"{users} simulated users", names, reviews, tuple(chosen), scores, "avg")


def right(cohort: Cohort, sizes: tuple[int, ...], draws: int) -> pd.DataFrame:
    """Return the share of draws that put neighbours in the order of a metric in the right order.

    Neighbours that do not differ significantly in the whole cohort have no right order, and are
    left out.
    """
    rng = np.random.default_rng(SEED)
    count = len(cohort.users)
    pairs = [(m, *pair) for m in range(len(METRICS)) for pair in _neighbours(cohort, m)]
    # A score that is not defined, such as an AUC without lapses, says nothing for any model.
    scores = np.where(np.isnan(cohort.scores), cohort.means[:, :, None], cohort.scores)
    better = np.stack([scores[m, a] for m, a, _ in pairs])
    worse = np.stack([scores[m, b] for m, _, b in pairs])
    metric = np.array([m for m, _, _ in pairs])
    rows = []
    for n in sizes:
        drawn = rng.multinomial(n, np.full(count, 1 / count), size=draws).astype(np.float64)
        other = np.roll(drawn, 1, axis=0)  # the users of the next draw
        paired = drawn @ (worse - better).T > 0
        unpaired = drawn @ worse.T > other @ better.T
        for m, name in enumerate(METRICS):
            own = metric == m
            found = {"paired": paired[:, own], "unpaired": unpaired[:, own]}
            shares = {
                way: float(each.mean()) if own.any() else np.nan for way, each in found.items()
            }
            rows.append({"metric": METRICS[name], "users": n, **shares})
    return pd.DataFrame(rows)


def _neighbours(cohort: Cohort, metric: int) -> list[tuple[int, int]]:
    """Return the neighbours that differ significantly in the whole cohort."""
    every = pairwise(cohort.ranked(metric))
    return [(a, b) for a, b in every if cohort.are_told_apart(metric, a, b)]


def needed(cohort: Cohort, draws: int) -> pd.DataFrame:
    """Return the users that each pair of models needs, by metric; NaN where they are as one.

    `power found` is the share of draws of so many users, with the same users for both models,
    in which the t test finds the difference.
    """
    rng = np.random.default_rng(SEED)
    rows = []
    for m, metric in enumerate(METRICS):
        for a, b in combinations(cohort.ranked(m), 2):
            difference = cohort.scores[m, b] - cohort.scores[m, a]
            difference = difference[~np.isnan(difference)]
            gap, paired = float(difference.mean()), float(difference.std(ddof=1))
            unpaired = float(np.hypot(*(np.nanstd(cohort.scores[m, i], ddof=1) for i in (a, b))))
            counts = {
                way: users_needed(gap / sd) if gap > 0 else None
                for way, sd in (("paired", paired), ("unpaired", unpaired))
            }
            names = {"better": cohort.models[a], "worse": cohort.models[b]}
            sds = {"difference": gap, "sd, paired": paired, "sd, unpaired": unpaired}
            power = _power_found(rng, difference, counts["paired"], draws)
            rows.append({"metric": METRICS[metric], **names, **sds, **counts, FOUND: power})
    return pd.DataFrame(rows).astype({"paired": float, "unpaired": float})


def users_needed(effect: float) -> int:
    """Return the fewest users with whom a t test finds a mean of so many standard deviations."""

    def power(users: int) -> float:
        critical = -float(stdtrit(users - 1, ALPHA / 2))
        return 1 - float(nctdtr(users - 1, effect * math.sqrt(users), critical))

    few, many = 1, 2
    while power(many) < POWER:
        few, many = many, 2 * many
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if power(middle) >= POWER else (middle, many)
    return many


def _power_found(
    rng: np.random.Generator, difference: FloatArray, users: int | None, draws: int
) -> float:
    """Draw users with replacement; return the share of draws with a significant mean above 0."""
    if users is None or users > len(difference):
        return np.nan
    drawn = difference[rng.integers(len(difference), size=(draws, users))]
    t = -float(stdtrit(users - 1, ALPHA / 2))
    error = drawn.std(axis=1, ddof=1) / np.sqrt(users)
    return float((drawn.mean(axis=1) > t * error).mean())


def agreement(cohort: Cohort, pairs: pd.DataFrame) -> pd.DataFrame:
    """Return how the metrics order the models, and what they need for the typical pair."""
    rows = []
    for m, metric in enumerate(METRICS):
        own = pairs[pairs.metric == METRICS[metric]]
        order = cohort.means[[0, m]]
        swapped = [
            (a, b)
            for a, b in combinations(range(len(cohort.models)), 2)
            if (order[0, a] - order[0, b]) * (order[1, a] - order[1, b]) < 0
        ]
        both = [all(cohort.are_told_apart(each, *pair) for each in (0, m)) for pair in swapped]
        medians = {f"users {way}": own[way].median() for way in WAYS}
        row = {"metric": METRICS[metric], "best": cohort.models[cohort.ranked(m)[0]]}
        row["Kendall's tau to log loss"] = float(kendalltau(order[0], order[1]).statistic)
        row |= {SWAPPED: len(swapped), BOTH: sum(both)}
        row |= {LEFT_OUT: len(cohort.models) - 1 - len(_neighbours(cohort, m))}
        rows.append(row | medians | {FOUND: _like_median(own)[FOUND].median()})
    return pd.DataFrame(rows)


def _like_median(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return the pairs that need about as many users as the median pair."""
    median = pairs["paired"].median()
    return pairs[pairs["paired"].between(median / 2, 2 * median)]


def strata(cohort: Cohort) -> np.ndarray:
    """Return the stratum of each user: a fifth by size, times one by loss of the base rate."""
    base = cohort.scores[0, cohort.models.index(cohort.base_rate)]
    ranks = [pd.Series(each).rank(method="first").to_numpy() - 1 for each in (cohort.reviews, base)]
    fifths = [(each * STRATA // len(each)).astype(int) for each in ranks]
    return np.asarray(fifths[0] * STRATA + fifths[1])


def mini(cohort: Cohort, draws: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Draw the mini cohort; return its users, and how well such cohorts order the models."""
    rng = np.random.default_rng(SEED)
    of = strata(cohort)
    members = [np.flatnonzero(of == stratum) for stratum in np.unique(of)]
    each = [len(m) * MINI / len(of) for m in members]
    chosen = np.concatenate(_drawn(rng, members, each))
    rows = []
    for size in range(STRATA):
        row: dict[str, object] = {"reviews": _range(cohort.reviews[of // STRATA == size])}
        for loss in range(STRATA):
            held = cohort.users[np.sort(chosen[of[chosen] == size * STRATA + loss])]
            row[f"base rate's log loss, fifth {loss + 1}"] = " ".join(map(str, held))
        rows.append(row)
    stratified = [np.concatenate(_drawn(rng, members, each)) for _ in range(draws)]
    random = [rng.choice(len(of), len(chosen), replace=False) for _ in range(draws)]
    ways = {"the mini cohort": [chosen], "drawn by strata": stratified, "drawn at random": random}
    return pd.DataFrame(rows), pd.DataFrame(
        [
            {"100 users": way, "metric": METRICS[metric]} | _agreement(cohort, m, cohorts)
            for way, cohorts in ways.items()
            for m, metric in enumerate(METRICS)
        ]
    )


def _drawn(
    rng: np.random.Generator, members: list[np.ndarray], each: list[float]
) -> list[np.ndarray]:
    return [
        rng.choice(users, max(round(number), 1), replace=False)
        for users, number in zip(members, each, strict=True)
    ]


def _range(reviews: np.ndarray) -> str:
    return f"{reviews.min():,} to {reviews.max():,}"


def _agreement(cohort: Cohort, metric: int, drawn: list[np.ndarray]) -> dict[str, float]:
    means = np.stack([np.nanmean(cohort.scores[metric][:, users], axis=1) for users in drawn])
    full = cohort.means[metric]
    pairs = np.array(list(combinations(range(len(full)), 2)))
    gap = full[pairs[:, 0]] - full[pairs[:, 1]]
    same = (means[:, pairs[:, 0]] - means[:, pairs[:, 1]]) * gap > 0
    level = means.mean(axis=1) - full.mean()
    tau = np.mean([kendalltau(each, full).statistic for each in means])
    return {
        "Kendall's tau": float(tau),
        "pairs in order": float(same.mean()),
        "error of the mean level": float(np.sqrt((level**2).mean())),
    }


def draw(order: pd.DataFrame, pairs: pd.DataFrame, cohort: Cohort) -> Figure:
    """Draw the share of right orders by users, and the users that each pair needs."""
    with panels(9.0, 4.2, 2) as (figure, (left, right_axes)):
        for name, label in METRICS.items():
            own = order[order.metric == label]
            left.plot(own.users, own.paired, color=COLOURS[name], label=label)
            left.plot(own.users, own.unpaired, ":", color=COLOURS[name])
        ticks_on_log_scale(left, order.users.unique()[::2])
        left.set_ylim(0.35, 1.01)
        left.set_xlabel("users, drawn from " + cohort.name)
        left.set_ylabel("share in the right order")
        left.set_title("Neighbours in the order of each metric")
        left.plot([], [], color=MUTED, label="the same users")
        left.plot([], [], ":", color=MUTED, label="other users for each model")
        left.legend(loc="lower right", ncols=2)
        own = pairs[pairs.metric == METRICS["log_loss"]]
        for way, label, look in (
            ("paired", "the same users", {"color": INK}),
            ("unpaired", "other users for each model", {"color": VERMILION, "mfc": "none"}),
        ):
            right_axes.plot(own.difference, own[way], "o", ms=4, label=label, **look)
        right_axes.set(yscale="log", xlabel="difference of two models in log loss")
        right_axes.set_ylabel("users")
        ticks_on_log_scale(right_axes, [0.001, 0.01, 0.1], "{}")
        right_axes.set_yticks([10, 100, 1e3, 1e4, 1e5], ["10", "100", "1,000", "10,000", "100,000"])
        right_axes.set_title(f"Users for 80 % power at 1 %, {len(own)} pairs")
        right_axes.legend()
        right_axes.minorticks_off()
    return figure


def wide(order: pd.DataFrame) -> pd.DataFrame:
    """Return one row per number of users."""
    own, other = (order.pivot(index="users", columns="metric", values=way) for way in WAYS)
    wide = own.join(other.add_suffix(", unpaired"))
    pairs = [(label, f"{label}, unpaired") for label in METRICS.values()]
    return wide[[name for pair in pairs for name in pair]].reset_index()


def close(cohort: Cohort, pairs: pd.DataFrame) -> pd.DataFrame:
    """Return what neighbours in the order of log loss need, by log loss and by RMSE(bins)."""
    ranked = [cohort.models[model] for model in cohort.ranked()]
    names = list(pairwise(ranked))
    own = pairs[pairs.metric == METRICS["log_loss"]].set_index(["better", "worse"])
    return own.loc[names].drop(columns="metric").reset_index()


@dataclass
class CohortOptions(Options):
    """Options of this study."""

    published: str | None = None  # table of published scores: user, model, size and metrics per row


ConfigStore.instance().store("which_metric_decides", CohortOptions)


@hydra.main(version_base="1.3", config_path=None, config_name="which_metric_decides")
def main(options: CohortOptions) -> None:
    """Study the published users, or simulated ones."""
    if options.published:
        cohort = published(existing(options.published))
    else:
        cohort = simulated(*((20, 0.02, 4) if options.small else (150, 0.1, 6)))
    sizes = tuple(n for n in SIZES if n <= max(len(cohort.users), 20))
    draws = 50 if options.small else DRAWS
    order, pairs = right(cohort, sizes, draws), needed(cohort, draws)
    tables = {"order": wide(order), "metrics": agreement(cohort, pairs)}
    tables[NEIGHBOURS] = close(cohort, pairs)
    if len(cohort.users) > MINI:
        tables["cohort"], tables["mini"] = mini(cohort, draws)
    formats = {
        **dict.fromkeys([f"users {way}" for way in WAYS], ",.0f"),
        **dict.fromkeys(WAYS, ",.0f"),
        **dict.fromkeys([*METRICS.values(), "pairs in order"], ".1%"),
        **{f"{label}, unpaired": ".1%" for label in METRICS.values()},
        FOUND: ".0%",
        "Kendall's tau to log loss": ".2f",
        "Kendall's tau": ".3f",
    }
    figures = {"which_metric_decides": draw(order, pairs, cohort)}
    write("which_metric_decides", options, tables, figures, formats)


if __name__ == "__main__":
    main()
