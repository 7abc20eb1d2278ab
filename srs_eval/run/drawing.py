"""The figures of a run, drawn in this process or in others."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from srs_eval.compute.interface import Tick
from srs_eval.compute.processes import Processes
from srs_eval.errors import SrsEvalError
from srs_eval.nouns import Better
from srs_eval.results import Result, load
from srs_eval.results.files import FIGURES

NAMES = ("calibration", "roc", "bins", "users", "forgetting", "contributions")
# Two shares, which take about as long.
_SHARES = NAMES[::2], NAMES[1::2]


@dataclass(frozen=True, slots=True)
class Drawing:
    """Draws figures of the result in a folder, and returns the files of each."""

    folder: Path
    title: str
    better: Mapping[str, Better]  # The direction of each metric

    def draw(self, result: Result, names: Collection[str] = NAMES) -> dict[str, list[Path]]:
        """Draw figures of the result here."""
        from srs_eval.plots import figures  # matplotlib: not where nothing is drawn

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

    def elsewhere(self) -> dict[str, list[Path]]:
        """Draw all figures of the saved result in two worker processes."""
        shares = Processes(len(_SHARES)).map(self, _SHARES, on_crash=_crashed, tick=_ignored)
        files = {name: paths for share in shares for name, paths in share.items()}
        return {name: files[name] for name in NAMES if name in files}

    def __call__(
        self, names: Collection[str], tick: Tick = lambda *_: None
    ) -> dict[str, list[Path]]:
        return self.draw(load(self.folder), names)


def _crashed(_names: Collection[str], reason: str) -> NoReturn:
    raise SrsEvalError(f"no figures: {reason}")


def _ignored(*_step: object) -> None:
    pass
