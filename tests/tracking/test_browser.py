"""The written view, in a real browser."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest

from srs_eval.tracking.items import Value
from srs_eval.tracking.mlflow_tracker import MlflowTracker
from srs_eval.tracking.tracker import RunInfo

SCRIPT = Path(__file__).parents[2] / "docs" / "make_screenshots.py"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chrome"))), None)


@pytest.mark.nightly
@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the PATH")
def test_the_view_shows_every_run_with_its_columns_and_sections(uri: str) -> None:
    specification = importlib.util.spec_from_file_location("make_screenshots", SCRIPT)
    assert specification is not None
    assert specification.loader is not None
    screenshots = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(screenshots)
    losses = {"avg on josh": 0.51, "fsrs6 on josh": 0.44, "lstm on josh": 0.43}
    for name, loss in losses.items():
        tracker = MlflowTracker(uri=uri, experiment="browser")
        tracker.start(RunInfo(name))
        values = {"test/log_loss": loss, "calib/smece": 0.02, "extra/number": 1.0}
        tracker.log([Value(*value) for value in values.items()])
        links = tracker.finish("finished")
    page = str(links.view_url).partition("/#/")[2]
    with screenshots.mlflow_ui(uri) as address, screenshots.Browser() as browser:
        browser.open(f"{address}/#/{page}", *losses, "test\n(1)", "calib\n(1)", "extra\n(1)")
        shown = browser.evaluate("document.body.innerText")
        assert shown.index("lstm on josh") < shown.index("fsrs6 on josh")
        assert shown.index("test\n(1)") < shown.index("calib\n(1)") < shown.index("extra\n(1)")
        table = page.replace("compareRunsMode=CHART", "compareRunsMode=TABLE")
        browser.open(f"{address}/#/{table}", *losses, "test/log_loss", "calib/smece", "0.43")
