"""How many reviews tell a good model from the base rate? Closed form beside simulation.

A share of the reviews are hard (recalled with probability 0.5), the rest are easy
(0.9). M0 predicts the share that was recalled. M1, M2 and M3 predict 0.9 for easy reviews, and
0.5 for 20 %, 50 % and all of the hard ones.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import srs_eval as se  # before NumPy

sys.path.append(str(Path(__file__).parents[1]))

import hydra
import numpy as np
import pandas as pd
from book import Options, panels, write
from hydra.core.config_store import ConfigStore
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import binom

from srs_eval.data.reviews import FloatArray
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.scores import brier, log_loss
from srs_eval.plots.style import BLUE, GREEN, INK, MUTED, VERMILION

EASY, HARD = 0.9, 0.5
# Share of the hard reviews that each model knows to be hard.
KNOWN = {"M1": 0.2, "M2": 0.5, "M3": 1.0}
# The share of hard reviews is not stated in the text this experiment is from. Of the shares
# tried, only about 0.05 lets both scores tell M1 from M0 at its 100,000 reviews.
REVIEWS, HARD_SHARE, TRIALS = 100_000, 0.05, 400
WANTED = 2.0
# Multiples of 20, so that the share is met exactly.
SIZES = 20 * np.unique(np.geomspace(50, 50_000, 61).round().astype(int))
COLOURS = {"M0": INK, "M1": VERMILION, "M2": BLUE, "M3": GREEN}
TOLD = {"unpaired": "each on its own reviews", "paired": "both on the same reviews"}
WAYS = ("unpaired", "paired")
SHARES = (0.01, 0.02, 0.05, 0.10, 0.14, 0.21)
TITLES = {"log_loss": "log loss", "brier": "Brier score"}

# Score of a prediction whose review was forgotten, and whose review was recalled.
SCORES: Mapping[str, Callable[[FloatArray], tuple[FloatArray, FloatArray]]] = {
    "log_loss": lambda p: (-np.log1p(-p), -np.log(p)),
    "brier": lambda p: (p**2, (1 - p) ** 2),
}


class Expected(NamedTuple):
    """Mean and standard deviation of a score over datasets, and how it stands out from M0's.

    Signal to noise is the difference of the means over its standard deviation: `unpaired` as
    if each model had been scored on a dataset of its own, `paired` on the same one. Both are
    NaN for M0 itself.
    """

    mean: float
    sd: float
    unpaired: float
    paired: float


def closed_form(name: str, n: int, hard_share: float = HARD_SHARE) -> dict[str, Expected]:
    """Work out each model's score over all datasets of some size.

    Parameters
    ----------
    name : str
        ``log_loss`` or ``brier``.
    n : int
        Reviews in a dataset, of which round(hard_share * n) are hard.
    hard_share : float
        In [0, 1].
    """
    hard = round(hard_share * n)
    base = _base_rate(name, n - hard, hard)
    found = {"M0": Expected(base.mean, base.sd, math.nan, math.nan)}
    for model, known in KNOWN.items():
        easy_mean, easy_variance, easy_slope = _one_review(name, EASY, {EASY: 1.0})
        hard_mean, hard_variance, hard_slope = _one_review(
            name, HARD, {HARD: known, EASY: 1 - known}
        )
        mean = ((n - hard) * easy_mean + hard * hard_mean) / n
        variance = ((n - hard) * easy_variance + hard * hard_variance) / n**2
        # Given how many were recalled, a model's expected score is a straight line.
        shared = (easy_slope * base.with_easy + hard_slope * base.with_hard) / n
        signal = base.mean - mean
        apart = math.sqrt(base.sd**2 + variance)
        together = math.sqrt(base.sd**2 + variance - 2 * shared)
        found[model] = Expected(mean, math.sqrt(variance), signal / apart, signal / together)
    return found


def _one_review(
    name: str, truth: float, predicted: Mapping[float, float]
) -> tuple[float, float, float]:
    """Mean and variance of the score of a review, and by how much more it is if recalled."""
    p, share = np.array(list(predicted)), np.array(list(predicted.values()))
    forgotten, recalled = SCORES[name](p)
    means = truth * recalled + (1 - truth) * forgotten
    variances = truth * (1 - truth) * (recalled - forgotten) ** 2
    mean = float(share @ means)
    variance = float(share @ variances + share @ (means - mean) ** 2)
    return mean, variance, float(share @ (recalled - forgotten))


class BaseRate(NamedTuple):
    """Score of M0 over datasets, and its covariance with the easy and hard reviews recalled."""

    mean: float
    sd: float
    with_easy: float
    with_hard: float


def _base_rate(name: str, easy: int, hard: int) -> BaseRate:
    """Sum over all numbers of reviews that may be recalled."""
    easy_recalled, easy_share = _counts(easy, EASY)
    hard_recalled, hard_share = _counts(hard, HARD)
    share = np.convolve(easy_share, hard_share)
    recalled = easy_recalled[0] + hard_recalled[0] + np.arange(len(share))
    rate = recalled / (easy + hard)
    # Where all were recalled, or none, the base rate is right each time.
    inside = np.clip(rate, 1e-300, 1 - 2**-53)
    forgotten, remembered = SCORES[name](inside)
    scores = np.where(rate == inside, rate * remembered + (1 - rate) * forgotten, 0.0)
    mean = float(share @ scores)
    away = scores - mean
    with_easy = np.convolve(easy_share * (easy_recalled - easy * EASY), hard_share) @ away
    with_hard = np.convolve(easy_share, hard_share * (hard_recalled - hard * HARD)) @ away
    return BaseRate(mean, math.sqrt(float(share @ away**2)), float(with_easy), float(with_hard))


def _counts(n: int, truth: float) -> tuple[FloatArray, FloatArray]:
    """Numbers recalled of n, and their probabilities, as far as they matter."""
    # Twelve standard deviations away nothing is left that a float64 sum would notice.
    reach = 12 * math.sqrt(n * truth * (1 - truth)) + 12
    low, high = max(0, math.floor(n * truth - reach)), min(n, math.ceil(n * truth + reach))
    recalled = np.arange(low, high + 1, dtype=np.float64)
    return recalled, binom.pmf(recalled, n, truth)


def simulate(n: int = REVIEWS, trials: int = TRIALS, seed: int = 0) -> dict[str, FloatArray]:
    """Score simulated datasets with the metrics of srs_eval.

    Returns
    -------
    dict of str to float64 [trials, models]
        For each score, models M0 to M3.
    """
    rng = np.random.default_rng(seed)
    panel = Panel([log_loss, brier])
    hard = round(HARD_SHARE * n)
    truth = np.where(np.arange(n) < hard, HARD, EASY)
    found: dict[str, FloatArray] = {name: np.empty((trials, 1 + len(KNOWN))) for name in SCORES}
    for trial in range(trials):
        recalled = rng.random(n) < truth
        models = [np.full(n, recalled.mean())]
        for known in KNOWN.values():
            p = np.full(n, EASY)
            p[:hard][rng.random(hard) < known] = HARD
            models.append(p)
        for model, p in enumerate(models):
            scores = se.score(p, recalled, panel=panel)
            for name in SCORES:
                found[name][trial, model] = scores[name]
    return found


def summarised(scores: FloatArray) -> dict[str, Expected]:
    """Estimate from simulated scores [trials, models] what `closed_form` works out."""
    base = scores[:, 0]
    found = {"M0": Expected(base.mean(), base.std(ddof=1), math.nan, math.nan)}
    for model, own in zip(KNOWN, scores[:, 1:].T, strict=True):
        difference = base - own
        apart = math.sqrt(base.var(ddof=1) + own.var(ddof=1))
        signal = difference.mean()
        together = difference.std(ddof=1)
        found[model] = Expected(own.mean(), own.std(ddof=1), signal / apart, signal / together)
    return found


def reviews_needed(name: str, model: str, *, paired: bool, wanted: float = WANTED) -> int:
    """Find the number of reviews at which signal to noise reaches what is wanted.

    Rounded up to two digits, between 100 and 10 million.
    """
    few, many = 100.0, 1e7
    while many / few > 1.001:
        middle = math.sqrt(few * many)
        found = closed_form(name, round(middle))[model]
        enough = (found.paired if paired else found.unpaired) >= wanted
        few, many = (few, middle) if enough else (middle, many)
    unit = int(10 ** (math.floor(math.log10(many)) - 1))
    return math.ceil(many / unit) * unit


def table(trials: int) -> pd.DataFrame:
    """Return what the formulas give beside what was simulated."""
    simulated = simulate(trials=trials)
    rows = []
    for name in SCORES:
        drawn = summarised(simulated[name])
        for model, exact in closed_form(name, REVIEWS).items():
            found = drawn[model]
            row = {"score": TITLES[name], "model": model}
            row |= {"mean": exact.mean, "mean, sim.": found.mean, "sd": exact.sd}
            row |= {"sd, sim.": found.sd, "S/N unpaired": exact.unpaired}
            row |= {"unpaired, sim.": found.unpaired, "S/N paired": exact.paired}
            row |= {"paired, sim.": found.paired}
            for way in WAYS if model in KNOWN else ():
                row[f"reviews {way}"] = reviews_needed(name, model, paired=way == "paired")
            rows.append(row)
    return pd.DataFrame(rows)


def by_share() -> pd.DataFrame:
    """Return how M1 does by the share of hard reviews, which is our choice."""
    rows = []
    for name in SCORES:
        for share in SHARES:
            at = closed_form(name, REVIEWS, share)["M1"].unpaired
            row = {"score": TITLES[name], "hard reviews": share, "M1's S/N unpaired": at}
            # Signal to noise grows with the root of the number of reviews.
            rows.append(row | {"reviews for S/N 1": REVIEWS / at**2 if at > 0 else math.nan})
    return pd.DataFrame(rows)


def draw() -> Figure:
    """Draw scores above, and signal to noise below, against the number of reviews."""
    title = "Base rate (M0), and models that know 20 %, 50 % or 100 % of hard reviews (M1-M3)"
    with panels(8.0, 6.2, len(SCORES), title, 2, sharex=True) as (figure, every):
        for above, below, name in zip(every[:2], every[2:], SCORES, strict=True):
            found = [closed_form(name, int(n)) for n in SIZES]
            above.set_title(TITLES[name])
            _draw_scores(above, found)
            _draw_ratios(below, found)
        every[0].set_ylabel("score, ± 1 sd over datasets")
        every[2].set_ylabel("signal to noise, against M0")
        every[2].legend(loc="upper left", handlelength=1.6)
        every[1].legend(loc="upper right", ncols=4, columnspacing=1, handlelength=1)
    return figure


def _draw_scores(axes: Axes, found: list[dict[str, Expected]]) -> None:
    """Draw the mean of each model, within a band of one standard deviation."""
    for model, colour in COLOURS.items():
        mean, sd = np.array([each[model][:2] for each in found]).T
        axes.fill_between(SIZES, mean - sd, mean + sd, color=colour, alpha=0.12, linewidth=0)
        axes.plot(SIZES, mean, color=colour, label=model)
    axes.set_xscale("log")
    axes.set_xticks([1e3, 1e4, 1e5, 1e6], ["1,000", "10,000", "100,000", "1 million"])
    axes.minorticks_off()


def _draw_ratios(axes: Axes, found: list[dict[str, Expected]]) -> None:
    """Draw signal to noise of each model, on datasets of its own and on the same ones."""
    for model in KNOWN:
        for way, style in (("unpaired", ":"), ("paired", "-")):
            ratio = [getattr(each[model], way) for each in found]
            label = f"{model}, {TOLD[way]}" if model == "M1" else None
            axes.plot(SIZES, ratio, style, color=COLOURS[model], label=label)
    axes.axhline(WANTED, color=MUTED, linewidth=0.8)
    axes.set_yscale("log")
    axes.set_yticks([0.1, 1, 2, 10, 100], ["0.1", "1", "2", "10", "100"])
    axes.minorticks_off()
    axes.set_xlabel("reviews")


ConfigStore.instance().store("toy_experiment", Options)


@hydra.main(version_base="1.3", config_path=None, config_name="toy_experiment")
def main(options: Options) -> None:
    """Compute the tables and draw the figure."""
    formats = {
        **dict.fromkeys(["mean", "mean, sim.", "sd", "sd, sim."], ".6f"),
        **dict.fromkeys(["S/N unpaired", "unpaired, sim.", "S/N paired"], ".2f"),
        **dict.fromkeys(["paired, sim.", "M1's S/N unpaired"], ".2f"),
        **dict.fromkeys(["reviews unpaired", "reviews paired", "reviews for S/N 1"], ",.0f"),
        "hard reviews": ".0%",
    }
    tables = {"scores": table(20 if options.small else TRIALS), "shares": by_share()}
    write("toy_experiment", options, tables, {"toy_experiment": draw()}, formats)


if __name__ == "__main__":
    main()
