"""Options of data that cannot be meant are refused before anything is read."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hydra.utils import instantiate
from omegaconf import MissingMandatoryValue, OmegaConf

from srs_eval.data.anki.collection import AnkiCollection
from srs_eval.data.frame import ReviewFrame
from srs_eval.data.revlogs_10k import RevlogsFolder
from srs_eval.data.selection import Choice, wanted_users
from srs_eval.data.sql import SqlQuery
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.data.table import ReviewTable
from srs_eval.data.table_options import Columns, Reading
from srs_eval.errors import ConfigError

CONF = Path(__file__).parents[2] / "conf" / "data"
table = partial(ReviewTable, "log.csv")
anki = partial(AnkiCollection, "a.anki2")

NAMED: dict[str, Callable[..., object]] = {"table": table, "anki": anki}
NAMED |= {
    each.__name__: each
    for each in (Columns, Reading, ReviewFrame, SqlQuery, RevlogsFolder, Choice, SyntheticUsers)
}
NAMED["wanted_users"] = wanted_users


def test_options_that_cannot_be_meant_are_refused_by_name(transcript: Callable[..., None]) -> None:
    def told_by(name: str, *words: str) -> str:
        options: dict[str, Any] = {}
        for word in words:
            key, _, value = word.partition("=")
            try:
                options[key] = json.loads(value)
            except ValueError:
                options[key] = value
        with pytest.raises(ConfigError) as caught:
            NAMED[name](**options)
        return f"{caught.value}\n"

    transcript("data_options", told_by)


def test_options_at_their_bounds_are_taken() -> None:
    assert len(wanted_users("1-1000000") or ()) == 1_000_000
    assert len(SyntheticUsers(users=1, size_scale=1e-9, seed=0, max_reviews=1).read(1)) == 1
    for hour in (0, 23.5):
        assert table(day_start_hour=hour).reading.day_start_hour == hour
    for hour, minutes in ((0, -840), (23, 840)):
        assert anki(rollover_hour=hour, utc_offset_minutes=minutes)


@pytest.mark.parametrize(
    ("option", "source"),
    [
        ("csv", ReviewTable("log")),
        ("revlogs_10k", RevlogsFolder("log")),
        ("anki", AnkiCollection("log")),
        ("synthetic", SyntheticUsers()),
    ],
)
def test_the_options_of_a_source_are_its_arguments_with_their_defaults(
    option: str, source: object
) -> None:
    described = OmegaConf.load(CONF / f"{option}.yaml")
    names = inspect.signature(type(source)).parameters.keys()
    assert described.keys() - {"_target_"} == names
    if "path" in names:
        with pytest.raises(MissingMandatoryValue):
            instantiate(described, _convert_="all")
        described = OmegaConf.merge(described, {"path": "log"})
    assert instantiate(described, _convert_="all") == source
