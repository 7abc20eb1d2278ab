"""Metrics as functions of predictions and outcomes."""

from __future__ import annotations

from srs_eval.metrics.bins import FSRS_OPTIMIZER, RmseBins, RmseBinsByP, RmseBinsWiki
from srs_eval.metrics.calibration import Ece, MeanBias
from srs_eval.metrics.discrimination import Auc
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.proper import Brier, BrierSkill, LogLoss, NormalizedEntropy
from srs_eval.metrics.score import score
from srs_eval.metrics.smece import Smece, SmeceExact

auc = Auc().of_outcomes
brier = Brier().of_outcomes
brier_skill = BrierSkill().of_outcomes
log_loss = LogLoss().of_outcomes
mbe = MeanBias().of_outcomes
normalized_entropy = NormalizedEntropy().of_outcomes
rmse_bins_by_p = RmseBinsByP().of_outcomes
smece = Smece().of_outcomes
smece_exact = SmeceExact().of_outcomes


def ece(p, recalled, *, bins=10):
    """Compute the error in equal bins."""
    return Ece(bins).of_outcomes(p, recalled)


def rmse_bins(p, recalled, elapsed_days, nth_review, lapses, *, scales=FSRS_OPTIMIZER):
    """Compute RMSE(bins) with some published constants."""
    facts = {"elapsed_days": elapsed_days, "nth_review": nth_review, "lapses": lapses}
    metric = RmseBins() if scales == FSRS_OPTIMIZER else RmseBinsWiki()
    return score(p, recalled, **facts, panel=Panel([metric]), resamples=0)[metric.name]
