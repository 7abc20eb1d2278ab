"""``python -m srs_eval.fit``: the final fit alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fsrs
import numpy as np
import pytest
from anki_files import Written, write

import srs_eval as se
from srs_eval.commands.fit import command


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory, make_log: Any) -> Path:
    log = make_log(seed=3)
    file = tmp_path_factory.mktemp("fit") / "one.anki2"
    return write(file, [(log, np.zeros(len(log), np.int64))], (Written(10, "a", "Deck"),))


def test_parameters_are_those_of_the_fit_to_all_reviews(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fitted = se.fit("fsrs6", path, progress=False)
    assert command([str(path), "to=anki"]) == 0
    assert capsys.readouterr().out.strip() == str(fitted.export("anki"))
    for to in ("py_fsrs", "json"):
        assert command([str(path), f"to={to}", f"out={tmp_path / to}"]) == 0
        content = json.loads((tmp_path / to).read_text())
        assert content["parameters"] == fitted.parameters.iloc[0].tolist()
    scheduler = fsrs.Scheduler.from_json((tmp_path / "py_fsrs").read_text())
    assert len(scheduler.parameters) == 21


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["to=anki", "data.decks=nope"], 1),
        (["to=anki", "algo=hlr"], 2),
        (["to=anki", "algo=nope"], 2),
        (["to=nope"], 2),
        ([], 2),
        (["to=anki", "data.nope=1"], 2),
    ],
)
def test_mistakes_have_a_status(path: Path, words: list[str], status: int) -> None:
    assert command([str(path), *words]) == status
