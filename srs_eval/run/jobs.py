"""The jobs of a command: run and recorded, with the leaderboard of those that were scored."""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from srs_eval.compute import stopping
from srs_eval.errors import (
    ConfigError,
    FolderInUseError,
    Pruned,
    ShardsMissingError,
    SrsEvalError,
)
from srs_eval.results.claim import claim
from srs_eval.results.files import OUTCOME, SUMMARY, read_json, write_json
from srs_eval.results.kept import has_parts
from srs_eval.results.result import Result
from srs_eval.results.run import job_number
from srs_eval.run.report import places
from srs_eval.text.addresses import without_secrets
from srs_eval.text.console import complain, say, shell
from srs_eval.text.table import Table

if TYPE_CHECKING:
    from srs_eval.comparison.verdict import Verdict

# Folder of a sweep's comparison, beside those of its jobs.
COMPARISON = "comparison"
_JOBS_NAMED = 5
# What the jobs of a sweep have remarked in this process, by its folder
_remarks: dict[Path, set[str]] = {}

T = TypeVar("T")
# What is done in turns: at each step something else may have its turn.
Steps = Generator[None, None, T]
# The label of a job, and what runs it in steps and returns how it ended and its result.
Planned = tuple[str, Callable[[], Steps[tuple["JobOutcome", Result | None]]]]
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
    # Without what its workers did while the job before it was ended
    seconds: float = 0.0
    run_id: str = ""  # Name of the run in the tracker's store; "" if there is none
    # How to open the tracker's pages, and the one that compares all runs
    ui_command: str | None = None
    view_url: str | None = None


def attempt(
    plan: Callable[[], Planned],
    *,
    label: str,
    folder: Path,
    sweep_folder: Path | None = None,
    metric: str = "log_loss",
) -> Steps[tuple[float, int]]:
    """Plan and run one job in steps, and record its outcome as ``job.json`` in its folder.

    Return the mean of a metric over users, NaN where there is none, and the exit status.

    Every error is printed and recorded, so that the next job of a sweep runs: in a line if the user
    can mend it, else with its traceback. `label` is that of the job until it is planned,
    `sweep_folder` the folder of all jobs, if this is one of several.
    """
    try:
        claimed = claim(folder)
    except FolderInUseError as error:
        complain(str(error))
        return math.nan, 1
    watch = _Stopwatch()
    outcome = JobOutcome(label, "interrupted", "stopped before its end", 1)
    with claimed:
        write_outcome(folder, outcome)
        shown, value = "", math.nan
        try:
            steps = _carry_out(plan, label, folder, sweep_folder)
            done, outcome, shown = yield from watch.time(steps)
            if done is not None and metric in done.facts.metrics:
                value = done.facts.metrics[metric].mean_users
        except (KeyboardInterrupt, SystemExit):
            shown = "interrupted" + _what_is_kept(folder, sweep_folder)
            raise
        finally:
            is_recorded = _record(folder, replace(outcome, seconds=watch.seconds))
            if shown:
                complain(shown)
        if outcome.exit_status == 0 and is_recorded:
            return value, 0
        return math.nan, max(outcome.exit_status, 1)


class _Stopwatch:
    """Times a job, but not while it is another's turn."""

    def __init__(self) -> None:
        self._began = time.perf_counter()

    def time(self, steps: Steps[T]) -> Steps[T]:
        """Take all steps, and return what they return."""
        with closing(steps):
            while True:
                try:
                    next(steps)
                except StopIteration as end:
                    result: T = end.value
                    return result
                paused = time.perf_counter()
                yield
                self._began += time.perf_counter() - paused

    @property
    def seconds(self) -> float:
        """Seconds that the job has taken."""
        return time.perf_counter() - self._began


