"""Under which version of Anki's scheduler answers were given, told from all that a file holds."""

import sqlite3
from contextlib import closing

import pytest
import zstandard
from anki_files import DAY, START, collection, package

from srs_eval.data.anki.collection import AnkiCollection
from srs_eval.errors import ReviewLogError

# (ease, ivl) of the learning steps of one card: seconds are negative, days positive.
OF_1 = [(1, -60), (2, -600), (2, 1)]
OF_2 = [(1, -60), (3, -600), (3, 1), (2, -300), (4, 4)]
EITHER = [(1, -60), (2, -600), (3, 1)]
NO_LEARNING = [(1, -60), (1, -60), (1, -60)]
AS_1 = {1: 1, 2: 3, 3: 4, 4: 4}
LAYOUTS = {
    "bare": "Ann.anki2",
    "bare 21": "collection.anki21",
    "old deck 1": "d.apkg",
    "old deck 2": "d.apkg",
    "old whole 1": "c.colpkg",
    "old whole 2": "c.colpkg",
    "legacy deck": "d.apkg",
    "legacy whole": "c.colpkg",
    "new deck": "d.apkg",
    "new whole": "c.colpkg",
}


def rows(steps, *, year_ms=START * 1000):
    return [(year_ms + 60_000 * k, 5, ease, 0, 10, 0, ivl) for k, (ease, ivl) in enumerate(steps)]


def written(
    tmp_path, layout, steps, *, version=None, cards=(), settings=None, year_ms=START * 1000
):
    """Write the file that a layout stands for."""
    settings = {**(settings or {}), **({} if version is None else {"schedVer": version})}
    plain = collection(tmp_path / "plain", rows(steps, year_ms=year_ms), settings=settings)
    if cards:
        with closing(sqlite3.connect(plain)) as database, database:
            database.execute("create table cards (id integer primary key, type, queue)")
            database.executemany("insert into cards (type, queue) values (?, ?)", cards)
    path = tmp_path / LAYOUTS[layout]
    content = plain.read_bytes()
    if layout.startswith("bare"):
        path.write_bytes(content)
    elif layout in ("old deck 1", "old whole 1"):
        package(path, collection__anki2=content)
    elif layout in ("old deck 2", "old whole 2"):
        package(path, collection__anki2=b"dummy", collection__anki21=content)
    elif layout.startswith("legacy"):
        package(path, meta=b"\x08\x02", collection__anki2=b"dummy", collection__anki21=content)
    else:
        packed = zstandard.ZstdCompressor().compress(content)
        package(path, meta=b"\x08\x03", collection__anki2=b"dummy", collection__anki21b=packed)
    return path


def read(path, **options):
    source = AnkiCollection(path, **options)
    return source.read(source.users()[0])


def assumed(path, **options):
    """Version that a file is read as; None if it is refused."""
    try:
        log = read(path, **options)
    except ReviewLogError as error:
        refused_well = "data.scheduler=1 or data.scheduler=2" in error.hint
        return None if refused_well and error.source == str(path) else str(error)
    with closing(sqlite3.connect(path.parent / "plain")) as database:
        stored = [ease for (ease,) in database.execute("select ease from revlog order by id")]
    as_1 = [AS_1[ease] for ease in stored]
    version = int(log.notes[0].split("version ")[1][0])
    assert log.rating.tolist() == (as_1 if version == 1 else stored)
    return version


