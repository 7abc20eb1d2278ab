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

from srs_eval import cpu as cpu  # before anything imports NumPy

if TYPE_CHECKING:
    from srs_eval.algorithms.algorithm import Algorithm as Algorithm
    from srs_eval.api.comparing import compare as compare
    from srs_eval.api.evaluating import evaluate as evaluate
    from srs_eval.api.evaluating import load as load
    from srs_eval.api.fitting import fit as fit
    from srs_eval.api.inputs import algorithm as algorithm
    from srs_eval.api.inputs import source as source
    from srs_eval.evaluation.checks import check_algorithm as check_algorithm
    from srs_eval.metrics.panel import full_panel as full_panel
    from srs_eval.metrics.score import score as score
    from srs_eval.plots import plot_bins as plot_bins
    from srs_eval.plots import plot_calibration as plot_calibration
    from srs_eval.plots import plot_roc as plot_roc
    from srs_eval.plots import plot_temporal as plot_temporal
    from srs_eval.plots import plot_user_scores as plot_user_scores

__version__ = "0.2.0"
__all__ = [
    "Algorithm",
    "__version__",
    "algorithm",
    "check_algorithm",
    "compare",
    "evaluate",
    "fit",
    "full_panel",
    "load",
    "plot_bins",
    "plot_calibration",
    "plot_roc",
    "plot_temporal",
    "plot_user_scores",
    "score",
    "source",
]

_HOME = {
    **dict.fromkeys(("evaluate", "load"), "srs_eval.api.evaluating"),
    **dict.fromkeys(("algorithm", "source"), "srs_eval.api.inputs"),
    "Algorithm": "srs_eval.algorithms.algorithm",
    "check_algorithm": "srs_eval.evaluation.checks",
    "compare": "srs_eval.api.comparing",
    "fit": "srs_eval.api.fitting",
    "full_panel": "srs_eval.metrics.panel",
    "score": "srs_eval.metrics.score",
}


def __getattr__(name: str) -> Any:
    """Load a public name where it is used: `import srs_eval` alone costs nothing."""
    if name not in __all__:
        raise AttributeError(f"module 'srs_eval' has no attribute {name!r}")
    return getattr(import_module(_HOME.get(name, "srs_eval.plots")), name)


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
