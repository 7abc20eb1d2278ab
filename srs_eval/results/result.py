"""The result of evaluating one algorithm on a set of users."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from srs_eval.evaluation.scoring import Scores
from srs_eval.nouns import Fit, User
from srs_eval.results.files import PREDICTIONS
from srs_eval.results.predicted import Predicted
from srs_eval.results.summary import Summary
from srs_eval.results.tables import concatenated, fits_table, scores_table

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Result:
    """Everything that is known of a run: to be shown, saved, compared or logged.

    The properties `scores`, `summary`, `fits` and `predictions` are pandas data frames. The
    attributes hold the same as exact values.
    """

    # What was run, and the panel with its intervals: the content of ``summary.json``
    facts: Summary
    by_user: Scores  # The panel of each user
    fitted: Sequence[Fit]  # Every fit
    # Predictions and forgetting curves, one user at a time; of no user where they were not kept
    predicted: Predicted
    folder: Path | None = None  # Folder the result is saved in

    @property
    def complete(self) -> tuple[User, ...]:
        """Users without a missing fold, which the summary is about."""
        return self.by_user.complete

    @property
    def reviews_read(self) -> int | None:
        """Reviews in the logs, scored or not; None where that is not known."""
        return self.facts.coverage.reviews if self.facts.coverage else None

    @property
    def scores(self) -> pd.DataFrame:
        """One row per user: scored reviews, their digest, and each metric."""
        return _frame(scores_table(self.by_user)).set_index("user")

    @property
    def summary(self) -> pd.DataFrame:
        """One row per metric: means over users and reviews, pooled value and intervals."""
        import pandas as pd  # slow to import, and not needed by the command

        rows = {name: asdict(row) for name, row in self.facts.metrics.items()}
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("metric")

    @property
    def fits(self) -> pd.DataFrame:
        """One row per fit: status, reason, time, number of reviews, and parameters."""
        return _frame(fits_table(self.fitted))

    @property
    def predictions(self) -> pd.DataFrame:
        """One row per scored review: user, number of the card, prediction, outcome and others.

        Cards have the numbers of `Reviews.card`, also where the log has names for them.
        """
        tables = list(self.predicted.tables(PREDICTIONS))
        return _frame(concatenated(tables) if tables else pa.table({}))


def _frame(table: pa.Table) -> pd.DataFrame:
    frame: pd.DataFrame = table.to_pandas()
    return frame
