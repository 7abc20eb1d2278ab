"""How good a perfect model looks: scores of true probabilities, by metric and number of reviews."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import SimpleNamespace

import numpy as np
import pandas as pd
from findings import findings, panels, ticks_on_log_scale
from matplotlib.figure import Figure

import srs_eval as se
from srs_eval.metrics.bins import RmseBins, RmseBinsByP, RmseBinsDebiased
from srs_eval.metrics.calibration import Ece
from srs_eval.metrics.corp import CorpPart
from srs_eval.metrics.discrimination import Auc
from srs_eval.metrics.ici import Ici
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.proper import LogLoss
from srs_eval.metrics.smece import Smece
from srs_eval.plots.style import BLUE, GREEN, INK, MUTED, VERMILION
from srs_eval.run.study import Findings
from srs_eval.stats.significance import wilson_interval

SEED = 2026
ERRORS = {
    "rmse_bins": "RMSE(bins)",
    "rmse_bins_by_p": "RMSE(bins) by prediction",
    "rmse_bins_debiased": "RMSE(bins), debiased",
    "smece": "SmoothECE",
    "ece": "ECE, 10 bins",
    "ici": "ICI",
    "corp_miscalibration_log": "CORP miscalibration",
}
SCORES = {"log_loss": "log loss", "auc": "AUC"}
COLOURS = dict(zip(ERRORS, (VERMILION, BLUE, "#CC79A7", GREEN, INK, "#E69F00", MUTED), strict=True))
BIASED = "biased by 2 points"
SHOWN = SCORES | {name: ERRORS[name] for name in ("rmse_bins", "rmse_bins_debiased", "smece")}
FACTS = ("elapsed_days", "nth_review", "lapses")
DRAWS = {100: 1000, 1_000: 1000, 10_000: 500, 100_000: 60}
USER_DRAWS = 40
IN_NATS = ("corp_miscalibration_log",)  # not drawn beside errors in probability


def population(users: int, size: float) -> pd.DataFrame:
    """Return scored reviews of simulated users with their true probabilities."""
    result = se.evaluate(
        "oracle", "synthetic", users=users, size_scale=size, curves_per_user=0, panel="quick"
    )
    return result.predictions


def scores(p: np.ndarray, recalled: np.ndarray, reviews: pd.DataFrame) -> dict[str, float]:
    """Score predictions of reviews, which may not be those that were made of them."""
    metrics = [RmseBins(), RmseBinsByP(), RmseBinsDebiased(), Smece(), Ece(bins=10), Ici()]
    panel = Panel([*metrics, CorpPart("miscalibration", "log"), LogLoss(), Auc()])
    facts = {fact: reviews[fact].to_numpy() for fact in FACTS}
    return dict(se.score(p, recalled, panel=panel, resamples=0, **facts))


def simulated(reviews: pd.DataFrame, draws: Mapping[int, int]) -> pd.DataFrame:
    """Return scores of true probabilities, and of the same with a bias, for many draws."""
    rng = np.random.default_rng(SEED)
    rows = []
    for n, count in draws.items():
        for draw in range(count):
            own = reviews.iloc[rng.integers(len(reviews), size=n)]
            truth = own["p"].to_numpy()
            recalled = rng.random(n) < truth
            biased = np.clip(truth - 0.02, 0.001, 0.999)
            for model, p in (("true", truth), (BIASED, biased)):
                found = scores(p, recalled, own)
                rows.append({"model": model, "reviews": n, "draw": draw, **found})
    return pd.DataFrame(rows)


def by_user(reviews: pd.DataFrame, n: int, draws: int) -> pd.DataFrame:
    """Return mean scores of true probabilities on each user's first `n` reviews."""
    rng = np.random.default_rng(SEED)
    rows = []
    for user, every in reviews.sort_values("row").groupby("user"):
        if len(every) >= n:
            own = every.head(n)
            p = own["p"].to_numpy()
            found = [scores(p, rng.random(n) < p, own) for _ in range(draws)]
            rows.append({"user": user, **pd.DataFrame(found).mean()})
    return pd.DataFrame(rows)


