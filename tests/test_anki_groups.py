"""Runs of `per_group` on Anki collections whose two presets differ, or do not."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import QUIET
from commands import run_here as command

from srs_eval.data.anki.collection import AnkiCollection
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.nouns import Reviews

pytestmark = pytest.mark.slow  # fits two collections, with and without their presets

START = int(datetime(2010, 1, 1, 6, tzinfo=UTC).timestamp())


def simulated(user: int) -> Reviews:
    return SyntheticUsers(users=40, size_scale=0.1, max_reviews=3000, version=1).read(user)


def collection(library: Any, path: Path, logs: list[tuple[Reviews, np.ndarray]]) -> Path:
    """Write a collection by Anki's library: a preset for each number that goes with a log.

    Parameters
    ----------
    logs : list of (Reviews, int [n])
        Simulated reviews, and the number of the preset of each.
    """
    col = library.Collection(str(path))
    decks = []
    for number, name in enumerate(("hard words", "easy words")):
        deck_id = col.decks.id(f"deck {number}")
        deck = col.decks.get(deck_id)
        deck["conf"] = col.decks.add_config(name)["id"]
        col.decks.save(deck)
        decks.append(deck_id)
    answers = []
    for log, preset in logs:
        cards, first = np.unique(log.card, return_index=True)
        known = {}
        for card, number in zip(cards.tolist(), preset[first].tolist(), strict=True):
            note = col.new_note(col.models.by_name("Basic"))
            note["Front"], note["Back"] = f"question {len(answers)} {card}", "answer"
            col.add_note(note, decks[number])
            known[card] = note.cards()[0].id
        new = np.isin(np.arange(len(log)), first)
        facts = zip(log.day.tolist(), log.card.tolist(), log.rating.tolist(), new, strict=True)
        answers += [(day, known[card], rating, not old) for day, card, rating, old in facts]
    answers.sort(key=lambda answer: answer[0])
    rows = [
        ((START + day * 86_400) * 1000 + place * 1000, card, rating, 2500, 4000, int(later))
        for place, (day, card, rating, later) in enumerate(answers)
    ]
    col.db.executemany(
        "insert into revlog (id, cid, usn, ease, ivl, lastIvl, factor, time, type) "
        "values (?, ?, 0, ?, 1, 1, ?, ?, ?)",
        rows,
    )
    col.close()
    return path


def evaluated(folder: Path, path: Path, algo: str) -> dict[str, Any]:
    options = ["data=anki", f"data.path={path}", "data.scheduler=2"]
    options += ["data.rollover_hour=4", "data.utc_offset_minutes=0"]
    assert command([f"algo={algo}", *options, *QUIET, f"hydra.run.dir={folder / algo}"]) == 0
    summary: dict[str, Any] = json.loads((folder / algo / "summary.json").read_text())
    return summary


def log_loss(summary: dict[str, Any]) -> float:
    return float(summary["metrics"]["log_loss"]["mean_users"])


def test_presets_that_differ_are_predicted_better_and_the_run_says_so(
    anki_library: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = [simulated(15), simulated(16)]
    presets = [np.full(len(log), number) for number, log in enumerate(logs)]
    path = collection(anki_library, tmp_path / "two.anki2", list(zip(logs, presets, strict=True)))
    log = AnkiCollection(path, scheduler=2, rollover_hour=4, utc_offset_minutes=0).read("two")
    assert log.rating.sum() == sum(each.rating.sum() for each in logs)
    assert set(log.titles["preset"].values()) >= {"hard words", "easy words"}
    pooled, grouped = (evaluated(tmp_path, path, algo) for algo in ("fsrs6", "per_group"))
    assert log_loss(grouped) < log_loss(pooled) - 0.005
    assert "presets differ: own parameters for 2 of 2 presets" in capsys.readouterr().out
    assert ["presets differ: own parameters" in note for note in grouped["fit_notes"]] == [True]


def test_presets_that_do_not_differ_tie_and_the_run_says_so(
    anki_library: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = simulated(15)
    preset = np.random.default_rng(0).integers(0, 2, log.card.max() + 1)[log.card]
    path = collection(anki_library, tmp_path / "one.anki2", [(log, preset)])
    pooled, grouped = (evaluated(tmp_path, path, algo) for algo in ("fsrs6", "per_group"))
    assert log_loss(grouped) == pytest.approx(log_loss(pooled), abs=1e-3)
    out = capsys.readouterr().out
    assert "one set of parameters predicts as well: " in out
    assert "presets differ" not in grouped["fit_notes"][0]
