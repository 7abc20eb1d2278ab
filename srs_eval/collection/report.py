"""The report on a collection: its sections in order."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from srs_eval.api.inputs import option_of_data, source
from srs_eval.collection.parameters import where_do_i_stand, which_parameters
from srs_eval.collection.section import Section
from srs_eval.collection.study import OneLog, Study
from srs_eval.collection.truth import truth
from srs_eval.data.anki.presets import read_fsrs_settings
from srs_eval.errors import ConfigError


def study_of(path: Path, options: Mapping[str, Any]) -> Study:
    """Read a collection.

    Raises
    ------
    ConfigError
        If an option cannot be used, or there are several users.
    ReviewLogError
        If the file is missing, no collection, or damaged.
    """
    logs = source(path, **options)
    users = logs.users()
    if len(users) != 1:
        raise ConfigError(
            f"{path}: has {len(users)} users; name one, as in data.users=[{users[0]}]"
        )
    log = logs.read(users[0])
    settings = read_fsrs_settings(path) if option_of_data(path) == "anki" else None
    return Study(OneLog(logs.name, logs.location, log), settings)


def sections(study: Study) -> list[Section]:
    """Return the sections that can be answered."""
    found = [truth(study), which_parameters(study), where_do_i_stand(study)]
    return [section for section in found if section is not None]