def floors(found: pd.DataFrame, users: pd.DataFrame, n: int, draws: int) -> pd.DataFrame:
    """Return the mean score of true probabilities by number of reviews, mixed and by user."""
    true = found[found.model == "true"].groupby("reviews")[list(ERRORS)]
    rows = [
        {"reviews of": "all users", "reviews": size, "draws": len(own), **own.mean()}
        for size, own in true
    ]
    ways = {"mean": users[list(ERRORS)].mean()}
    ways |= {"lowest": users[list(ERRORS)].min(), "highest": users[list(ERRORS)].max()}
    rows += [
        {"reviews of": f"one user, {way} of {len(users)}", "reviews": n, "draws": draws, **scores}
        for way, scores in ways.items()
    ]
    return pd.DataFrame(rows).rename(columns=ERRORS)


def digits(found: pd.DataFrame) -> pd.DataFrame:
    """Return how scores vary from draw to draw, and how often a biased model looks better.

    `decimals` are the decimals of which one step is more than twice the standard deviation.
    """
    rows = []
    for n, own in found.groupby("reviews"):
        true, biased = (own[own.model == model].set_index("draw") for model in ("true", BIASED))
        for metric, label in SHOWN.items():
            sd = float(true[metric].std(ddof=1))
            sign = -1 if metric == "auc" else 1
            others = true[metric].to_numpy()[1:], biased[metric].to_numpy()[:-1]
            rows.append(
                {
                    "reviews": n,
                    "metric": label,
                    "draws": len(true),
                    "mean": float(true[metric].mean()),
                    "sd": sd,
                    "decimals": max(math.floor(-math.log10(2 * sd)), 0),
                    "biased looks better": _share(sign * biased[metric], sign * true[metric]),
                    "on other reviews": _share(sign * others[1], sign * others[0]),
                }
            )
    return pd.DataFrame(rows)


def _share(first: np.ndarray, second: np.ndarray) -> str:
    """Return how often the first is lower, with Wilson's 99 % interval; ties count half."""
    first, second = np.asarray(first), np.asarray(second)
    share = float((first < second).mean() + 0.5 * (first == second).mean())
    low, high = wilson_interval(share * len(first), len(first))
    return f"{share:.0%} [{100 * low:.0f}, {100 * high:.0f}]"


def draw(found: pd.DataFrame, users: int) -> Figure:
    """Draw the scores of true probabilities, and what a bias adds."""
    means = found.groupby(["model", "reviews"])[list(ERRORS)].mean()
    with panels(9.0, 4.0, 2, sharey=True) as (figure, axes):
        for place, model in zip(axes, ("true", BIASED), strict=True):
            for metric, label in ERRORS.items():
                if metric not in IN_NATS:
                    own = means.loc[model][metric]
                    place.plot(own.index, own, "o-", ms=3, color=COLOURS[metric], label=label)
            ticks_on_log_scale(place, means.loc[model].index)
            place.set_xlabel("reviews")
        draws = found[found.model == "true"].groupby("reviews").size()
        count = f"{draws.min():,} to {draws.max():,} draws"
        axes[0].set_title(f"A perfect model\n{users} simulated users, {count}")
        axes[1].set_title("The same,\n" + BIASED)
        axes[0].set_ylabel("error that is shown")
        axes[1].legend(loc="upper right")
    return figure


def run(options: SimpleNamespace) -> Findings:
    """Compute the tables and draw the figure."""
    small = bool(options.small)
    reviews = population(*((4, 0.03) if small else (30, 0.2)))
    draws = {100: 10, 1_000: 10} if small else DRAWS
    first, user_draws = (100, 2) if small else (1_000, USER_DRAWS)
    found = simulated(reviews, draws)
    users = by_user(reviews, first, user_draws)
    table, shares = floors(found, users, first, user_draws), digits(found)
    by_size = table[table["reviews of"] == "all users"].set_index("reviews")
    (few, middle), many = [*draws][:2], [*draws][-1]
    names = {"rmse": ERRORS["rmse_bins"], "debiased": ERRORS["rmse_bins_debiased"]}
    words = {
        **names,
        "loss": SCORES["log_loss"],
        "few": few,
        "middle": middle,
        "many": many,
        "first": first,
        "floors": by_size[names["rmse"]],
        "smece": by_size.loc[middle, ERRORS["smece"]],
        "debiased_floor": by_size.loc[middle, names["debiased"]],
        "bins": users["rmse_bins"],
        "at": shares.set_index(["reviews", "metric"]),
    }
    return findings(
        "noise_floors",
        {"floors": table, "digits": shares},
        {"noise_floors": draw(found, reviews["user"].nunique())},
        words,
        metrics={"rmse_bins_floor": float(words["floors"][middle])},
    )
