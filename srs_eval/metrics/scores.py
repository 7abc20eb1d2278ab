"""The metrics of the panel: functions of a `Tally`, which says what is in its columns.

Natural logarithms throughout. A score that cannot be defined is NaN: a skill against the base rate
where only one outcome happened. Intervals over users are those of `means`, others of `bootstrap`.
RMSE(bins) and ECE must not rank models alone: a useless predictor that watches the bins scores
near 0.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from srs_eval.data.reviews import BoolArray, FloatArray, IntArray
from srs_eval.metrics.bins import FSRS_OPTIMIZER, WIKI_2024, mean_square, mean_variance
from srs_eval.metrics.metric import metric
from srs_eval.metrics.tally import Tally

LOG_BINS = 20
# UM+ compares models in bins of a twentieth of the difference between their predictions.
UM_STEPS = 20


@metric("lower", (0.0, math.inf), is_mean=True)
def log_loss(tally: Tally) -> float:
    """Mean negative log-likelihood, in nats: 0 is perfect, and lower is better.

    At most 52 log(2), because predictions are clipped to [2**-52, 1 - 2**-52].

    >>> from srs_eval.metrics.tally import tally
    >>> round(log_loss(tally([0.9, 0.8, 0.3], [True, True, False])), 6)
    0.228393
    """
    return float(tally.losses[0]) / tally.n


@metric("lower", (0.0, 1.0), is_mean=True)
def brier(tally: Tally) -> float:
    """Mean squared difference between prediction and outcome, in [0, 1]; lower is better.

    Brier (1950), doi:10.1175/1520-0493(1950)078<0001:VOFEIT>2.0.CO;2.

    >>> from srs_eval.metrics.tally import tally
    >>> round(brier(tally([0.9, 0.8, 0.3], [True, True, False])), 6)
    0.046667
    """
    return float(tally.losses[1]) / tally.n


@metric("lower", (0.0, math.inf))
def log_loss_certain_wrong(tally: Tally) -> float:
    """Count the predictions that were certain and wrong: each costs 36.04 nats; 0 is best."""
    return float(tally.losses[2])


def entropy(tally: Tally) -> float:
    """Log loss of the base rate, in nats, up to log(2); NaN where only one outcome happened."""
    base = tally.n_recalled / tally.n
    if not 0 < base < 1:
        return math.nan
    return -base * math.log(base) - (1 - base) * math.log1p(-base)


@metric("lower", (0.0, math.inf))
def normalized_entropy(tally: Tally) -> float:
    """Log loss in units of the entropy of the base rate: 0 is perfect, 1 is the base rate.

    Equal to 1 minus scikit-learn's ``d2_log_loss_score``. Lower is better; above 1 means worse than
    always predicting the mean outcome of these very reviews. NaN if only one outcome happened.
    He et al. (2014), doi:10.1145/2648584.2648589.

    >>> from srs_eval.metrics.tally import tally
    >>> normalized_entropy(tally([0.75, 0.75, 0.75, 0.75], [1, 1, 1, 0]))
    1.0
    """
    return log_loss(tally) / entropy(tally)


@metric("higher", (-math.inf, 1.0))
def brier_skill(tally: Tally) -> float:
    """Improvement of the Brier score over the base rate: 1 is perfect, higher is better.

    0 is no better than the mean outcome of these very reviews. NaN if only one outcome happened.

    >>> from srs_eval.metrics.tally import tally
    >>> brier_skill(tally([0.75, 0.75, 0.75, 0.75], [1, 1, 1, 0]))
    0.0
    """
    base = tally.n_recalled / tally.n
    return 1 - brier(tally) / (base * (1 - base)) if 0 < base < 1 else math.nan


@metric("zero", (-1.0, 1.0), is_mean=True)
def mbe(tally: Tally) -> float:
    """Mean bias error: mean prediction minus share of recalls, in [-1, 1].

    Best at 0; above 0 the predictions are too high.

    >>> from srs_eval.metrics.tally import tally
    >>> round(mbe(tally([0.9, 0.8], [True, False])), 6)
    0.35
    """
    return float(tally.residual.sum()) / tally.n


@metric("lower", (0.0, 1.0))
def ece(tally: Tally, bins: int = 10) -> float:
    """Mean calibration error in equally wide bins of the prediction.

    Mean over reviews of the gap between mean prediction and share of recalls in their bin; lower is
    better. It depends on the bins, so prefer SmoothECE. Bin b holds predictions from b / bins up
    to, not including, (b + 1) / bins; the last one holds 1 too.
    Naeini, Cooper and Hauskrecht (2015), doi:10.1609/aaai.v29i1.9602.

    >>> from srs_eval.metrics.tally import tally
    >>> round(ece(tally([0.92, 0.98, 0.15], [True, False, False])), 6)
    0.35
    """
    bin_of = np.minimum((tally.p * bins).astype(np.int64), bins - 1)
    return float(np.abs(np.bincount(bin_of, tally.residual)).sum()) / tally.n


@metric("lower", (0.0, 1.0))
def rmse_bins(tally: Tally) -> float:
    """Root mean square gap between mean prediction and share of recalls, over bins of facts.

    As every published number has it, in [0, 1]; lower is better. NaN where the predictions lack a
    fact that reviews are grouped by: days since the card's previous review; 1 + reviews of the card
    on a later day than the one before, this one included; and earlier Agains of the card given at
    least a day after the review before them. Source: `FSRS_OPTIMIZER`.
    """
    return math.sqrt(mean_square(tally.bins(FSRS_OPTIMIZER)))


@metric("lower", (0.0, 1.0))
def rmse_bins_wiki(tally: Tally) -> float:
    """RMSE(bins) with the constants of the wiki page of 2024: see `rmse_bins`."""
    return math.sqrt(mean_square(tally.bins(WIKI_2024)))


@metric("neither", (0.0, 1.0), has_interval=False)
def rmse_bins_floor(tally: Tally) -> float:
    """RMSE(bins) as it is expected if every prediction is the true probability.

    The root of the expected mean square. A model below it is not better than perfect: its
    predictions exploit the bins.
    """
    return math.sqrt(mean_variance(tally.bins(FSRS_OPTIMIZER)))


def log_bins(p: ArrayLike) -> IntArray:
    """Which of the 20 bins of the old RMSE(bins) each prediction falls into."""
    powers = np.exp(math.log(LOG_BINS + 1) * np.asarray(p, np.float64))
    return np.minimum(powers.astype(np.int64) - 1, LOG_BINS - 1)


@metric("lower", (0.0, 1.0))
def rmse_bins_by_p(tally: Tally) -> float:
    """RMSE(bins) in its old form: 20 bins of the prediction itself, finer towards 1.

    Bin b holds predictions with floor(21**p) = b + 1, and 1 falls in the last bin. Lower is better;
    the base rate scores 0.

    >>> from srs_eval.metrics.tally import tally
    >>> round(rmse_bins_by_p(tally([0.95, 0.9, 0.3], [True, False, False])), 6)
    0.548483
    """
    bin_of = log_bins(tally.p)
    count, residual = np.bincount(bin_of, tally.count), np.bincount(bin_of, tally.residual)
    used = count > 0
    return math.sqrt(float((residual[used] ** 2 / count[used]).sum()) / tally.n)


@metric("higher", (0.0, 1.0))
def auc(tally: Tally) -> float:
    """Chance that a recalled review was given a higher prediction than a forgotten one.

    The area under the ROC curve. Ties count half. Exact, and the same in every precision that
    keeps the order. 0.5 is no discrimination, higher is better. NaN if only one outcome happened.
    Hanley and McNeil (1982), doi:10.1148/radiology.143.1.7063747.

    >>> from srs_eval.metrics.tally import tally
    >>> auc(tally([0.9, 0.8, 0.8, 0.4], [True, True, False, False]))
    0.875
    """
    if not (tally.n_forgotten and tally.n_recalled):
        return math.nan
    # Twice the forgotten reviews below each prediction, those at it counting half: whole numbers.
    below = tally.below[0, :-1] + tally.below[0, 1:]
    return min(1.0, float(tally.recalled @ below) / (2 * tally.n_recalled * tally.n_forgotten))


@metric("lower", (0.0, math.inf), has_interval=False)
def corp_miscalibration_log(tally: Tally) -> float:
    """Log loss minus that of an isotonic regression on the predictions, in nats; lower is better.

    Log loss = miscalibration - discrimination + entropy of the base rate, without bins and tuning
    parameters. At least 0. Dimitriadis, Gneiting and Jordan (2021), doi:10.1073/pnas.2016191118.
    """
    return max(0.0, log_loss(tally) - tally.isotonic_loss)


@metric("higher", (0.0, math.log(2)), has_interval=False)
def corp_discrimination_log(tally: Tally) -> float:
    """Entropy of the base rate minus log loss of an isotonic regression; higher is better.

    In nats, 0 where only one outcome happened: see `corp_miscalibration_log`.

    >>> from srs_eval.metrics.tally import tally
    >>> round(corp_discrimination_log(tally([0.9, 0.8, 0.6, 0.3], [1, 0, 1, 0])), 6)
    0.346574
    """
    base = entropy(tally) if tally.n_forgotten and tally.n_recalled else 0.0
    # The fit is never worse than a constant, but for rounding.
    return max(0.0, base - tally.isotonic_loss)


@metric("lower", (0.0, 1.0))
def temporal_violation(tally: Tally) -> float:
    """Mean share of the pairs of elapsed times at which recall is not predicted to fall.

    Over the sampled forgetting curves, in [0, 1]; lower is better. NaN without curves. Source: see
    `srs_eval.metrics.temporal`.
    """
    return temporal_strict(tally) + temporal_flat(tally)


@metric("lower", (0.0, 1.0))
def temporal_strict(tally: Tally) -> float:
    """Mean share of the pairs of times at which recall rises: see `temporal_violation`."""
    return float(tally.curves[1] / tally.curves[0]) if tally.curves[0] else math.nan


@metric("lower", (0.0, 1.0))
def temporal_flat(tally: Tally) -> float:
    """Mean share of the pairs of times at which recall stays: see `temporal_violation`."""
    return float(tally.curves[2] / tally.curves[0]) if tally.curves[0] else math.nan


def um_plus(p: FloatArray, other: FloatArray, recalled: BoolArray) -> float:
    """Compute UM+ of a model against another, on reviews that both predicted.

    Reviews are sorted into bins by how much the predictions `p` and `other` differ, a twentieth
    wide, and the mean prediction is compared with the share of recalls in each: the root of the
    mean square over reviews. A bias where the other model disagrees cannot cancel, as it can in
    calibration. From 0 to 1, lower is better; 0 reviews give NaN. Noise alone raises it, the more
    the fewer the reviews of a bin are.

    Source: open-spaced-repetition/fsrs-vs-sm17, 2025, after SuperMemo's Universal Metric.

    >>> p, recalled = np.array([0.9, 0.9, 0.5, 0.5]), np.array([True, True, True, False])
    >>> um_plus(p, np.array([0.9, 0.9, 0.9, 0.9]), recalled), um_plus(p, p, recalled)
    (0.07071067811865474, 0.04999999999999999)
    """
    if not len(p):
        return float("nan")
    step = np.rint(UM_STEPS * (p.astype(np.float64) - other)).astype(np.int64) + UM_STEPS
    reviews = np.bincount(step, minlength=2 * UM_STEPS + 1)
    bias = np.bincount(step, p - recalled.astype(np.float64), minlength=2 * UM_STEPS + 1)
    return float(np.sqrt((bias[reviews > 0] ** 2 / reviews[reviews > 0]).sum() / len(p)))
