"""The small commands: compare, export, fit, score and prepare."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fnmatch import filter as matching
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import srs_eval
from srs_eval.errors import ConfigError, SrsEvalError
from srs_eval.runs.words import REQUIRED, complain, say, status

if TYPE_CHECKING:
    from srs_eval.comparison.entry import Entry
    from srs_eval.data.reviews import User
    from srs_eval.exports.formats import HandOver

# Functions import what they need: --help and wrong words do without.

_COMPARISONS = "srs_eval_comparisons"  # Their experiment in MLflow: they are no models in charts


def main(name: str, module: str = "__main__") -> None:
    """Run a command on `sys.argv`, and exit with its status.

    Where its module is imported, the function of that name takes its place, which it would hide.
    """
    if module == "__main__":
        sys.exit(status(*COMMANDS[name], sys.argv[1:]))
    sys.modules[module] = srs_eval.__getattr__(name)


@dataclass
class Compare:
    """Compare finished runs from their saved scores; nothing is fitted again.

      python -m srs_eval.compare outputs/2026-01-31/12-00-00_sweep           all runs in a folder
      python -m srs_eval.compare RUN OTHER_RUN baseline=fsrs6 metric=brier   folders of runs
      python -m srs_eval.compare results/per_user_metrics.parquet            published scores

    baseline=NAME    the run to compare the others with: name, algorithm or folder (avg)
    metric=NAME      any metric of the runs (log_loss)
    intersect=true   only reviews that all runs scored, instead of refusing runs that differ
    published=PATH published.models=A,B             published scores to list beside the runs
    out=FOLDER       for comparison.json, .csv, .md, .tex and report.html
    tracking=NAME tracking.KEY=VALUE    log the comparison as a run (mlflow, if the runs are there)
    """

    runs: list[str] = field(default_factory=list)
    baseline: str | None = None
    metric: str = "log_loss"
    out: str = ""
    intersect: bool = False
    published: dict[str, Any] = field(default_factory=dict)
    tracking: dict[str, Any] = field(default_factory=dict)
    choices: dict[str, str] = field(default_factory=lambda: {"published": "", "tracking": ""})


def compare(options: Compare) -> None:
    """Compare, print the result, write the files, and log them."""
    from srs_eval.comparison.compare import Report, read_runs
    from srs_eval.comparison.compare import compare as compared
    from srs_eval.runs.config import named_option

    out = Path(options.out or f"outputs/{datetime.now():%Y-%m-%d/%H-%M-%S}_compare").expanduser()
    runs, notes = read_runs([Path(run) for run in options.runs])
    published, models = options.choices["published"], str(options.published.get("models", "*"))
    others = _chosen(read_runs([Path(published)])[0], models) if published else []
    standings = compared(
        [*runs, *others],
        metric=options.metric,
        baseline=options.baseline,
        intersect=options.intersect,
        notes=notes,
    )
    files = standings.save(out, command=shlex.join(["srs_eval.compare", *sys.argv[1:]]))
    say(f"{standings}\n\nreport   {files[-1]}")
    tracking = options.choices["tracking"] or ("mlflow" if any(run.run for run in runs) else "none")
    if tracking != "none":
        values = {"experiment": _COMPARISONS, **options.tracking}
        tracker = named_option("tracking", tracking, values)
        say(tracker.log_comparison([Report(standings, files)], out))


def _chosen(runs: Sequence[Entry], models: str) -> list[Entry]:
    """Return the runs of some names or globs of names, whose case does not count."""
    named = {run.name.lower(): run for run in runs}
    names: list[str] = []
    for model in map(str.strip, models.lower().split(",")):
        names += (called := [model] if model in named else matching(named, model))
        if not called:
            raise ConfigError(f"published.models={model}: there are {', '.join(named)}")
    return [named[name] for name in dict.fromkeys(names)]


@dataclass
class Export:
    """Export a run: its fitted parameters to a scheduler, or its scores to srs-benchmark.

      python -m srs_eval.export outputs/2026-01-31/12-00-00 to=anki
      python -m srs_eval.export RUN to=py_fsrs user=7 out=scheduler.json
      python -m srs_eval.export RUN to=json out=parameters              a file of each user
      python -m srs_eval.export RUN to=srs_benchmark out=result         NAME.jsonl, a line per user

    to=anki             the list for Anki's field "FSRS parameters"
    to=py_fsrs          JSON for py-fsrs's Scheduler.from_json
    to=json             JSON for other programs
    to=srs_benchmark    scores and parameters, as srs-benchmark writes them, of one or several runs
    user=NAME           the user (the only one, or all with out=FOLDER)
    fold=NUMBER         the fold (the last, which has most training reviews)
    out=PATH            a file, as in out=one.json, or a folder for one of each (standard output)

    Nothing is fitted again. A fit that failed or was skipped is not exported: exit status 1.
    """

    run: Path = REQUIRED
    to: str = REQUIRED
    user: str | None = None
    fold: int | None = None
    out: str = ""


def export(options: Export) -> int:
    """Export the run."""
    from srs_eval.exports.fitted import RunFits
    from srs_eval.exports.formats import FORMATS

    if options.to == "srs_benchmark":
        return _export_results(options)
    if options.to not in FORMATS:
        raise ConfigError(f"to={options.to}: expected one of {', '.join(FORMATS)}, srs_benchmark")
    fits = RunFits.read(options.run)
    several = options.user is None and _is_folder(options.out)
    users = fits.users if several else [fits.user(options.user)]
    exported: dict[str, HandOver] = {}
    problems: list[SrsEvalError] = []
    for user in users:
        try:
            name, fitted = _file_name(user, options.to), fits.fitted(user, options.fold)
            exported[name] = FORMATS[options.to](fitted)
        except SrsEvalError as error:
            problems.append(error)
    if not exported:
        raise problems[0]
    _hand_over(exported, options.out)
    if problems:
        complain(f"{len(problems):,} users have no parameters (fits.parquet): {problems[0]}")
    return int(bool(problems))


def _export_results(options: Export) -> int:
    """Write runs as results of srs-benchmark."""
    from srs_eval.comparison.compare import read_runs
    from srs_eval.exports.srs_benchmark import RESULTS, result_rows

    if options.fold is not None:
        raise ConfigError("fold= goes with parameters: to=srs_benchmark has the scores of all")
    runs, notes = read_runs([options.run])
    results = [result_rows(run, options.user) for run in runs]
    texts = {f"{rows.name}{RESULTS}": rows.text for rows in results}
    earlier = [name for name in texts if Path(options.out, name).exists()]
    if earlier and _is_folder(options.out, RESULTS):  # published results have such names
        raise ConfigError(f"{options.out} has {', '.join(earlier)} already: name another place")
    _write(texts, options.out, RESULTS)
    for note in [*notes, *(f"{rows.name}: {note}" for rows in results for note in rows.notes)]:
        complain(note)
    return 0


def _hand_over(exported: Mapping[str, HandOver], out: str) -> None:
    """Write parameters, by the names of their files, and notes about them."""
    files = _write({name: each.text for name, each in exported.items()}, out)
    first, *others = exported.values()
    complain(first.learned if not others else "each fit is of reviews before those it is tested on")
    for note in dict.fromkeys(note for each in exported.values() for note in each.notes):
        complain(note)
    if files and first.python:
        say(f"python   {first.python.format(file=repr(str(files[0])))}")


def _write(texts: Mapping[str, str], out: str, ending: str = "") -> list[Path]:
    """Print a text, or write texts into a file, or into a folder under their names."""
    from srs_eval.runs.folder import whole

    place, in_folder = Path(out).expanduser(), _is_folder(out, ending)
    if len(texts) > 1 and not in_folder:
        raise ConfigError(f"there are {len(texts):,} results: name a folder, as in out=results")
    if not out:
        say(next(iter(texts.values())))
        return []
    files = [place / name if in_folder else place for name in texts]
    for file, text in zip(files, texts.values(), strict=True):
        with whole(file) as partial:
            partial.write_text(f"{text}\n", encoding="utf-8")
    say(f"written  {files[0] if len(files) == 1 else f'{len(files):,} files in {place}'}")
    return files


def _is_folder(out: str, ending: str = "") -> bool:
    """Whether files go into a folder: one that is there, or a name without their ending, or any."""
    is_file = Path(out).suffix == ending if ending else bool(Path(out).suffix)
    is_there = out.endswith(("/", os.sep)) or Path(out).expanduser().is_dir()
    return bool(out) and (is_there or not is_file)


def _file_name(user: User, to: str) -> str:
    """Return the name of a user's file, with unsafe characters escaped."""
    return f"user_{quote(str(user), safe=' ')}{'.txt' if to == 'anki' else '.json'}"


