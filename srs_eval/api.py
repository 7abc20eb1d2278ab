"""`srs_eval.evaluate`, `load` and `compare`: for scripts and notebooks."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from srs_eval.comparison.compare import compare as compared
from srs_eval.comparison.compare import read_runs
from srs_eval.comparison.standings import Standings
from srs_eval.inputs import AlgorithmLike, DataLike, setup_of
from srs_eval.metrics.panel import Panel
from srs_eval.protocol.task import EvaluationProtocol
from srs_eval.results import RunResult, Temporary
from srs_eval.runs.compute import Processes, Serial
from srs_eval.runs.evaluation import Checkpoint, refuse_lookahead
from srs_eval.runs.evaluation import evaluate as evaluated
from srs_eval.runs.folder import CONFIG, Run, claimed, save


def evaluate(
    algorithm: AlgorithmLike,
    data: DataLike,
    *,
    protocol: str | EvaluationProtocol | None = None,
    panel: str | Panel | None = None,
    seed: int | None = None,
    workers: int | None = 1,
    folder: str | Path | None = None,
    name: str | None = None,
    curves_per_user: int | None = None,
    fail_fast: bool | None = None,
    fit_timeout: float | None = None,
    check_lookahead: bool | None = None,
    progress: bool = True,
    **options: Any,
) -> RunResult:
    """Evaluate an algorithm on review logs: the same numbers as ``python -m srs_eval``.

    Nothing is printed or logged. A fit that fails is reported in the result, and is not
    replaced; only where all fits of the first three users fail alike is an error raised.

    Parameters
    ----------
    algorithm : str or Algorithm
        Name of an option such as ``fsrs6``, or an object of your own.
    data : str, Path, table or Source
        A path, a table in memory such as a pandas or polars frame, the name of an option such as
        ``synthetic``, or an object of your own: see `source`.
    protocol : str or EvaluationProtocol, optional
        By default that of the command, ``srs_benchmark``.
    panel : str or Panel, optional
        By default that of the command, ``default``.
    seed : int, optional
        Seeds every fit, together with the user and the fold; by default that of the command.
    workers : int, optional
        Number of processes that share the users; None for one per core.
    folder : str or Path, optional
        Where to write the files that the command writes, in place of those of an earlier result.
        By default they are in a temporary folder that lives as long as the result.
    name : str, optional
        Label of the result; by default the algorithm with its chosen arguments.
    curves_per_user, fail_fast, fit_timeout, check_lookahead : optional
        By default those of the command: forgetting curves that are kept per user (200), whether to
        stop if all fits of the first three users fail alike (True), seconds of wall time that a fit
        and its predictions may take (no limit), and whether to try an algorithm of your own on a
        small simulated log first, and refuse it if it plainly looks ahead (True).
    progress : bool
        Whether to show a progress bar.
    **options
        Arguments of the algorithm and of the data as on the command line, such as
        ``fit="reference"`` and ``users=3``; columns of a table by their nouns, such as
        ``card="item"``.

    Returns
    -------
    RunResult

    Raises
    ------
    ConfigError
        If an option cannot be used, saying what there is.
    ReviewLogError
        If there are no users, or a table in memory lacks a column.
    FailedAlikeError
        If all fits of the first three users fail alike, unless `fail_fast` is False.
    CheckFailed
        If an algorithm of your own plainly looks ahead, unless `check_lookahead` is False.

    Examples
    --------
    >>> import srs_eval as se
    >>> result = se.evaluate("constant", "synthetic", users=2, size_scale=0.05, panel="quick")
    >>> result.facts.users, result.facts.label
    (2, 'constant')
    >>> bool(result.scores.loc[1, "log_loss"] > 0)
    True
    """
    inputs = {"algo": algorithm, "data": data, "protocol": protocol, "panel": panel}
    settings = {"seed": seed, "name": name, "fail_fast": fail_fast, "fit_timeout": fit_timeout}
    settings |= {"curves_per_user": curves_per_user, "check_lookahead": check_lookahead}
    compute = Serial() if workers == 1 else Processes(workers)
    setup = setup_of(inputs, options, settings, compute=compute)
    if setup.content["check_lookahead"]:
        refuse_lookahead(setup)
    temporary = Temporary() if folder is None else None
    place = Path(temporary.name if temporary else str(folder)).expanduser()
    with claimed(place):
        run = save(evaluated(setup, place, bar=bar(on=progress)), place)
        Checkpoint(place, setup.stamp).remove()
        (place / CONFIG).parent.mkdir(exist_ok=True)
        OmegaConf.save(OmegaConf.create(dict(setup.content)), place / CONFIG)
    return RunResult(run, temporary)


def load(folder: str | Path) -> RunResult:
    """Read the result of a finished run.

    Parameters
    ----------
    folder : str or Path
        What the command printed as results, or what `evaluate` was given.

    Raises
    ------
    ConfigError
        If it is not the folder of a finished run.
    """
    return RunResult(Run.read(Path(folder).expanduser()))


def compare(
    results: Iterable[RunResult | str | Path],
    *,
    metric: str = "log_loss",
    baseline: str | None = None,
    intersect: bool = False,
) -> Standings:
    """Compare results on identical reviews: which predicts best, and whether it is noise.

    Parameters
    ----------
    results : iterable of RunResult, str or Path
        Results, folders of finished runs, folders that hold several, or files of published
        scores.
    metric : str
        Any metric of the results with a better direction.
    baseline : str, optional
        Label of the result that the others are compared with; each user's average by default, or
        else the first.
    intersect : bool
        Compare on the reviews that all have scored, instead of raising an error where they
        differ.

    Returns
    -------
    Standings

    Raises
    ------
    ConfigError
        If a folder holds no results, or the results cannot be compared.

    Examples
    --------
    >>> import srs_eval as se
    >>> data = {"data": "synthetic", "users": 3, "size_scale": 0.05, "panel": "quick"}
    >>> results = [se.evaluate(name, **data) for name in ("avg", "hlr")]
    >>> sorted(se.compare(results).table.index)
    ['avg', 'hlr']
    """
    several = [results] if isinstance(results, RunResult | str | Path) else [*results]
    places = (each.run.folder if isinstance(each, RunResult) else each for each in several)
    runs, notes = read_runs([Path(place).expanduser() for place in places])
    numbers = {  # tell results of one label apart that are in no folder
        each.run.folder: Path(f"result {number}")
        for number, each in enumerate(several, start=1)
        if isinstance(each, RunResult) and each.temporary
    }
    runs = [replace(run, place=numbers.get(run.place, run.place)) for run in runs]
    return compared(runs, metric=metric, baseline=baseline, intersect=intersect, notes=notes)


def bar(*, on: bool) -> Callable[..., Any]:
    """Return what makes a progress bar, in a notebook or on a terminal; elsewhere there is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # without ipywidgets there is a bar of text
        from tqdm.auto import tqdm

    disable = None if on else True  # None: not where the output is a file
    return partial(tqdm, desc="fits", unit="fit", leave=False, disable=disable)
