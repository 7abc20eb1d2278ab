"""What the panel costs, next to what scikit-learn and relplot take for a part of it.

    python benchmarks/panel.py publish

Each row is done in a process of its own with one thread, which has loaded its libraries and has the
predictions before the clock starts. Ours computes the whole panel; the others only what they have
of it: four scores, the bias, confusion matrices, and SmoothECE.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from benchmark import Numbers, benchmark, table
from measure import Clocked, clocked, in_process

REPEATS = 3
USERS = 10_000
RESAMPLES = 1_000
SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
THRESHOLDS = (0.7, 0.8, 0.9, 0.95)


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
        "user": np.sort(rng.integers(0, USERS, n)),
    }


def ours(columns: Columns) -> dict[str, float]:
    """Compute the default panel."""
    from srs_eval import score

    columns = {name: column for name, column in columns.items() if name != "user"}
    return dict(score(**columns))


def the_same_part(columns: Columns) -> dict[str, float]:
    """Compute what scikit-learn and relplot have of the panel, and nothing else."""
    from srs_eval import score
    from srs_eval.metrics.panel import Panel
    from srs_eval.metrics.scores import auc, brier, log_loss, mbe, normalized_entropy
    from srs_eval.metrics.smooth_ece import smece
    from srs_eval.metrics.threshold import threshold_metrics

    confusion = [m for m in threshold_metrics(THRESHOLDS) if m.name.startswith("confusion_tpr")]
    scores = [log_loss, normalized_entropy, brier, auc, mbe, smece, *confusion]
    return dict(score(columns["p"], columns["recalled"], panel=Panel(scores)))


def ours_with_intervals(columns: Columns) -> dict[str, float]:
    """Compute the default panel with intervals from resampling 10,000 users."""
    from srs_eval import score

    return dict(score(**columns, resamples=RESAMPLES))


def theirs(columns: Columns) -> dict[str, float]:
    """Compute what scikit-learn and relplot have of the panel."""
    import relplot
    from sklearn import metrics

    p, recalled = columns["p"], columns["recalled"]
    scores = {
        "log_loss": metrics.log_loss(recalled, p),
        "normalized_entropy": 1 - metrics.d2_log_loss_score(recalled, p),
        "brier": metrics.brier_score_loss(recalled, p),
        "auc": metrics.roc_auc_score(recalled, p),
        "mbe": float(np.mean(p - recalled)),
        "smece": relplot.smECE(p, recalled),
    }
    for threshold in THRESHOLDS:
        matrix = metrics.confusion_matrix(recalled, p >= threshold)
        at = str(threshold).replace(".", "_")
        scores[f"confusion_tpr_at_{at}"] = matrix[1, 1] / matrix[1].sum()
    return scores


WORK = {
    "srs_eval, default panel": ours,
    "srs_eval, the part that the last row computes": the_same_part,
    f"srs_eval, default panel and {RESAMPLES:,} resamples of users": ours_with_intervals,
    "scikit-learn and relplot, a part of it": theirs,
}


def timed(do: Callable[[Columns], dict[str, float]], n: int) -> Clocked[dict[str, float]]:
    """Time something on so many predictions, after it was done on a few."""
    do(invented(1_000))
    columns = invented(n)
    return clocked(lambda: do(columns))


def rows(sizes: Sequence[int], repeats: int) -> Iterator[list[object]]:
    """Time everything at every size, taking turns, and keep the time that took least."""
    for n in sizes:
        runs = [[in_process(timed, do, n) for do in WORK.values()] for _ in range(repeats)]
        best = [min(done, key=lambda m: m.result.cpu) for done in zip(*runs, strict=True)]
        _refuse_other_numbers(best[0].result.result, best[-1].result.result)
        for name, measured in zip(WORK, best, strict=True):
            cpu = measured.result.cpu
            yield [
                f"{n:,}",
                name,
                len(measured.result.result),
                f"{cpu:.3f}",
                f"{best[-1].result.cpu / cpu:.1f}",
                f"{measured.peak_bytes / 2**20:,.0f}",
            ]


def _refuse_other_numbers(one: dict[str, float], other: dict[str, float]) -> None:
    """Stop if the same metrics are not the same numbers."""
    for name, value in other.items():
        if abs(one[name] - value) > 1e-9:
            raise SystemExit(f"{name}: {one[name]} here, {value} there")


@benchmark("panel")
def main(sizes: Numbers = SIZES, repeats: int = REPEATS) -> str:
    """Return what everything costs at every size."""
    headers = ["predictions", "computed by", "numbers", "CPU s", "times faster", "peak MiB"]
    return table(headers, list(rows(sizes, repeats)))
