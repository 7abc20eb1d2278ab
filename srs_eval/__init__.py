"""Train and evaluate memory models of spaced repetition.

>>> import srs_eval as se
>>> result = se.evaluate("constant", "synthetic", users=2, size_scale=0.05, panel="quick")
>>> result.scores.index.tolist()
[1, 2]

`evaluate`, `fit`, `load` and `compare` are what ``python -m srs_eval`` and its other commands do.
With predictions made elsewhere, `score` is the panel of metrics. What people plug in (`Algorithm`,
`MemoryModel`, `Metric`, `Source`, …) is in `srs_eval.algorithms.algorithm`,
`srs_eval.data.reviews`, `srs_eval.protocol.task` and `srs_eval.metrics.metric`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from srs_eval.engine import cpu as cpu  # before anything imports NumPy

if TYPE_CHECKING:
    from srs_eval.algorithms.algorithm import Algorithm as Algorithm
    from srs_eval.api import compare as compare
    from srs_eval.api import evaluate as evaluate
    from srs_eval.api import load as load
    from srs_eval.evaluation.checks import check_algorithm as check_algorithm
    from srs_eval.fitting import fit as fit
    from srs_eval.inputs import algorithm as algorithm
    from srs_eval.inputs import source as source
    from srs_eval.metrics.panel import full_panel as full_panel
    from srs_eval.metrics.score import score as score
    from srs_eval.plots import plot_bins as plot_bins
    from srs_eval.plots import plot_calibration as plot_calibration
    from srs_eval.plots import plot_roc as plot_roc
    from srs_eval.plots import plot_temporal as plot_temporal
    from srs_eval.plots import plot_user_scores as plot_user_scores

__version__ = "1.0.0"

_NAMES = {
    "algorithms.algorithm": ("Algorithm",),
    "api": ("compare", "evaluate", "load"),
    "evaluation.checks": ("check_algorithm",),
    "fitting": ("fit",),
    "inputs": ("algorithm", "source"),
    "metrics.panel": ("full_panel",),
    "metrics.score": ("score",),
    "plots": ("plot_bins", "plot_calibration", "plot_roc", "plot_temporal", "plot_user_scores"),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Load a public name where it is used: `import srs_eval` alone costs nothing."""
    if name not in _HOME:
        raise AttributeError(f"module 'srs_eval' has no attribute {name!r}")
    return getattr(import_module(f"srs_eval.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    """List the public names."""
    return sorted([*_HOME, "__version__"])
