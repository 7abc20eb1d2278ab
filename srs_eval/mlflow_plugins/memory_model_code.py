"""The code of a logged memory model: MLflow runs a copy of this file when it loads one."""

from mlflow.models import set_model

from srs_eval.mlflow_plugins.memory_model import ServedMemoryModel

set_model(ServedMemoryModel())