@pytest.mark.parametrize(
    ("layout", "version", "steps", "expected"),
    [
        # Collections as they are: their own setting, unless the answers cannot be.
        *(("bare", 1, steps, 1) for steps in (OF_1, EITHER, NO_LEARNING)),
        *(("bare", 2, steps, 2) for steps in (OF_1, OF_2, EITHER, NO_LEARNING)),
        *(("legacy whole", 2, steps, 2) for steps in (OF_1, OF_2, EITHER)),
        *(("new whole", 1, steps, 1) for steps in (OF_1, EITHER)),
        ("bare", None, OF_1, 1),
        ("bare", None, OF_2, None),
        ("bare", 1, OF_2, None),
        ("legacy whole", 1, OF_1, 1),
        ("legacy whole", 1, OF_2, None),
        ("new whole", 1, OF_2, None),
        # The first exporter: the name of the member; the setting is that of a fresh collection.
        ("old deck 1", 1, OF_1, 1),
        ("old deck 1", 1, EITHER, 1),
        ("old deck 1", 1, OF_2, None),
        ("old deck 2", 1, OF_2, 2),
        ("old deck 2", None, OF_2, 2),
        ("old deck 2", 1, EITHER, 2),
        ("old deck 2", 1, OF_1, None),
        ("old deck 2", 2, OF_2, 2),
        ("old deck 2", 2, OF_1, 2),
        # Version 1 when fresh collections already had version 2.
        ("old deck 1", 2, OF_1, 1),
        ("old deck 1", 2, OF_2, 2),
        ("old deck 1", 2, EITHER, None),
        ("old deck 1", 2, NO_LEARNING, 2),
        # Whole collections of the first exporter keep their setting.
        ("old whole 1", 1, OF_1, 1),
        ("old whole 2", 2, OF_2, 2),
        ("old whole 2", 1, EITHER, None),
        # Newer exporters use one name for all; fresh collections have version 2.
        *(("legacy deck", 2, steps, 2) for steps in (OF_2, EITHER)),
        *(("new deck", 2, steps, 2) for steps in (OF_2, EITHER, NO_LEARNING)),
        ("legacy deck", 2, OF_1, None),
        ("new deck", 2, OF_1, None),
        # Taken out of a package of either kind.
        ("bare 21", 1, OF_2, 2),
        ("bare 21", 1, OF_1, 1),
        ("bare 21", 2, OF_2, 2),
        ("bare 21", 2, EITHER, 2),
        ("bare 21", 1, EITHER, None),
        ("bare 21", 1, NO_LEARNING, 1),
    ],
)  # fmt: skip
def test_the_version_is_told_from_packing_setting_and_answers(
    tmp_path, layout, version, steps, expected
):
    path = written(tmp_path, layout, steps, version=version)
    assert assumed(path) == expected
    assert assumed(path, scheduler=1) == 1
    assert assumed(path, scheduler=2) == 2


@pytest.mark.parametrize(
    ("layout", "version", "card", "expected"),
    [
        ("old deck 1", 2, (3, 1), 2),  # relearning
        ("old deck 1", 2, (2, 4), 2),  # preview
        ("old deck 1", 2, (2, -3), 2),  # buried by hand
        ("old deck 1", 2, (2, 1), 1),  # relearning as in version 1
        ("old deck 1", 2, (2, 2), None),
        ("bare", 1, (3, 1), None),
        ("bare", 1, (2, 3), 1),
    ],
)
def test_states_of_cards_count_too(tmp_path, layout, version, card, expected):
    path = written(tmp_path, layout, EITHER, version=version, cards=[card])
    assert assumed(path) == expected


def test_version_3_switched_on_contradicts_version_1(tmp_path):
    path = written(tmp_path, "bare", EITHER, version=1, settings={"sched2021": True})
    assert assumed(path) is None


def test_answers_of_anki_1_had_four_buttons_and_prove_nothing(tmp_path):
    path = written(tmp_path, "bare", [(2, 0), (4, 0)], version=1, year_ms=1_300_000_000_000)
    assert assumed(path) == 1


def test_both_sides_of_a_contradiction_are_named(tmp_path):
    path = written(tmp_path, "legacy whole", OF_2, version=1)
    with pytest.raises(ReviewLogError) as caught:
        read(path)
    for said in ("schedVer=1", "1 answers in learning are 4", "1 answers 3 do not end learning"):
        assert said in caught.value.violations[0]


def test_the_log_says_what_was_assumed_and_why(tmp_path):
    path = written(tmp_path, "old deck 2", OF_2, version=1)
    notes = read(path).notes
    assert "version 2" in notes[0]
    assert "collection.anki21" in notes[0]
    assert "02:00 UTC" in notes[1]
    assert "data.scheduler=1" in read(path, scheduler=1).notes[0]


def test_days_begin_as_in_the_version_that_was_decided(tmp_path):
    # With version 1 at the creation stamp, with version 2 at 4:00 in the recorded time zone.
    path = written(tmp_path, "old deck 2", OF_2, version=1, settings={"creationOffset": 0})
    assert "04:00 UTC" in read(path).notes[1]
    assert "02:00 UTC" in read(path, scheduler=1).notes[1]


@pytest.mark.parametrize("version", [0, 3, "2", 2.0, True])
def test_an_unknown_version_is_refused_unless_it_is_given(tmp_path, version):
    path = written(tmp_path, "bare", EITHER, version=version)
    assert assumed(path) is None
    assert assumed(path, scheduler=2) == 2


def test_a_log_of_another_day_start_says_so(tmp_path):
    first = collection(
        tmp_path / "a.anki2",
        [((START + k * DAY) * 1000, 5, 3, 0, 1, 0) for k in range(3)],
        settings={"schedVer": 2, "rollover": -2, "localOffset": -330, "creationOffset": 0},
    )
    note = read(first).notes[1]
    assert "16:30 UTC" in note
    assert "22:00" in note
    assert "UTC+05:30, setting localOffset" in note
    assert "data.rollover_hour=5" in read(first, rollover_hour=5, utc_offset_minutes=0).notes[1]
