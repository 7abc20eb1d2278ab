"""Train and evaluate memory models of spaced repetition.

`python -m srs_eval` runs an experiment. From Python, the panel is `score`; the words people
plug into (`Algorithm`, `MemoryModel`, `Metric`, `Source`, …) are in `srs_eval.nouns`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from srs_eval.checks import check_algorithm as check_algorithm
    from srs_eval.metrics.panel import full_panel as full_panel
    from srs_eval.metrics.score import score as score
    from srs_eval.plots import plot_bins as plot_bins
    from srs_eval.plots import plot_calibration as plot_calibration
    from srs_eval.plots import plot_corp as plot_corp
    from srs_eval.plots import plot_recall_over_time as plot_recall_over_time
    from srs_eval.plots import plot_roc as plot_roc
    from srs_eval.plots import plot_temporal as plot_temporal
    from srs_eval.plots import plot_user_scores as plot_user_scores
    from srs_eval.plots import plot_versus as plot_versus

__version__ = "0.1.0"
__all__ = [
    "__version__",
    "check_algorithm",
    "full_panel",
    "plot_bins",
    "plot_calibration",
    "plot_corp",
    "plot_recall_over_time",
    "plot_roc",
    "plot_temporal",
    "plot_user_scores",
    "plot_versus",
    "score",
]

_HOME = {
    "check_algorithm": "srs_eval.checks",
    "full_panel": "srs_eval.metrics.panel",
    "plot_bins": "srs_eval.plots",
    "plot_calibration": "srs_eval.plots",
    "plot_corp": "srs_eval.plots",
    "plot_recall_over_time": "srs_eval.plots",
    "plot_roc": "srs_eval.plots",
    "plot_temporal": "srs_eval.plots",
    "plot_user_scores": "srs_eval.plots",
    "plot_versus": "srs_eval.plots",
    "score": "srs_eval.metrics.score",
}


def __getattr__(name: str) -> Any:
    """Load a public name where it is used: `import srs_eval` alone costs nothing."""
    if name not in _HOME:
        raise AttributeError(f"module 'srs_eval' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
