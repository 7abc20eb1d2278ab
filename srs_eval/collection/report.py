"""The report on a collection: its sections in order."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from srs_eval.collection.advice import advise
from srs_eval.collection.doubts import doubts
from srs_eval.collection.in_short import in_short
from srs_eval.collection.intervals import Models
from srs_eval.collection.parameters import where_do_i_stand, which_parameters
from srs_eval.collection.section import Section
from srs_eval.collection.study import OneLog, Study
from srs_eval.collection.truth import lateness, truth, truth_of_new
from srs_eval.collection.words import override
from srs_eval.comparison.words import counted
from srs_eval.data.anki.collection import AnkiCollection
from srs_eval.data.anki.presets import read_fsrs_settings
from srs_eval.data.anki.rules import scheduled_days, scheduled_now
from srs_eval.errors import ConfigError
from srs_eval.inputs import source


def study_of(path: Path, options: Mapping[str, Any]) -> Study:
    """Read a collection."""
    logs = source(path, **options)
    users = logs.users()
    if len(users) != 1:
        named = shlex.join([override("data.users", [users[0]])])
        raise ConfigError(f"{path}: has {len(users)} users; name one, as in {named}")
    is_anki = isinstance(logs, AnkiCollection)
    given = {"path": str(path), **options}
    reading = ["data=anki"] * is_anki + [override(f"data.{key}", given[key]) for key in given]
    if isinstance(logs, AnkiCollection):
        found = logs.read_with_table(users[0])
        due, scheduled = scheduled_days(found.revlog)[found.rows], scheduled_now(found.revlog)
        read = OneLog(logs.name, logs.location, found.reviews)
        return Study(read, read_fsrs_settings(path), due, scheduled, reading)
    log = logs.read(users[0])
    log = replace(log, notes=(*log.notes, *getattr(logs, "remarks", tuple)()))
    return Study(OneLog(logs.name, logs.location, log), reading=reading)


def sections(study: Study) -> list[Section]:
    """Return the sections that can be answered."""
    advice = advise(study)
    models = None if advice.action == "early" else Models.of(study)
    found = {
        "in short": in_short(study, advice, models),
        "recall": truth(study),
        "parameters": which_parameters(study, advice, models),
        "new ones": truth_of_new(study),
        "yours now": where_do_i_stand(study),
        "late": lateness(study),
        "doubts": doubts(study),
    }
    return [replace(section, label=label) for label, section in found.items() if section]


def facts(study: Study) -> str:
    """Return what was read, in a sentence."""
    log = study.log
    rows = len(log) + sum(log.left_out.values())
    scored = study.now.reviews
    return (
        f"{counted(rows, 'row')} of answers, {counted(len(log), 'review')} of "
        f"{counted(len(np.unique(log.card)), 'card')}; {counted(scored, 'review')} scored "
        "(predicted from earlier ones, and compared with your answer)."
    )