def _carry_out(
    plan: Callable[[], Planned], label: str, folder: Path, sweep_folder: Path | None
) -> Steps[tuple[Result | None, JobOutcome, str]]:
    """Plan and run; return the result, how the job ended, and the message of an error."""
    status, kept = 1, True
    try:
        label, run = plan()
        outcome, result = yield from run()
    except Pruned as pruned:
        return None, JobOutcome(label, "pruned", str(pruned)), ""
    except ConfigError as error:
        status, message = 2, str(error)
        shown = message
    except SrsEvalError as error:
        stopping.check()  # an import that was interrupted fails in ways of its own
        shown = message = str(error)
        kept = not isinstance(error, ShardsMissingError)  # which says how to go on
    except OSError as error:
        shown = message = f"{error.strerror or error}: {error.filename or folder}"
    except Exception as error:  # noqa: BLE001 - a defect in one job must not end the others
        stopping.check()  # an import that was interrupted fails in ways of its own
        message = f"{type(error).__name__}: {error}"
        shown = f"unexpected error\n{traceback.format_exc().rstrip()}"
    else:
        return result, outcome, ""
    shown += _what_is_kept(folder, sweep_folder) if kept else ""
    return None, JobOutcome(label, "failed", without_secrets(message), status), shown


def _what_is_kept(folder: Path, sweep_folder: Path | None) -> str:
    """Return how to resume the run, if any user is finished."""
    if not has_parts(folder):
        return ""
    where = f"hydra.run.dir={folder}" if sweep_folder is None else f"hydra.sweep.dir={sweep_folder}"
    results = f"The results are in {folder}.\n" if (folder / SUMMARY).is_file() else ""
    return (
        f"\n{results}Finished users are kept; to go on, repeat the command with "
        f"{shell(['resume=true', where])}"
    )


def _record(folder: Path, outcome: JobOutcome) -> bool:
    """Write the outcome; where that cannot be, print why."""
    try:
        write_outcome(folder, outcome)
    except OSError as error:
        reason = error.strerror if folder.is_dir() else "it was removed or renamed during the run"
        complain(f"cannot write {folder}: {reason}; {outcome.status}: {outcome.message}")
        return False
    return True


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


def read_outcomes(folder: Path) -> list[tuple[Path, JobOutcome]]:
    """Read the outcomes of a sweep's jobs, in the order of their numbers."""
    jobs = sorted((place for place in folder.iterdir() if place.is_dir()), key=job_number)
    read = [(place, read_outcome(place)) for place in jobs]
    return [(place, outcome) for place, outcome in read if outcome is not None]


def remarks_of(sweep_folder: Path) -> set[str]:
    """Return the remarks that jobs of a sweep have printed in this process, to be added to."""
    return _remarks.setdefault(sweep_folder, set())


def report_jobs(folder: Path, *, report: bool = False) -> int:
    """Print the outcomes and the leaderboard of a sweep's jobs; return the exit status.

    With `report`, the comparisons are written into the folder.
    """
    from srs_eval.comparison.report.files import terminal_text  # not for a single run
    from srs_eval.comparison.report.sweep import sweep_verdicts

    _remarks.pop(folder, None)
    outcomes = read_outcomes(folder)
    if not outcomes:
        return 0
    say(_jobs_table([outcome for _, outcome in outcomes]))
    verdicts = sweep_verdicts([place for place, _ in outcomes if (place / SUMMARY).is_file()])
    for verdict in verdicts:
        say()
        say(terminal_text(verdict, of_sweep=True))
    pages = _written(verdicts, folder / COMPARISON) if report else []
    say()
    shown = [outcome for _, outcome in outcomes if outcome.view_url]
    where: dict[str, str | None] = {"results": str(folder)}
    if shown:
        where |= {"MLflow UI": shown[-1].ui_command, "all runs": shown[-1].view_url}
    say(places({**where, "report": ", ".join(map(str, pages)) or None}))
    return max(outcome.exit_status for _, outcome in outcomes)


def _written(verdicts: Sequence[Verdict], folder: Path) -> list[Path]:
    """Write each comparison as files and as a page; return the pages."""
    from srs_eval.comparison.report.files import write_files
    from srs_eval.comparison.report.html import write_html  # matplotlib: only to draw

    command = shell(["python", "-m", "srs_eval.compare", str(folder.parent)])
    pages = []
    for number, verdict in enumerate(verdicts):
        place = folder if len(verdicts) == 1 else folder / str(number)
        pages.append(write_html(verdict, place, command=command))
        write_files(verdict, place)
    return pages


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
