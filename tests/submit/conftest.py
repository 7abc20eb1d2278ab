"""A leaderboard of small submissions, made by the code that users run."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from submissions import WRITTEN

from srs_eval import results
from srs_eval.algorithms.baselines import Average, Constant
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.experiment.description import described
from srs_eval.experiment.evaluate import evaluate
from srs_eval.experiment.experiment import Experiment
from srs_eval.metrics.bins import RmseBins
from srs_eval.metrics.calibration import Ece, MeanBias
from srs_eval.metrics.discrimination import Auc
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.proper import Brier, LogLoss
from srs_eval.metrics.threshold import Confusion
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.submit.writing import submit_run

PANEL = Panel(
    [LogLoss(), Brier(), MeanBias(), Ece(), RmseBins(), Auc(), Confusion("tpr", 0.85)],
    pooled=False,
)
DATA = {"users": 3, "seed": 5, "size_scale": 0.02, "max_reviews": 900, "version": 2}
ALGORITHMS = {"avg": Average(), "constant": Constant(0.8)}


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """Folders of finished runs by their labels."""
    folder = tmp_path_factory.mktemp("runs")
    source, protocol = SyntheticUsers(**DATA), SrsBenchmark()
    for name, algorithm in ALGORITHMS.items():
        content: dict[str, Any] = {
            "algo": {
                "_target_": f"srs_eval.algorithms.baselines.{type(algorithm).__name__}",
                **({"p": 0.8} if name == "constant" else {}),
            },
            "data": {"_target_": "srs_eval.data.synthetic.SyntheticUsers", **DATA},
            "protocol": {"_target_": "srs_eval.protocol.srs_benchmark.SrsBenchmark"},
            "panel": {"_target_": "srs_eval.metrics.panel.Panel"},
            "seed": 1,
            "name": None,
            "notes": "",
            "tags": {},
        }
        built = {"algo": algorithm, "data": source, "protocol": protocol, "panel": PANEL}
        choices = {"algo": name, "data": "synthetic", "protocol": "p", "panel": "quick"}
        about = described(built, content, choices, usual={}, further_tags={})
        result = evaluate(Experiment(algorithm, source, protocol, PANEL, seed=1))
        result = result.described(name, name, "synthetic", about.tags)
        results.save(result, folder / name)
        (folder / name / ".hydra").mkdir()
        (folder / name / ".hydra/config.yaml").write_text(yaml.safe_dump(content))
    return {name: folder / name for name in ALGORITHMS}


@pytest.fixture(scope="session")
def good(runs: Mapping[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A leaderboard without problems; tests change copies."""
    folder = tmp_path_factory.mktemp("leaderboard")
    for name, run in runs.items():
        submit_run(run, folder / name, WRITTEN, predictions=name == "avg")
    return folder


@pytest.fixture
def board(good: Path, tmp_path: Path) -> Path:
    """A copy of the leaderboard."""
    return Path(shutil.copytree(good, tmp_path / "leaderboard"))
