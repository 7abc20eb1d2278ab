"""The tracker that keeps nothing: results are in the output folder only."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from srs_eval.tracking.items import Item
from srs_eval.tracking.tracker import RunEnd, RunInfo, RunLinks


class NoTracker:
    """Discard every item; needs neither a store nor a network."""

    def start(self, run: RunInfo) -> None:
        """Begin a run that leaves no trace."""

    def log(self, items: Iterable[Item]) -> None:
        """Draw the items, so that a generator of them does its work, and drop them."""
        deque(items, maxlen=0)

    def finish(self, status: RunEnd) -> RunLinks:
        """End the run; there is nowhere to look."""
        return RunLinks()
