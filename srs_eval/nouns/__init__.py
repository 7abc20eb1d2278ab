"""The words every part of srs_eval shares: frozen values, and what people plug in.

Row numbers always count from 0 and always refer to the `Reviews` they travel with.
"""

from srs_eval.nouns.columns import (
    COLUMNS as COLUMNS,
    GROUPS as GROUPS,
)
from srs_eval.nouns.protocols import (
    Algorithm as Algorithm,
    CurveModel as CurveModel,
    EvaluationProtocol as EvaluationProtocol,
    FittingInSteps as FittingInSteps,
    MemoryModel as MemoryModel,
    Pretrainable as Pretrainable,
    Sampling as Sampling,
    PretrainedWeights as PretrainedWeights,
    SeenUser as SeenUser,
    Source as Source,
    WarmStarting as WarmStarting,
    has_curve as has_curve,
)
from srs_eval.nouns.values import (
    OPTIONAL_COLUMNS as OPTIONAL_COLUMNS,
    PREDICTION_COLUMNS as PREDICTION_COLUMNS,
    REVIEW_COLUMNS as REVIEW_COLUMNS,
    Better as Better,
    BoolArray as BoolArray,
    Contribution as Contribution,
    Curves as Curves,
    Fit as Fit,
    FitStatus as FitStatus,
    FloatArray as FloatArray,
    Fold as Fold,
    IntArray as IntArray,
    Learned as Learned,
    Matrix as Matrix,
    Part as Part,
    Predictions as Predictions,
    Reviews as Reviews,
    Task as Task,
    User as User,
    Vector as Vector,
    columns_of as columns_of,
)
from srs_eval.nouns.when import (
    WHEN as WHEN,
    When as When,
    latest as latest,
    when_named as when_named,
    when_of as when_of,
)
