"""The code of a logged memory model: MLflow runs a copy of this file when it loads one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
from mlflow.models import set_model
from mlflow.pyfunc.model import PythonModel

from srs_eval.runs.mlflow_model import CurvesOfCards


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


set_model(ServedMemoryModel())
