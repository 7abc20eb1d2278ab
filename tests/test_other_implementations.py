"""The table of other implementations of FSRS in docs/export.md, tried on installed packages."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fsrs
import fsrs_rs_python
import numpy as np
import pytest

from srs_eval.algorithms.fsrs.fsrs5 import Fsrs5Equations
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6, Fsrs6Equations
from srs_eval.algorithms.fsrs.fsrs7 import Fsrs7Equations
from srs_eval.algorithms.fsrs.fsrs7_withdrawn import Fsrs7WithdrawnEquations
from srs_eval.algorithms.fsrs.fsrs45 import Fsrs45Equations
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.engine.recurrent import RecurrentModel
from srs_eval.evaluation.evaluate import EvaluateUser
from srs_eval.nouns import IntArray, Reviews
from srs_eval.protocol.srs_benchmark import SrsBenchmark

ROOT = Path(__file__).parents[1]
PUBLISHED = {
    len(equations.parameters): equations.parameters.defaults
    for equations in (
        *(Fsrs45Equations(), Fsrs5Equations(), Fsrs6Equations()),
        *(Fsrs7Equations(), Fsrs7WithdrawnEquations()),
    )
}


def table() -> dict[str, tuple[str, dict[int, str]]]:
    """Version and treatment of each number of parameters, by package."""
    text = (ROOT / "docs" / "export.md").read_text("utf-8")
    (block,) = text.split("<!-- other implementations -->")[1:2]
    lines = [line for line in block.splitlines() if line.startswith("|")]
    header, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    numbers = [int(cell) for cell in header[2:]]
    return {row[0].strip("`"): (row[1], dict(zip(numbers, row[2:], strict=True))) for row in rows}


def in_py_fsrs(parameters: Sequence[float]) -> str:
    try:
        scheduler = fsrs.Scheduler(parameters=parameters)
    except ValueError:
        return "refused"
    return "taken" if len(scheduler.parameters) == len(parameters) else "converted"


def in_fsrs_rs(parameters: Sequence[float]) -> str:
    try:
        fsrs_rs_python.FSRS(parameters=list(parameters))
        kept = fsrs_rs_python.check_and_fill_parameters(list(parameters))
    except ValueError:
        return "refused"
    return "taken" if len(kept) == len(parameters) else "converted"


def in_anki(parameters: Sequence[float], folder: Path) -> str:
    """Set parameters in a preset, and let Anki compute the state of a card after one review.

    A first Good leaves the first stability of Good. Difficulty shows whether FSRS-6 was made of
    the parameters: its first difficulty has another form before FSRS-5.
    """
    with warnings.catch_warnings():
        # Anki's generated protobuf code uses what newer protobuf versions deprecate.
        warnings.simplefilter("ignore", DeprecationWarning)
        library = pytest.importorskip("anki.collection", reason="Anki's library is not installed")
    from anki.errors import InvalidInput

    collection = library.Collection(str(folder / "collection.anki2"))
    try:
        stability = first_stability_in(collection, parameters)
    except InvalidInput:
        return "refused"
    finally:
        collection.close()
    assert stability == pytest.approx(parameters[2], rel=1e-4)
    return "taken" if len(parameters) == len(Fsrs6Equations.parameters) else "converted"


def first_stability_in(collection: Any, parameters: Sequence[float]) -> float:
    """Stability that Anki gives a card whose first review was Good."""
    collection.set_config("fsrs", True)  # noqa: FBT003
    options = collection.decks.config_dict_for_deck_id(1)
    options["fsrsParams6"] = list(parameters)
    collection.decks.update_config(options)
    note = collection.new_note(collection.models.by_name("Basic"))
    note["Front"] = "a"
    collection.add_note(note, 1)
    (card,) = note.cards()
    milliseconds = 1000 * (int(time.time()) - 2 * 86400)
    collection.db.execute(
        "insert into revlog values (?,?,-1,3,1,1,2500,3000,0)", milliseconds, card.id
    )
    card.type = card.queue = 2
    card.ivl, card.due, card.reps = 1, 1, 1
    collection.update_card(card)
    return float(collection.compute_memory_state(card.id).stability)


@pytest.mark.nightly
@pytest.mark.parametrize("numbers", PUBLISHED)
@pytest.mark.parametrize("package", ["anki", "fsrs", "fsrs-rs-python"])
def test_packages_take_as_many_parameters_as_the_table_says(
    package: str, numbers: int, tmp_path: Path
) -> None:
    parameters = PUBLISHED[numbers]
    found = {
        "anki": lambda: in_anki(parameters, tmp_path),
        "fsrs": lambda: in_py_fsrs(parameters),
        "fsrs-rs-python": lambda: in_fsrs_rs(parameters),
    }[package]()
    assert found == table()[package][1][numbers]


class Outdated(Fsrs6):
    """A plug-in that is called FSRS-6, and is handed the parameters of FSRS-5 by its package."""

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> RecurrentModel:
        return RecurrentModel(Fsrs6Equations(), PUBLISHED[19])


def test_a_run_refuses_parameters_of_another_version() -> None:
    source = SyntheticUsers(users=1, max_reviews=1000)
    evaluation = EvaluateUser(source, Outdated(), SrsBenchmark(), 0, curves=0)(1)
    assert {fit.status for fit in evaluation.fits} == {"failed"}
    for fit in evaluation.fits:
        assert "Fsrs6Equations has 21 parameters, and 19 were given" in fit.reason
