"""A memory model as MLflow loads it; `curves_of_cards` has its input and output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
from mlflow.pyfunc.model import PythonModel

from srs_eval.mlflow_plugins.curves_of_cards import CurvesOfCards


class ServedMemoryModel(PythonModel):
    """Forgetting curves of cards, given their histories."""

    def load_context(self, context: Any) -> None:
        """Build the model from its JSON."""
        text = Path(context.artifacts["model"]).read_text(encoding="utf-8")
        self.curves = CurvesOfCards(json.loads(text))

    def predict(
        self, context: Any, model_input: pd.DataFrame, params: dict[str, Any] | None = None
    ) -> pd.DataFrame:
        """Predict the curves: see `CurvesOfCards`."""
        return self.curves(model_input, (params or {})["days"])
