"""MLflow finds each plug-in: one that fails to import is dropped with only a warning."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points

import pytest

PROGRAM = """
import warnings
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    {first}
    from mlflow.data.dataset_source_registry import _dataset_source_registry
    from mlflow.models.evaluation.evaluator_registry import _model_evaluation_registry
    from mlflow.tracking.context.registry import _run_context_provider_registry
assert not [w for w in told if "register" in str(w.message)], [str(w.message) for w in told]
sources = [source.__name__ for source in _dataset_source_registry.sources]
contexts = [type(provider).__name__ for provider in _run_context_provider_registry]
assert sources.count("ReviewLogSource") == 1, sources
assert contexts.count("SrsRunContext") == 1, contexts
assert _model_evaluation_registry.is_registered("srs_eval")
"""
NAMES = {
    "mlflow.model_evaluator": "srs_eval.mlflow_plugins.evaluator:SrsEvaluator",
    "mlflow.run_context_provider": "srs_eval.mlflow_plugins.run_context:SrsRunContext",
    "mlflow.dataset_source": "srs_eval.mlflow_plugins.dataset_source:ReviewLogSource",
}


def test_each_entry_point_names_its_class() -> None:
    for group, name in NAMES.items():
        values = {entry.value for entry in entry_points(group=group) if entry.name == "srs_eval"}
        assert values == {name}


@pytest.mark.slow
@pytest.mark.parametrize("first", ["import mlflow", "import srs_eval.mlflow_plugins.evaluation"])
def test_mlflow_registers_each_whatever_is_imported_first(first: str) -> None:
    words = [sys.executable, "-c", PROGRAM.format(first=first)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