@dataclass
class Fit:
    """Fit an algorithm to all reviews of a log, for a scheduler; nothing is evaluated.

      python -m srs_eval.fit my.colpkg to=anki
      python -m srs_eval.fit my.colpkg to=anki algo=per_group    a list for each preset
      python -m srs_eval.fit log.csv to=json data.columns.card=item user=7

    to=anki|py_fsrs|json    as in srs_eval.export
    algo=NAME algo.KEY=VALUE    the algorithm (fsrs6)
    data.KEY=VALUE          arguments of the data, as in data.decks='Spanish*'
    user=NAME               the user (the only one)
    out=FILE                the file to write (standard output)
    """

    log: Path = REQUIRED
    to: str = REQUIRED
    user: str | None = None
    out: str = ""
    algo: dict[str, Any] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    choices: dict[str, str] = field(default_factory=lambda: {"algo": "fsrs6"})


def fit(options: Fit) -> None:
    """Fit, and hand the parameters over."""
    from srs_eval.fitting import fit as fitted

    arguments = {**options.algo, **options.data}
    models = fitted(options.choices["algo"], options.log, progress=False, **arguments)
    name = _file_name(options.user or next(iter(models.by_user)), options.to)
    _hand_over({name: models.export(options.to, user=options.user)}, options.out)


