"""The end of a sweep: one comparison for each set of runs on the same reviews."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from srs_eval.comparison.answer import terminal
from srs_eval.comparison.compare import compare, directions
from srs_eval.comparison.entry import Entry, read_entry, with_own_names
from srs_eval.comparison.files import HTML, write_files
from srs_eval.comparison.pairing import shared_users
from srs_eval.comparison.standings import Standings
from srs_eval.comparison.words import counted
from srs_eval.errors import SrsEvalError
from srs_eval.runs.folder import job_number

_RANKED_BY = "log_loss"


@dataclass(frozen=True, slots=True)
class Report:
    """A comparison, as it is shown and logged; only `problem` where there is none."""

    text: str = ""  # For the terminal
    table: pd.DataFrame = field(default_factory=pd.DataFrame)  # The frame
    files: Sequence[Path] = ()
    # By folder of a job: its mean above that of the baseline, in percent
    against: Mapping[Path, Mapping[str, float]] = field(default_factory=dict)
    problem: str = ""

    @property
    def page(self) -> Path | None:
        """The page for a browser."""
        return next((file for file in self.files if file.name == HTML), None)


def compare_jobs(folders: Sequence[Path], folder: Path, *, command: str) -> list[Report]:
    """Compare the jobs of a sweep that scored the same reviews, and write the files.

    Files are written into the folder of the sweep or, if there are several comparisons, into
    folders in it. `command` is the command line, for the end of the page.
    """
    try:
        groups = grouped([*map(read_entry, sorted(folders, key=job_number))])
    except SrsEvalError as error:
        return [Report(problem=str(error))]
    reports = []
    for number, group in enumerate(groups, 1):
        place = folder if len(groups) == 1 else folder / f"comparison_{number}"
        try:
            reports.append(report(compare_group(group), place, command=command))
        except (SrsEvalError, OSError) as error:
            reports.append(Report(problem=f"{group[0].name} and others: {error}"))
    return reports


def report(standings: Standings, place: Path, *, command: str) -> Report:
    """Write the files of a comparison into a folder."""
    files = write_files(standings, place, command=command)
    percents = standings.rows.to_baseline_percent.dropna()
    against = {
        run.place: {standings.metric: float(percents[run.name])}
        for run in standings.runs
        if run.name in percents
    }
    return Report(terminal(standings), standings.frame, files, against)


def grouped(entries: Sequence[Entry]) -> list[list[Entry]]:
    """Group what is of the same data and protocol and shares users, or has none, and is ranked."""
    groups: list[list[Entry]] = []
    for entry in sorted(entries, key=lambda entry: not entry.rows):  # the empty ones last
        about = entry.facts.data, entry.facts.protocol
        for group in groups:
            first = group[0].facts
            alike = not entry.rows or shared_users([*group, entry])
            if alike and about == (first.data, first.protocol):
                group.append(entry)
                break
        else:
            groups.append([entry])
    return [group for group in groups if group[0].rows and directions(group)]


def compare_group(group: Sequence[Entry]) -> Standings:
    """Compare a group on the users they share, without those of less than half as many users."""
    group = with_own_names(group)
    most = max(len(entry.rows) for entry in group)
    ranked = [entry for entry in group if 2 * len(entry.rows) >= most]
    notes = [
        f"{entry.name} scored {len(entry.rows):,} of {counted(most, 'user')} and is not ranked"
        for entry in group
        if 2 * len(entry.rows) < most
    ]
    metrics = directions(ranked)
    metric = _RANKED_BY if _RANKED_BY in metrics else next(iter(metrics))
    return compare(ranked, metric=metric, users=shared_users(ranked), notes=notes)
