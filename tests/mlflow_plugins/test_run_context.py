"""How MLflow finds the plug-ins, and what runs begun while one is open are tagged with."""

import json
import os
import socket
import subprocess
from pathlib import Path

import pytest
from mlflow import MlflowClient
from mlflow_store import started

from srs_eval.tracking import run_facts
from srs_eval.tracking.items import Tag
from srs_eval.tracking.mlflow_tracker import MlflowTracker
from srs_eval.tracking.tracker import RunInfo

pytestmark = pytest.mark.filterwarnings("ignore")  # of MLflow's own


def test_runs_of_others_are_told_only_while_one_of_ours_is_open(global_uri):
    import mlflow

    with mlflow.start_run() as before:
        pass
    tracker = MlflowTracker(uri=global_uri)
    tracker.start(RunInfo("ours", tags={"protocol": "srs_benchmark", "label": "fsrs6"}))
    tracker.log([Tag("data_fingerprint", "abc"), Tag("note", "x")])
    with mlflow.start_run() as meanwhile:
        pass
    ours = tracker.finish("finished").run_id
    with mlflow.start_run() as after:
        pass
    client = MlflowClient()
    for run in (before, after):
        tags = client.get_run(run.info.run_id).data.tags
        assert {name for name in tags if not name.startswith("mlflow.")} == set()
    tags = client.get_run(meanwhile.info.run_id).data.tags
    assert (tags["protocol"], tags["data_fingerprint"]) == ("srs_benchmark", "abc")
    assert (tags["host"], tags["pid"]) == (socket.gethostname(), str(os.getpid()))
    assert tags["version.mlflow"]
    assert not {"label", "note"} & set(tags)
    tags = client.get_run(ours).data.tags
    assert (tags["label"], tags["pid"]) == ("fsrs6", str(os.getpid()))
    assert not [name for name in tags if name.startswith("version.")]
    kept = json.loads(Path(client.download_artifacts(ours, "environment.json")).read_text())
    assert kept["version.srs-eval"] == run_facts.process_facts()["version.srs-eval"]


def test_code_that_was_changed_since_its_commit_is_dirty(tmp_path):
    def git(*words):
        own = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
        subprocess.run(["git", *own, *words], cwd=tmp_path, check=True, capture_output=True)

    def is_dirty():
        run_facts.is_dirty.cache_clear()
        return run_facts.is_dirty(tmp_path)

    assert is_dirty() is None
    git("init")
    (tmp_path / "code.py").write_text("1\n")
    git("add", ".")
    git("commit", "-m", "first")
    assert is_dirty() is False
    (tmp_path / "output.txt").write_text("not under version control\n")
    assert is_dirty() is False
    (tmp_path / "code.py").write_text("2\n")
    assert is_dirty() is True
    run_facts.is_dirty.cache_clear()


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


@pytest.mark.slow
@pytest.mark.parametrize("first", ["import mlflow", "import srs_eval.mlflow_plugins.evaluation"])
def test_mlflow_registers_each_whatever_is_imported_first(first, tmp_path):
    started(tmp_path, "-c", PROGRAM.format(first=first))
