"""How good a perfect model looks: scores of true probabilities, by metric and number of reviews."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import srs_eval as se
from srs_eval.experiment.study import Findings
from srs_eval.metrics.bins import RmseBins, RmseBinsByP, RmseBinsDebiased
from srs_eval.metrics.calibration import Ece
from srs_eval.metrics.corp import CorpPart
from srs_eval.metrics.discrimination import Auc
from srs_eval.metrics.ici import Ici
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.proper import LogLoss
from srs_eval.metrics.smece import Smece
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


def population(users: int, size: float) -> pd.DataFrame:
    """Return scored reviews of simulated users with their true probabilities."""
    result = se.evaluate(
        "oracle", "synthetic", users=users, size_scale=size, curves_per_user=0, panel="quick"
    )
    return result.predictions


def simulated(reviews: pd.DataFrame, sizes: tuple[int, ...], draws: int) -> pd.DataFrame:
    """Return scores of true probabilities, and of the same with a bias, for many draws."""
    rng = np.random.default_rng(SEED)
    metrics = [RmseBins(), RmseBinsByP(), RmseBinsDebiased(), Smece(), Ece(bins=10), Ici()]
    panel = Panel([*metrics, CorpPart("miscalibration", "log"), LogLoss(), Auc()])
    rows = []
    for n in sizes:
        for draw in range(draws):
            own = reviews.iloc[rng.integers(len(reviews), size=n)]
            truth = own["p"].to_numpy()
            recalled = rng.random(n) < truth
            facts = {fact: own[fact].to_numpy() for fact in FACTS}
            biased = np.clip(truth - 0.02, 0.001, 0.999)
            for model, p in (("true", truth), (BIASED, biased)):
                found = se.score(p, recalled, panel=panel, resamples=0, **facts)
                rows.append({"model": model, "reviews": n, "draw": draw, **found})
    return pd.DataFrame(rows)


def floors(found: pd.DataFrame) -> pd.DataFrame:
    """Return the mean score of true probabilities by number of reviews."""
    true = found[found.model == "true"].groupby("reviews")[list(ERRORS)].mean()
    return true.rename(columns=ERRORS).reset_index()


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
                    "mean": float(true[metric].mean()),
                    "sd": sd,
                    "decimals": max(math.floor(-math.log10(2 * sd)), 0),
                    "biased looks better": _share(sign * biased[metric], sign * true[metric]),
                    "on other reviews": _share(sign * others[1], sign * others[0]),
                }
            )
    return pd.DataFrame(rows)


def _share(first: np.ndarray, second: np.ndarray) -> float:
    """Return how often the first is lower; ties count half."""
    first, second = np.asarray(first), np.asarray(second)
    return float((first < second).mean() + 0.5 * (first == second).mean())


def draw(found: pd.DataFrame) -> Figure:
    """Draw the scores of true probabilities, and what a bias adds."""
    means = found.groupby(["model", "reviews"])[list(ERRORS)].mean()
    with house_style():
        figure = new_figure(9.0, 4.0)
        axes = figure.subplots(1, 2, sharey=True)
        for place, model in zip(axes, ("true", BIASED), strict=True):
            for metric, label in ERRORS.items():
                own = means.loc[model][metric]
                place.plot(own.index, own, "o-", ms=3, color=COLOURS[metric], label=label)
            place.set_xscale("log")
            sizes = means.loc[model].index
            place.set_xticks(sizes, [f"{size:,}" for size in sizes])
            place.minorticks_off()
            place.set_xlabel("reviews")
            style_axes(place)
        axes[0].set_title("A perfect model")
        axes[1].set_title("The same, " + BIASED)
        axes[0].set_ylabel("error that is shown")
        axes[1].legend(loc="upper right")
    return figure


def run(options: SimpleNamespace) -> Findings:
    """Compute the tables and draw the figure."""
    small = bool(options.small)
    reviews = population(*((4, 0.03) if small else (30, 0.2)))
    sizes = (100, 1000) if small else (100, 1_000, 10_000, 100_000)
    found = simulated(reviews, sizes, 10 if small else 60)
    table, shares = floors(found), digits(found)
    by_size = table.set_index("reviews")
    few, middle, many = sizes[0], sizes[1], sizes[-1]
    at = shares.set_index(["reviews", "metric"])
    bins, loss = ERRORS["rmse_bins"], SCORES["log_loss"]
    debiased = ERRORS["rmse_bins_debiased"]
    learned = [
        f"A perfect model shows an RMSE(bins) of {by_size.loc[few, bins]:.3f} with {few:,} "
        f"reviews, {by_size.loc[middle, bins]:.3f} with {middle:,} and "
        f"{by_size.loc[many, bins]:.3f} with {many:,}. The floor depends on the number of "
        "reviews, so that scores of users with different numbers of reviews cannot be compared; "
        "`rmse_bins_floor` and `smece_floor` in every run say what it is.",
        f"Debiasing takes most of it off ({by_size.loc[middle, debiased]:.3f} with {middle:,} "
        "reviews), and not all, because the root of a noisy square cannot be negative.",
        f"Log loss is noisy too: from {middle:,} reviews to the next {middle:,} of the same "
        f"population and the same model, its standard deviation is {at.sd[middle, loss]:.4f}, with "
        f"{many:,} {at.sd[many, loss]:.4f}. After the first {at.decimals[middle, loss]} and "
        f"{at.decimals[many, loss]} decimals, a step of the next is less than twice that, unless "
        "models are compared on the same reviews.",
        f"A model that is too low by 2 points of probability looks better than the truth, on the "
        f"same {middle:,} reviews, in {at.loc[(middle, loss), 'biased looks better']:.0%} of draws "
        f"by log loss and {at.loc[(middle, bins), 'biased looks better']:.0%} by RMSE(bins); on "
        f"other reviews in {at.loc[(middle, loss), 'on other reviews']:.0%} and "
        f"{at.loc[(middle, bins), 'on other reviews']:.0%}.",
        "Not every correction corrects: by debiased RMSE(bins), the biased model looks better on "
        f"the same {few:,} reviews in {at.loc[(few, debiased), 'biased looks better']:.0%} of "
        f"draws, with {middle:,} in {at.loc[(middle, debiased), 'biased looks better']:.0%} and "
        f"with {many:,} in {at.loc[(many, debiased), 'biased looks better']:.0%}, "
        "because what is taken off is computed from the predictions, here too far from 1.",
    ]
    answer = (
        f"With {middle:,} reviews a perfect model shows {by_size.loc[middle, bins]:.3f} in "
        f"RMSE(bins) and {by_size.loc[middle, ERRORS['smece']]:.3f} in SmoothECE, and its log loss "
        f"varies by ± {at.sd[middle, loss]:.3f}, a standard deviation, from one such sample to the "
        "next."
    )
    return Findings(
        answer=answer,
        learned=learned,
        tables={"floors": table, "digits": shares},
        figures={"noise_floors": draw(found)},
        metrics={"rmse_bins_floor": float(by_size.loc[middle, bins])},
        formats={"biased looks better": ".0%", "on other reviews": ".0%"},
    )
