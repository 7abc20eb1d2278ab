"""The protocol of trackers, which log the items of a run, and the one that keeps nothing."""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from srs_eval.errors import Pruned
from srs_eval.tracking.items import Item, Tag

RunEnd = Literal["finished", "failed", "killed"]


@dataclass(frozen=True, slots=True)
class RunInfo:
    """Description of a run before it starts."""

    name: str  # Name of the run in lists, such as ``fsrs6 on synthetic``
    # Facts to find the run by; ``sweep_id`` joins the runs of one sweep
    tags: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None  # Where the run puts its files
    resumes: bool = False  # Whether it resumes an earlier run in that folder


@dataclass(frozen=True, slots=True)
class RunLinks:
    """Links to a finished run."""

    run_id: str = ""  # Name of the run in its store, "" where nothing was kept
    # Pages of the run and of all runs compared. If there is a `ui_command`, they answer while that
    # command runs
    run_url: str | None = None
    view_url: str | None = None
    # What to type to open the pages; None where a server already shows them
    ui_command: str | None = None


def sweep_id(folder: Path) -> str:
    """Return the identifier of a sweep: the name of its folder and a digest of its path."""
    text = json.dumps({"folder": str(folder)})
    return f"{folder.name}-{hashlib.sha256(text.encode()).hexdigest()[:6]}"


class Tracker(Protocol):
    """Logs the items of one run at a time.

    Every call may raise `srs_eval.errors.TrackingError`; the caller's results are in the
    output folder by then, so that nothing is lost.
    """

    def start(self, run: RunInfo) -> None:
        """Begin a run."""
        ...

    def log(self, items: Iterable[Item]) -> None:
        """Log items of the run; may be called any number of times."""
        ...

    def finish(self, status: RunEnd) -> RunLinks:
        """End the run and return its links."""
        ...


class NoTracker:
    """Discard every item: results are in the output folder only."""

    def start(self, run: RunInfo) -> None:
        """Begin a run that leaves no trace."""

    def log(self, items: Iterable[Item]) -> None:
        """Draw the items, so that a generator of them does its work, and drop them."""
        deque(items, maxlen=0)

    def finish(self, status: RunEnd) -> RunLinks:
        """End the run; there is nowhere to look."""
        return RunLinks()


@dataclass(slots=True)
class TrackedRun:
    """How a run is to end if there is no error, and once it has ended, where it can be seen."""

    end: RunEnd = "finished"
    links: RunLinks = field(default_factory=RunLinks)


@contextmanager
def tracked(tracker: Tracker, run: RunInfo) -> Iterator[TrackedRun]:
    """Begin a run, and end it: as killed if it is interrupted or pruned, as failed on an error."""
    tracker.start(run)
    begun = TrackedRun()
    end: RunEnd = "failed"
    try:
        yield begun
        end = begun.end
    except (KeyboardInterrupt, GeneratorExit):
        end = "killed"
        raise
    except Pruned:
        tracker.log([Tag("outcome", "pruned")])
        end = "killed"
        raise
    finally:
        # a tracker of a plug-in may have nothing to show, and return nothing
        begun.links = tracker.finish(end) or RunLinks()
