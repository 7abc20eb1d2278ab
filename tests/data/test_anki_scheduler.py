"""Under which version of Anki's scheduler answers were given, told from all that a file holds."""

from itertools import product

import zstandard
from anki_files import DAY, ROWS, START, change, collection, package

from srs_eval.data.anki.collection import AnkiCollection
from srs_eval.errors import ReviewLogError

# (ease, ivl) of the learning steps of one card: seconds are negative, days positive.
STEPS = {
    "steps of 1": [(1, -60), (2, -600), (2, 1)],
    "steps of 2": [(1, -60), (3, -600), (3, 1), (2, -300), (4, 4)],
    "steps of either": [(1, -60), (2, -600), (3, 1)],
    "no other answers": [(1, -60), (1, -60), (1, -60)],
}
EITHER = "steps of either"
AS_1 = {1: 1, 2: 3, 3: 4, 4: 4}
# The name of a file, and the members of a package: the last is the collection.
LAYOUTS = {
    "bare": ["Ann.anki2"],
    "bare 21": ["collection.anki21"],
    "old deck 1": ["d.apkg", "collection__anki2"],
    "old deck 2": ["d.apkg", "collection__anki2", "collection__anki21"],
    "old whole 1": ["c.colpkg", "collection__anki2"],
    "old whole 2": ["c.colpkg", "collection__anki2", "collection__anki21"],
    "legacy deck": ["d.apkg", "meta", "collection__anki2", "collection__anki21"],
    "legacy whole": ["c.colpkg", "meta", "collection__anki2", "collection__anki21"],
    "new deck": ["d.apkg", "meta", "collection__anki2", "collection__anki21b"],
    "new whole": ["c.colpkg", "meta", "collection__anki2", "collection__anki21b"],
}
# Cards in relearning, as a preview, buried by hand; and in relearning as in version 1.
CARDS = ((3, 1), (2, 4), (2, -3), (2, 1), (2, 3), (2, 2))
# Of these versions only the first two are known.
VERSIONS = (1, 2, 0, 3, "2", 2.0, True)


def cases():
    """Yield layout, steps, state of a card and settings."""
    for layout, steps, version in product(LAYOUTS, STEPS, (1, 2)):
        yield layout, steps, None, {"schedVer": version}
    for card, (layout, version) in product(CARDS, [("old deck 1", 2), ("bare", 1)]):
        yield layout, EITHER, card, {"schedVer": version}
    for version in VERSIONS:
        yield "bare", EITHER, None, {"schedVer": version, "sched2021": True}
    for layout, steps in product(("bare", "old deck 2"), STEPS):
        yield layout, steps, None, {}


def written(folder, layout, steps, card, settings):
    """Write the file that a layout stands for."""
    rows = [(START * 1000 + 60_000 * k, 5, ease, 0, 10, 0, ivl) for k, (ease, ivl) in steps]
    plain = collection(folder / "plain", rows, settings=settings)
    if card:
        create = "create table cards (id integer primary key, type, queue)"
        change(plain, create, f"insert into cards (type, queue) values {card}")
    content = plain.read_bytes()
    plain.unlink()
    name, *members = LAYOUTS[layout]
    if not members:
        (folder / name).write_bytes(content)
        return folder / name
    held = {member: b"\x08\x03" if member == "meta" else b"dummy" for member in members}
    is_packed = members[-1].endswith("b")
    held[members[-1]] = zstandard.ZstdCompressor().compress(content) if is_packed else content
    return package(folder / name, **held)


def read(path, **options):
    source = AnkiCollection(path, **options)
    return source.read(source.users()[0])


def test_the_version_is_told_from_packing_setting_answers_and_cards(tmp_path, golden_text):
    said = []
    for layout, name, card, settings in cases():
        steps = list(enumerate(STEPS[name]))
        ratings = [ease for _, (ease, _) in steps]
        path = written(tmp_path, layout, steps, card, settings)
        of_version = {1: [AS_1[ease] for ease in ratings], 2: ratings}
        for version, expected in of_version.items():
            assert read(path, scheduler=version).rating.tolist() == expected
        try:
            log = read(path)
        except ReviewLogError as error:
            said_which = "data.scheduler=1 or data.scheduler=2" in error.hint
            told = error.violations[0] if said_which and error.source == str(path) else str(error)
        else:
            told = log.notes[0].removeprefix("ratings read as those of ")
            version = int(log.notes[0].split("version ")[1][0])
            assert log.rating.tolist() == of_version[version]
        state = f"a card of type {card[0]} and queue {card[1]}, " if card else ""
        said.append(f"{layout}, {name}, {state}{settings}:\n  {told}")
    golden_text("anki_schedulers", "\n".join(said) + "\n")


def test_answers_of_reviews_stay_and_those_of_anki_1_prove_nothing(tmp_path):
    rows = [
        (ROWS[0][0] + k, 5, ease, 0, 10, kind)
        for k, (ease, kind) in enumerate([(1, 0), (2, 0), (3, 0), (2, 1), (3, 1), (2, 2), (4, 1)])
    ]
    old = collection(tmp_path / "old.anki2", rows, settings={"schedVer": 1})
    new = collection(tmp_path / "new.anki2", rows, settings={"schedVer": 2})
    assert read(old).rating.tolist() == [1, 3, 4, 2, 3, 3, 4]
    assert read(new).rating.tolist() == [1, 2, 3, 2, 3, 2, 4]
    for begin, is_read in ((1_420_070_399_000, True), (1_420_070_400_000, False)):  # 2015
        rows = [(begin, 5, 4, 0, 10, 0, 1)]
        path = collection(tmp_path / f"{begin}.anki2", rows, settings={"schedVer": 1})
        if is_read:
            assert "version 1" in read(path).notes[0]
        else:
            assert "version 2" in read(path, scheduler=2).notes[0]


def test_a_log_says_when_days_begin(tmp_path):
    # With version 1 at the creation stamp, with version 2 at 4:00 in the recorded time zone.
    settings = {"schedVer": 1, "creationOffset": 0}
    path = written(tmp_path, "old deck 2", list(enumerate(STEPS["steps of 2"])), None, settings)
    assert "04:00 UTC" in read(path).notes[1]
    assert "02:00 UTC" in read(path, scheduler=1).notes[1]
    path = collection(
        tmp_path / "a.anki2",
        [((START + k * DAY) * 1000, 5, 3, 0, 1, 0) for k in range(3)],
        settings={"schedVer": 2, "rollover": -2, "localOffset": -330, "creationOffset": 0},
    )
    note = read(path).notes[1]
    for said in ("16:30 UTC", "22:00", "UTC+05:30, setting localOffset"):
        assert said in note
    assert "data.rollover_hour=5" in read(path, rollover_hour=5, utc_offset_minutes=0).notes[1]
