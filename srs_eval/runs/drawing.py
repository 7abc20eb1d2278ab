"""The figures of a run."""

from __future__ import annotations

from pathlib import Path

from srs_eval.algorithms.algorithm import IN_WORDS
from srs_eval.runs.config import Setup
from srs_eval.runs.folder import FIGURES, Run

NAMES = ("calibration", "roc", "bins", "users", "forgetting", "contributions")


def drawn(run: Run, setup: Setup) -> list[Path]:
    """Draw the figures of a run in place of those of another in the folder; return the files."""
    for name in NAMES:
        for ending in ("png", "svg"):
            (run.folder / FIGURES / f"{name}.{ending}").unlink(missing_ok=True)
    if not setup.content["figures"] or not run.complete:
        return []
    from srs_eval.plots import figures  # matplotlib: not where nothing is drawn

    return figures.draw(
        run.every_prediction(),
        dict(zip(run.by_user.names, run.by_user.values.T, strict=True)),
        run.folder / FIGURES,
        fits=list(run.fits()),
        title=f"{run.facts.label} on {setup.source.name}",
        note=note_of(run),
    )


def note_of(run: Run) -> str:
    """Return what a reader of a figure should know: when, and irregular fits."""
    return "; ".join(filter(None, [f"predicted {IN_WORDS[run.facts.when]}", run.facts.exceptions]))
