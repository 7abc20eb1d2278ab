"""The figures of a run; apart, because matplotlib is not loaded where nothing is drawn."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from srs_eval.compute.interface import Tick
from srs_eval.nouns import Better
from srs_eval.plots import figures
from srs_eval.results import Result, load
from srs_eval.results.files import FIGURES

# Two shares of the figures that take about as long.
SHARES = figures.NAMES[::2], figures.NAMES[1::2]


@dataclass(frozen=True, slots=True)
class Drawing:
    """Draws figures of the result in a folder, in any process."""

    folder: Path
    title: str
    better: Mapping[str, Better]  # The direction of each metric

    def __call__(
        self, names: Collection[str], tick: Tick = lambda *_: None
    ) -> dict[str, list[Path]]:
        """Draw figures of the saved result, and return the files of each."""
        return self.draw(load(self.folder), names)

    def draw(self, result: Result, names: Collection[str] = figures.NAMES) -> dict[str, list[Path]]:
        """Draw figures of a result, and return the files of each."""
        scores = result.by_user
        return figures.draw(
            result.predicted.of(result.complete),
            dict(zip(scores.names, scores.values.T, strict=True)),
            self.better,
            self.folder / FIGURES,
            names=names,
            fits=result.fitted,
            title=self.title,
            note=result.facts.figure_note,
        )
