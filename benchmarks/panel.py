"""What the panel costs, next to what scikit-learn and relplot take for a part of it.

    python benchmarks/panel.py publish

Each row is done in a process of its own with one thread, which has loaded its libraries and has the
predictions before the clock starts. Ours computes the whole panel; the others only what they have
of it: four scores, the bias, confusion matrices, and SmoothECE.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from benchmark import Numbers, benchmark, table
from measure import Cost, clocked, in_process

from srs_eval import score
from srs_eval.metrics import scores
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.smooth_ece import smece
from srs_eval.metrics.threshold import DEFAULT_THRESHOLDS, threshold_metrics

RESAMPLES = 1_000
Columns = dict[str, np.ndarray]


def invented(n: int) -> Columns:
    """Predictions of many users that are a little too sure, with all facts."""
    rng = np.random.default_rng(0)
    p = rng.beta(9, 1.2, n)
    return {
        "p": p,
        "recalled": rng.random(n) < p**1.1,
        "elapsed_days": rng.integers(1, 500, n),
        "nth_review": rng.integers(2, 40, n),
        "lapses": rng.integers(0, 6, n),
        "user": np.sort(rng.integers(0, 10_000, n)),
    }


def ours(columns: Columns) -> dict[str, float]:
    """Compute the default panel."""
    return dict(score(**columns, resamples=0))


def the_same_part(columns: Columns) -> dict[str, float]:
    """Compute what scikit-learn and relplot have of the panel, and nothing else."""
    names = ("log_loss", "normalized_entropy", "brier", "auc", "mbe")
    metrics = [getattr(scores, name) for name in names]
    at = [m for m in threshold_metrics(DEFAULT_THRESHOLDS) if m.name.startswith("confusion_tpr")]
    return dict(score(columns["p"], columns["recalled"], panel=Panel([*metrics, smece, *at])))


def ours_with_intervals(columns: Columns) -> dict[str, float]:
    """Compute the default panel with intervals from resampling 10,000 users."""
    return dict(score(**columns, resamples=RESAMPLES))


def theirs(columns: Columns) -> dict[str, float]:
    """Compute what scikit-learn and relplot have of the panel."""
    import relplot
    from sklearn import metrics

    p, recalled = columns["p"], columns["recalled"]
    values = {
        "log_loss": metrics.log_loss(recalled, p),
        "normalized_entropy": 1 - metrics.d2_log_loss_score(recalled, p),
        "brier": metrics.brier_score_loss(recalled, p),
        "auc": metrics.roc_auc_score(recalled, p),
        "mbe": float(np.mean(p - recalled)),
        "smece": relplot.smECE(p, recalled),
    }
    for threshold in DEFAULT_THRESHOLDS:
        matrix = metrics.confusion_matrix(recalled, p >= threshold)
        name = f"confusion_tpr_at_{threshold}".replace(".", "_")
        values[name] = matrix[1, 1] / matrix[1].sum()
    return values


WORK = {
    "srs_eval, default panel": ours,
    "srs_eval, the part that the last row computes": the_same_part,
    f"srs_eval, default panel and {RESAMPLES:,} resamples of users": ours_with_intervals,
    "scikit-learn and relplot, a part of it": theirs,
}


def timed(do: Callable[[Columns], dict[str, float]], n: int) -> Cost:
    """Time something on so many predictions, after it was done on a few."""
    do(invented(1_000))
    columns = invented(n)
    return clocked(lambda: do(columns))


@benchmark("panel")
def main(sizes: Numbers = (10_000, 100_000, 1_000_000, 10_000_000), repeats: int = 3) -> str:
    """Return what everything costs at every size, the least of some turns."""
    rows = []
    for n in sizes:
        turns = [[in_process(timed, do, n) for do in WORK.values()] for _ in range(repeats)]
        best = [min(costs, key=lambda cost: cost.cpu) for costs in zip(*turns, strict=True)]
        for name, value in best[-1].result.items():
            if abs(best[0].result[name] - value) > 1e-9:
                raise SystemExit(f"{name}: {best[0].result[name]} here, {value} there")
        for name, cost in zip(WORK, best, strict=True):
            times = f"{cost.cpu:.3f}", f"{best[-1].cpu / cost.cpu:.1f}"
            rows.append((f"{n:,}", name, len(cost.result), *times, cost.peak_bytes >> 20))
    headers = ["predictions", "computed by", "numbers", "CPU s", "times faster", "peak MiB"]
    return table(headers, rows)
