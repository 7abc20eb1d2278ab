"""Outcomes of the jobs of a command, and the leaderboard of those that were scored."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from srs_eval.results.files import OUTCOME, SUMMARY, read_json, write_json
from srs_eval.results.run import job_number
from srs_eval.run.report import places
from srs_eval.text.console import say
from srs_eval.text.table import Table

if TYPE_CHECKING:
    from srs_eval.comparison.verdict import Verdict

# Folder of a sweep's comparison, beside those of its jobs.
COMPARISON = "comparison"
_JOBS_NAMED = 5
# What the jobs of a sweep have remarked in this process, by its folder
_remarks: dict[Path, set[str]] = {}

JobStatus = Literal["ok", "skipped", "pruned", "failed", "interrupted"]


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """How a job ended; its folder holds it as ``job.json``."""

    label: str  # The algorithm with its arguments
    # ``ok``; ``skipped`` if no user could be scored, for stated reasons; ``failed`` if any fit or
    # the job itself failed; ``interrupted`` while it runs and if it never ended
    status: JobStatus
    message: str = ""  # Reason of anything but ``ok``
    # What the command returns for it: 0, 1 for a failure, 2 for a configuration error
    exit_status: int = 0
    seconds: float = 0.0
    run_id: str = ""  # Name of the run in the tracker's store; "" if there is none
    # How to open the tracker's pages, and the one that compares all runs
    ui_command: str | None = None
    view_url: str | None = None


def write_outcome(folder: Path, outcome: JobOutcome) -> None:
    """Write the outcome of a job into its folder."""
    write_json(folder / OUTCOME, asdict(outcome))


def forget_outcomes(folder: Path) -> None:
    """Let jobs that an earlier sweep has left in a folder not pass for jobs of the next one.

    Their results stay, and so does a file of that name that no job has written.
    """
    for place in folder.glob("*/"):
        if read_outcome(place) is not None:
            (place / OUTCOME).unlink()


def read_outcome(folder: Path) -> JobOutcome | None:
    """Read how the job in a folder ended; None if there has been none."""
    with suppress(TypeError, ValueError, OSError):
        return JobOutcome(**read_json(folder / OUTCOME))
    return None


def read_outcomes(folder: Path, *, is_sweep: bool) -> list[tuple[Path, JobOutcome]]:
    """Read the outcomes of a command, in the order its jobs were numbered."""
    folders = [folder]
    if is_sweep:
        folders = sorted((p for p in folder.iterdir() if p.is_dir()), key=job_number)
    read = [(place, read_outcome(place)) for place in folders]
    return [(place, outcome) for place, outcome in read if outcome is not None]


def remarks_of(sweep_folder: Path) -> set[str]:
    """Return the remarks that jobs of a sweep have printed in this process, to be added to."""
    return _remarks.setdefault(sweep_folder, set())


def report_jobs(folder: Path, *, is_sweep: bool, report: bool = False) -> int:
    """Print the outcomes and the leaderboard of a sweep's jobs; return the exit status.

    A single job has printed its own table already. With `report`, the comparisons are written into
    the folder.
    """
    _remarks.pop(folder, None)
    outcomes = read_outcomes(folder, is_sweep=is_sweep)
    if is_sweep and outcomes:
        from srs_eval.comparison.report.files import terminal_text  # not for a single run
        from srs_eval.comparison.report.sweep import sweep_verdicts

        say(_jobs_table([outcome for _, outcome in outcomes]))
        scored = [place for place, _ in outcomes if (place / SUMMARY).is_file()]
        verdicts = sweep_verdicts(scored)
        for verdict in verdicts:
            say()
            say(terminal_text(verdict, of_sweep=True))
        pages = _written(verdicts, folder / COMPARISON) if report else []
        say()
        found = _places(folder, [outcome for _, outcome in outcomes])
        say(places({**found, "report": ", ".join(map(str, pages)) or None}))
    return max((outcome.exit_status for _, outcome in outcomes), default=0)


def _written(verdicts: Sequence[Verdict], folder: Path) -> list[Path]:
    """Write each comparison as files and as a page; return the pages."""
    from srs_eval.comparison.report.files import write_files
    from srs_eval.comparison.report.html import write_html  # matplotlib: only to draw

    pages, command = [], f"python -m srs_eval.compare {folder.parent}"
    for number, verdict in enumerate(verdicts):
        place = folder if len(verdicts) == 1 else folder / str(number)
        pages.append(write_html(verdict, place, command=command))
        write_files(verdict, place)
    return pages


def _places(folder: Path, outcomes: Sequence[JobOutcome]) -> dict[str, str | None]:
    shown = [outcome for outcome in outcomes if outcome.view_url]
    return {
        "results": str(folder),
        "MLflow UI": shown[-1].ui_command if shown else None,
        "all runs": shown[-1].view_url if shown else None,
    }


def _jobs(numbers: Sequence[int]) -> str:
    """Return which jobs are meant.

    >>> _jobs([3]), _jobs([0, 1]), _jobs(range(40))
    ('job 3', 'jobs 0, 1', 'jobs 0, 1, 2, 3, 4 and 35 more')
    """
    named = ", ".join(map(str, numbers[:_JOBS_NAMED]))
    more = len(numbers) - _JOBS_NAMED
    return f"job{'s' * (len(numbers) > 1)} {named}" + (f" and {more:,} more" if more > 0 else "")


def _jobs_table(outcomes: Sequence[JobOutcome]) -> str:
    rows = [(str(n), o.label, o.status, f"{o.seconds:.1f} s") for n, o in enumerate(outcomes)]
    alike: dict[str, list[int]] = {}
    for n, outcome in enumerate(outcomes):
        if outcome.message:
            alike.setdefault(outcome.message, []).append(n)
    reasons = [f"{_jobs(numbers)}: {message}" for message, numbers in alike.items()]
    shown = Table(["job", "algorithm", "status", "time"], rows, "lll").write()
    return "\n".join([shown, "", *reasons] if reasons else [shown])
