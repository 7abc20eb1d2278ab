from __future__ import annotations

import subprocess
import sys

from srs_eval.tracking.items import Value
from srs_eval.tracking.nothing import NoTracker
from srs_eval.tracking.tracker import RunInfo, RunLinks, Tracker

PROGRAM = """
import sys
from srs_eval.tracking.items import Value
from srs_eval.tracking.mlflow_tracker import MlflowTracker
from srs_eval.tracking.nothing import NoTracker
from srs_eval.tracking.tracker import RunInfo
MlflowTracker(uri="sqlite:///x.db")
tracker = NoTracker()
tracker.start(RunInfo("run"))
tracker.log([Value("test/log_loss", 0.5)])
tracker.finish("finished")
heavy = {"mlflow", "sqlalchemy", "requests", "pandas", "torch"} & set(sys.modules)
sys.exit(", ".join(heavy) or 0)
"""


def test_no_tracking_draws_the_items_and_keeps_none() -> None:
    drawn = []
    tracker: Tracker = NoTracker()
    tracker.start(RunInfo("run"))
    tracker.log(drawn.append(n) or Value(f"test/m{n}", n) for n in range(3))
    assert tracker.finish("finished") == RunLinks()
    assert drawn == [0, 1, 2]


def test_neither_no_tracking_nor_an_option_of_mlflow_imports_mlflow() -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
