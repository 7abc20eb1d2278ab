"""The report on a collection: its sections in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from srs_eval.api.inputs import source
from srs_eval.collection.advice import advise
from srs_eval.collection.ceiling import ceiling
from srs_eval.collection.doubts import doubts
from srs_eval.collection.history import history
from srs_eval.collection.in_short import in_short
from srs_eval.collection.intervals import Models, load
from srs_eval.collection.lateness import lateness
from srs_eval.collection.others import others
from srs_eval.collection.parameters import where_do_i_stand, which_parameters
from srs_eval.collection.section import Section
from srs_eval.collection.study import OneLog, Study
from srs_eval.collection.truth import truth, truth_of_new
from srs_eval.data.anki import AnkiCollection
from srs_eval.data.anki.presets import read_fsrs_settings
from srs_eval.errors import ConfigError
from srs_eval.text.console import counted


def study_of(path: Path, options: Mapping[str, Any]) -> Study:
    """Read a collection."""
    logs = source(path, **options)
    users = logs.users()
    if len(users) != 1:
        raise ConfigError(
            f"{path}: has {len(users)} users; name one, as in data.users=[{users[0]}]"
        )
    if isinstance(logs, AnkiCollection):
        log, due = logs.read_with_schedule(users[0])
        return Study(OneLog(logs.name, logs.location, log), read_fsrs_settings(path), due)
    log = logs.read(users[0])
    log = replace(log, notes=(*log.notes, *getattr(logs, "remarks", tuple)()))
    return Study(OneLog(logs.name, logs.location, log))


def sections(study: Study, published: Path | None = None) -> list[Section]:
    """Return the sections that can be answered.

    `published` are results of other users: see `read_published`.
    """
    advice = advise(study)
    models = None if advice.action == "early" else Models.of(study)
    # Of those who do not have FSRS it is not known how many reviews they have now.
    changes = advice.action == "paste" and advice.fsrs is None
    found = {
        "in short": in_short(study, advice, load(study, models) if models and changes else None),
        "recall": truth(study),
        "parameters": which_parameters(study, advice, models),
        "new ones": truth_of_new(study),
        "yours now": where_do_i_stand(study),
        "history": history(study),
        "how good": ceiling(study),
        "others": others(study, published) if published else None,
        "late": lateness(study),
        "doubts": doubts(study),
    }
    return [replace(section, label=label) for label, section in found.items() if section]


def facts(study: Study) -> str:
    """Return what was read, in a sentence."""
    log = study.log
    rows = len(log) + sum(log.left_out.values())
    scored = study.now.facts.reviews
    return (
        f"{counted(rows, 'row')} of answers, {counted(len(log), 'review')} of "
        f"{counted(len(np.unique(log.card)), 'card')}, {counted(scored, 'review')} scored."
    )
