"""Run a job and record its outcome, including failures."""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from srs_eval.compute import stopping
from srs_eval.errors import (
    ConfigError,
    FolderInUseError,
    Pruned,
    ShardsMissingError,
    SrsEvalError,
)
from srs_eval.results.claim import claim
from srs_eval.results.files import SUMMARY
from srs_eval.results.kept import has_parts
from srs_eval.results.result import Result
from srs_eval.run.job import Done
from srs_eval.run.jobs import JobOutcome, write_outcome
from srs_eval.text.addresses import without_secrets
from srs_eval.text.console import complain, shell


class Attempt(NamedTuple):
    """Outcome of a job, for Hydra and for a search."""

    value: float  # Mean of the metric over users; NaN where there is none
    exit_status: int  # Exit status of the command


class Work(NamedTuple):
    """A job that is planned: its label, and the function that runs it."""

    label: str
    run: Callable[[], Done]


def attempt(
    make_plan: Callable[[], Work],
    *,
    label: str,
    folder: Path,
    sweep_folder: Path | None = None,
    metric: str = "log_loss",
) -> Attempt:
    """Plan and run one job, and record its outcome as ``job.json`` in its folder.

    Every error is printed and recorded, so that the next job of a sweep runs: in a line if the user
    can mend it, else with its traceback. `label` is that of the job until it is planned,
    `sweep_folder` the folder of all jobs, if this is one of several, and `metric` what is returned.
    """
    try:
        claimed = claim(folder)
    except FolderInUseError as error:
        complain(str(error))
        return Attempt(math.nan, 1)
    began = time.perf_counter()
    outcome = JobOutcome(label, "interrupted", "stopped before its end", 1)
    with claimed:
        write_outcome(folder, outcome)
        shown, done = "", None
        try:
            done, outcome, shown = _carry_out(make_plan, label, folder, sweep_folder)
        except (KeyboardInterrupt, SystemExit):
            shown = "interrupted" + _what_is_kept(folder, sweep_folder)
            raise
        finally:
            is_recorded = _record(folder, replace(outcome, seconds=time.perf_counter() - began))
            if shown:
                complain(shown)
        if outcome.exit_status == 0 and is_recorded:
            return Attempt(_mean(done, metric), 0)
        return Attempt(math.nan, max(outcome.exit_status, 1))


def _carry_out(
    make_plan: Callable[[], Work], label: str, folder: Path, sweep_folder: Path | None
) -> tuple[Result | None, JobOutcome, str]:
    """Plan and run; return the result, how the job ended, and the message of an error."""
    status, kept = 1, True
    try:
        label, run = make_plan()
        done = run()
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
        return done.result, done.outcome, ""
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


def _mean(result: Result | None, metric: str) -> float:
    summary = None if result is None else result.facts.metrics.get(metric)
    return math.nan if summary is None else summary.mean_users