@dataclass
class Score:
    """Score predictions of other programs: a file with a line of JSON for each user.

      python -m srs_eval.score raw/FSRS-7.jsonl                            a table of metrics
      python -m srs_eval.score raw/FSRS-7.jsonl out=result/FSRS-7.jsonl    … and scores of each user

    A line is {"user": 1, "p": [0.91, …], "y": [1, …]}: predicted probabilities of recall and
    outcomes, as srs-benchmark writes them with --raw. RMSE(bins) needs lists elapsed_days,
    nth_review and lapses too. The scores of each user are a file that compare reads.
    """

    file: Path = REQUIRED
    out: str = ""


def score(options: Score) -> None:
    """Print the metrics, and write those of each user."""
    from srs_eval.exports.predicted import scored_lines
    from srs_eval.exports.srs_benchmark import RESULTS, result_rows
    from srs_eval.metrics.panel import default_panel
    from srs_eval.runs.report import table

    panel = default_panel()
    entry = scored_lines(options.file, panel)
    say(f"{entry.facts.users:,} users, {entry.scores.reviews.sum():,} reviews\n")
    say(f"{table(entry.facts, panel)}\n")
    if options.out:
        _write({f"{entry.name}{RESULTS}": result_rows(entry).text}, options.out, RESULTS)


@dataclass
class Prepare:
    """Write a table with the reviews of many users into a folder for each user.

      python -m srs_eval.prepare data=csv data.path=reviews.parquet data.columns.user=user out=logs

    All other options are those of data=csv or data=py_fsrs. data=partitioned reads the folder.
    """

    out: str = REQUIRED
    data: dict[str, Any] = field(default_factory=dict)
    choices: dict[str, str] = field(default_factory=lambda: {"data": "csv"})


def prepare(options: Prepare) -> None:
    """Write the folder."""
    from srs_eval.data.table import ReviewTable
    from srs_eval.data.table import prepare as prepared
    from srs_eval.places import Place
    from srs_eval.runs.config import named_option

    source = named_option("data", options.choices["data"], options.data)
    if not isinstance(source, ReviewTable):
        raise ConfigError(f"data={source.name}: expected data=csv or data=py_fsrs, a table")
    out = Place.of(options.out)
    users, rows = prepared(source, out)
    say(f"{out}: {rows:,} reviews of {users:,} users, for data=partitioned data.path={out}")


COMMANDS: Mapping[str, tuple[type[Any], Callable[[Any], int | None]]] = {
    "compare": (Compare, compare),
    "export": (Export, export),
    "fit": (Fit, fit),
    "score": (Score, score),
    "prepare": (Prepare, prepare),
}
