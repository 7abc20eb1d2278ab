"""The end of a sweep: one comparison for each set of runs on the same reviews."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from srs_eval.comparison.baseline import in_percent
from srs_eval.comparison.compare import compare, directions
from srs_eval.comparison.entry import Entry, read_entry, with_own_names
from srs_eval.comparison.matching import shared_users
from srs_eval.comparison.report.files import terminal_text, tidy, write_files
from srs_eval.comparison.verdict import Verdict
from srs_eval.comparison.words import counted
from srs_eval.errors import SrsEvalError
from srs_eval.runs.folder import job_number

_RANKED_BY = "log_loss"


@dataclass(frozen=True, slots=True)
class Standings:
    """A comparison, as it is shown and logged; only `problem` where they cannot be compared."""

    text: str = ""  # For the terminal
    table: pd.DataFrame = field(default_factory=pd.DataFrame)  # A row for each run and weighting
    files: list[Path] = field(default_factory=list)
    # By folder of a job: its means above those of the baseline, in percent
    against: Mapping[Path, Mapping[str, float]] = field(default_factory=dict)
    problem: str = ""

    @property
    def failed(self) -> bool:
        """Whether there was a problem."""
        return bool(self.problem)


def compare_jobs(
    folders: Sequence[Path], folder: Path, *, report: bool, command: str
) -> list[Standings]:
    """Compare the jobs of a sweep that scored the same reviews, and write the files.

    Files are written into the folder of the sweep or, if there are several comparisons, into
    folders in it; `report` adds the page. `command` is the command line, for the end of the page.
    """
    try:
        jobs = map(read_entry, sorted(folders, key=job_number))
        groups = grouped([job for job in jobs if job.rows])
    except SrsEvalError as error:
        return [Standings(problem=str(error))]
    standings = []
    for number, group in enumerate(groups, 1):
        place = folder if len(groups) == 1 else folder / f"comparison_{number}"
        try:
            standings.append(written(compare_group(group), place, report=report, command=command))
        except (SrsEvalError, OSError) as error:
            standings.append(Standings(problem=f"{group[0].name} and others: {error}"))
    return standings


def written(verdict: Verdict, place: Path, *, report: bool, command: str) -> Standings:
    """Write the files of a comparison into a folder; `report` adds the page."""
    files = write_files(verdict, place)
    if report:
        from srs_eval.comparison.report.html import write_html  # matplotlib: only to draw

        files.append(write_html(verdict, place, command=command))
    baseline = verdict.runs[verdict.baseline]
    against = {run.place: in_percent(run, baseline) for run in verdict.paired.every_run}
    return Standings(terminal_text(verdict), pd.DataFrame(tidy(verdict)), files, against)


def grouped(entries: Sequence[Entry]) -> list[list[Entry]]:
    """Group what is of the same data and protocol and shares users, if any metric ranks it."""
    groups: list[list[Entry]] = []
    for entry in entries:
        group = next((group for group in groups if _comparable([*group, entry])), None)
        if group is None:
            groups.append([entry])
        else:
            group.append(entry)
    return [group for group in groups if directions(group)]


def _comparable(entries: Sequence[Entry]) -> bool:
    settings = {(entry.facts.data, entry.protocol) for entry in entries}
    return len(settings) == 1 and len(shared_users(entries)) > 0


def compare_group(group: Sequence[Entry]) -> Verdict:
    """Compare a group on the users they share, without those of less than half as many users."""
    group = with_own_names(group)
    most = max(len(entry.rows) for entry in group)
    ranked = [entry for entry in group if 2 * len(entry.rows) >= most]
    notes = [
        f"{entry.marked} scored only {counted(len(entry.rows), 'user')} and is not ranked"
        for entry in group
        if 2 * len(entry.rows) < most
    ]
    metric = _RANKED_BY if _RANKED_BY in directions(ranked) else next(iter(directions(ranked)))
    return compare(ranked, metric=metric, users=shared_users(ranked), notes=notes)
