"""Options of data that cannot be meant are refused before anything is read."""

from __future__ import annotations

import inspect
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

REFUSED: list[tuple[Callable[..., object], dict[str, Any]]] = [
    (table, {"time_unit": "h", "time_zone": "Europe/Wien", "day_start_hour": 24}),
    (table, {"day_start_hour": -0.5, "duplicates": "no", "invalid_times": "keep"}),
    (table, {"columns": {"grade": "grade"}}),
    (table, {"columns": {"card": None, "time": None}}),
    (table, {"columns": {"rating": None}}),
    (table, {"ratings": {"good": 5, "bad": 0}}),
    (table, {"ratings": {"good": True}}),
    (Columns, {"elapsed_days": "gap"}),
    (Columns, {"elapsed_seconds": "gap"}),
    (Reading, {"ratings": {"Pass": 3, "pass ": 1}}),
    (Reading, {"ratings": {1: 3, "1.0": 1}}),
    (ReviewFrame, {"table": [1, 2]}),
    (SqlQuery, {"query": "SELECT 1", "columns": {"day": "day"}}),
    (RevlogsFolder, {"path": "logs", "download": True}),
    *((Choice, {"sample": count}) for count in (0, -1, True, "2", 1.5)),
    *((Choice, {"first": count}) for count in (0, -1, True, "2", 1.5)),
    (Choice, {"first": 1, "sample": 1}),
    *((wanted_users, {"users": users}) for users in ("9-3", [], "", " , ")),
    # Refused before it is written out.
    (wanted_users, {"users": "1-999999999"}),
    (wanted_users, {"users": "1-600000,700000-1300000"}),
    (wanted_users, {"users": ["1-999999", 5, "2000000-2000001"]}),
    *((SyntheticUsers, {"users": users}) for users in (0, -3, 10**30, 2.5, True, [8, 36])),
    *((SyntheticUsers, {"seed": seed}) for seed in (-1, 0.5)),
    *((SyntheticUsers, {"size_scale": scale}) for scale in (0, 1.001, float("nan"), "big")),
    *((SyntheticUsers, {"version": version}) for version in (0, 4, "2")),
    *((SyntheticUsers, {"max_reviews": most}) for most in (0, 1.5)),
    *((anki, {"scheduler": scheduler}) for scheduler in (0, 3, "two", True, 2.0, None)),
    *((anki, {"rollover_hour": hour}) for hour in (-1, 24)),
    *((anki, {"utc_offset_minutes": minutes}) for minutes in (-841, 841)),
    (anki, {"invalid_rows": "ignore"}),
    (anki, {"presets": [None]}),
]


def test_options_that_cannot_be_meant_are_refused_by_name(
    golden_text: Callable[[str, str], None],
) -> None:
    said = []
    for made, options in REFUSED:
        with pytest.raises(ConfigError) as caught:
            made(**options)
        said.append(f"# {', '.join(f'{key}={value!r}' for key, value in options.items())}")
        said.append(f"{caught.value}\n")
    golden_text("data_options", "\n".join(said))


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
