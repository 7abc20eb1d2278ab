from __future__ import annotations

from srs_eval.tracking.items import Value
from srs_eval.tracking.nothing import NoTracker
from srs_eval.tracking.tracker import RunInfo, RunLinks, Tracker


def test_no_tracking_draws_the_items_and_keeps_none() -> None:
    drawn = []
    tracker: Tracker = NoTracker()
    tracker.start(RunInfo("run"))
    tracker.log(drawn.append(n) or Value(f"test/m{n}", n) for n in range(3))
    assert tracker.finish("finished") == RunLinks()
    assert drawn == [0, 1, 2]
