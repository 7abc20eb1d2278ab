"""The words every part of srs_eval shares: frozen values, and what people plug in.

Row numbers always count from 0 and always refer to the `Reviews` they travel with.
"""

from srs_eval.nouns.protocols import (
    Algorithm,
    CurveModel,
    EvaluationProtocol,
    FittingInSteps,
    MemoryModel,
    Metric,
    Pretrainable,
    PretrainedWeights,
    ProperScore,
    SeenUser,
    Source,
    WarmStarting,
)
from srs_eval.nouns.values import (
    REVIEW_COLUMNS,
    Better,
    BoolArray,
    Curves,
    Fit,
    FitStatus,
    FloatArray,
    Fold,
    IntArray,
    Learned,
    Predictions,
    Reviews,
    Task,
    User,
)

__all__ = [
    "REVIEW_COLUMNS",
    "Algorithm",
    "Better",
    "BoolArray",
    "CurveModel",
    "Curves",
    "EvaluationProtocol",
    "Fit",
    "FitStatus",
    "FittingInSteps",
    "FloatArray",
    "Fold",
    "IntArray",
    "Learned",
    "MemoryModel",
    "Metric",
    "Predictions",
    "Pretrainable",
    "PretrainedWeights",
    "ProperScore",
    "Reviews",
    "SeenUser",
    "Source",
    "Task",
    "User",
    "WarmStarting",
]
