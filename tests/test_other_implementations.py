"""The table of other implementations of FSRS in docs/export.md, tried on installed packages."""

import time
from pathlib import Path

import fsrs
import fsrs_rs_python
import pytest

from srs_eval.algorithms.fsrs.fsrs6 import Fsrs5Equations, Fsrs6Equations
from srs_eval.algorithms.fsrs.fsrs7 import Fsrs7Equations
from srs_eval.algorithms.fsrs.fsrs45 import Fsrs45Equations
from srs_eval.engine.recurrent import RecurrentModel
from srs_eval.errors import FitError

EXPORT = Path(__file__).parents[1] / "docs" / "export.md"
PUBLISHED = {
    len(equations.parameters): equations.parameters.defaults
    for equations in (*(Fsrs45Equations(), Fsrs5Equations(), Fsrs6Equations(), Fsrs7Equations()),)
}


def table():
    """What each package does with each number of parameters."""
    block = EXPORT.read_text("utf-8").split("<!-- other implementations -->")[1]
    lines = [line for line in block.splitlines() if line.startswith("|")]
    header, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    numbers = [int(cell) for cell in header[2:]]
    return {row[0].strip("`"): dict(zip(numbers, row[2:], strict=True)) for row in rows}


def in_fsrs_rs(parameters):
    fsrs_rs_python.FSRS(parameters=parameters)
    return len(fsrs_rs_python.check_and_fill_parameters(parameters))


@pytest.fixture
def in_anki(anki_library, tmp_path):
    """Set parameters in a preset, and let Anki compute the state of a card after one review.

    A first Good leaves the first stability of Good. Whether FSRS-6 was made of the parameters is
    not shown by it.
    """
    from anki.errors import InvalidInput

    def kept(parameters):
        collection = anki_library.Collection(str(tmp_path / "collection.anki2"))
        try:
            collection.set_config("fsrs", True)  # noqa: FBT003
            options = collection.decks.config_dict_for_deck_id(1)
            options["fsrsParams6"] = list(parameters)
            collection.decks.update_config(options)
            note = collection.new_note(collection.models.by_name("Basic"))
            note["Front"] = "a"
            collection.add_note(note, 1)
            (card,) = note.cards()
            row = (1000 * (int(time.time()) - 2 * 86400), card.id)
            insert = "insert into revlog values (?,?,-1,3,1,1,2500,3000,0)"
            collection.db.execute(insert, *row)
            card.type = card.queue = 2
            card.ivl, card.due, card.reps = 1, 1, 1
            collection.update_card(card)
            stability = collection.compute_memory_state(card.id).stability
        except InvalidInput as error:
            raise ValueError from error
        finally:
            collection.close()
        assert stability == pytest.approx(parameters[2], rel=1e-4)
        return len(Fsrs6Equations.parameters)

    return kept


@pytest.mark.nightly
@pytest.mark.parametrize("numbers", PUBLISHED)
def test_packages_take_as_many_parameters_as_the_table_says(numbers, in_anki):
    packages = {
        "anki": in_anki,
        "fsrs": lambda given: len(fsrs.Scheduler(parameters=given).parameters),
        "fsrs-rs-python": in_fsrs_rs,
    }
    for package, kept in packages.items():
        try:
            found = "taken" if kept([*PUBLISHED[numbers]]) == numbers else "converted"
        except ValueError:
            found = "refused"
        assert found == table()[package][numbers], package


def test_parameters_of_another_version_are_refused():
    with pytest.raises(FitError, match="Fsrs6Equations has 21 parameters, and 19 were given"):
        RecurrentModel(Fsrs6Equations(), PUBLISHED[19])
