"""The figures of a run, drawn in this process or in two beside it."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from srs_eval.metrics.panel import Panel
from srs_eval.nouns import Better
from srs_eval.nouns.when import IN_WORDS
from srs_eval.runs.folder import FIGURES, Run

NAMES = ("calibration", "roc", "bins", "users", "forgetting", "contributions")
_SHARES = NAMES[::2], NAMES[1::2]  # Which take about as long


@contextmanager
def drawn(run: Run, panel: Panel, data: str, *, on: bool, aside: bool) -> Iterator[Iterable[Path]]:
    """Draw the figures of a run, and yield their files; with `aside`, while the body runs.

    What is yielded then waits for the files when it is read.
    """
    for name in NAMES:  # of another run; no other file
        for ending in ("png", "svg"):
            (run.folder / FIGURES / f"{name}.{ending}").unlink(missing_ok=True)
    if not on or not run.complete:
        yield ()
        return
    title = f"{run.facts.label} on {data}"
    better = {metric.name: metric.better for metric in panel}
    if not aside:
        yield draw(run.folder, NAMES, title, better)
        return
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(len(_SHARES), context) as pool:
        shares = [pool.submit(draw, run.folder, names, title, better) for names in _SHARES]
        yield (file for share in shares for file in share.result())


def draw(
    folder: Path, names: Sequence[str], title: str, better: Mapping[str, Better]
) -> list[Path]:
    """Draw figures of the run in a folder, and return their files."""
    from srs_eval.plots import figures  # matplotlib: not where nothing is drawn

    run = Run.read(folder)
    scores = dict(zip(run.by_user.names, run.by_user.values.T, strict=True))
    files = figures.draw(
        run.every_prediction(),
        scores,
        better,
        folder / FIGURES,
        names=names,
        fits=list(run.fits()),
        title=title,
        note=note_of(run),
    )
    return [file for each in files.values() for file in each]


def note_of(run: Run) -> str:
    """Return what a reader of a figure should know: when, and irregular fits."""
    facts = run.facts
    counts = {"failed": facts.failed, "fell back": facts.fallback, "skipped": facts.skipped}
    irregular = [f"{n:,} of {facts.fits:,} fits {how}" for how, n in counts.items() if n]
    return "; ".join([f"predicted {IN_WORDS[facts.when]}", *irregular])
