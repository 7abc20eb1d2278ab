"""Collections made, reviewed and exported by Anki itself, read by `AnkiCollection`."""

import random
from collections import Counter
from datetime import datetime
from itertools import groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from srs_eval.data.anki.collection import AnkiCollection, select_reviews

DAY_MS = 86_400_000


class Student:
    """Answers cards through Anki's scheduler; time passes by moving the past back."""

    def __init__(self, library, path):
        self.library, self.path = library, path
        self.random = random.Random(7)
        self.col = library.Collection(str(path))

    def add_notes(self, *fronts, kind="Basic"):
        for front in fronts:
            note = self.col.new_note(self.col.models.by_name(kind))
            note.fields[0], note.fields[1] = front, "answer"
            self.col.add_note(note, 1)

    def pass_time(self, milliseconds):
        self.col.db.execute("update revlog set id = id - ?", milliseconds)

    def study(self, at_most=25):
        for _ in range(at_most):
            card = self.col.sched.getCard()
            if card is None:
                return
            card.start_timer()
            self.col.sched.answerCard(card, self.random.choices((1, 2, 3, 4), (2, 2, 8, 2))[0])
            self.pass_time(self.random.randrange(2_000, 700_000))

    def sleep(self, days=1):
        self.pass_time(days * DAY_MS - self.random.randrange(2 * 3_600_000))
        self.col.db.execute("update cards set due = due - ? where queue = 1", days * 86_400)
        self.col.db.execute("update col set crt = crt - ?", days * 86_400)
        self.reopen()

    def reopen(self):
        self.col.close()
        self.col = self.library.Collection(str(self.path))

    def study_filtered(self, search, *, reschedule):
        deck = self.col.sched.get_or_create_filtered_deck(0)
        deck.config.reschedule = reschedule
        del deck.config.search_terms[1:]
        deck.config.search_terms[0].search = search
        deck.config.search_terms[0].limit = 5
        deck_id = self.col.sched.add_or_update_filtered_deck(deck).id
        self.col.decks.select(deck_id)
        self.study(at_most=6)
        self.col.sched.empty_filtered_deck(deck_id)
        self.col.decks.remove([deck_id])
        self.col.decks.select(1)

    def export(self, path, *, legacy):
        """Write a package of the whole collection, or of all decks, by the ending of its name."""
        if path.suffix == ".colpkg":
            self.col.export_collection_package(str(path), include_media=False, legacy=legacy)
            self.reopen()
        else:
            options = self.library.ExportAnkiPackageOptions(
                with_scheduling=True, with_deck_configs=True, with_media=False, legacy=legacy
            )
            self.col.export_anki_package(out_path=str(path), options=options, limit=None)
        return path

    def cards(self, search=""):
        return list(self.col.find_cards(search))

    def revlog(self):
        query = "select id, cid, ease, factor, time, type from revlog order by id"
        return [tuple(row) for row in self.col.db.all(query)]


@pytest.fixture(scope="module")
def student(anki_library, tmp_path_factory):
    student = Student(anki_library, tmp_path_factory.mktemp("profile") / "Ann.anki2")
    student.add_notes(*map(str, range(30)))
    for day in range(24):
        student.study()
        if day == 6:
            student.study_filtered("is:review", reschedule=False)
        if day == 8:
            student.study_filtered("is:review", reschedule=True)
        if day == 10:
            student.col.sched.schedule_cards_as_new(student.cards("is:review")[:4])
        if day == 12:
            student.col.sched.set_due_date(student.cards("is:review")[4:7], "1-3")
        if day == 14:
            gone = student.cards("is:review")[-2:]
            student.col.remove_notes([student.col.get_card(card).nid for card in gone])
        student.sleep(days=3 if day == 17 else 1)
    # A card that Anki rescheduled itself, and one whose beginning was not synced.
    last = student.revlog()[-1]
    rows = [(1, last[1], 0, 2500, 0, 5), (10, 99, 3, 2500, 900, 1), (20, 99, 4, 2600, 800, 1)]
    for later, *row in rows:
        query = "insert into revlog values (?, ?, -1, ?, 5, 4, ?, ?, ?)"
        student.col.db.execute(query, last[0] + later, *row)
    student.reopen()
    yield student
    student.col.close()


@pytest.fixture(scope="module")
def revlog(student):
    return student.revlog()


def is_answer(row):
    return row[2] > 0 and row[5] < 4


def expected_reviews(revlog):
    """Which rows are reviews, card by card and backwards, as Anki's own optimizer goes."""
    kept = {}
    for _, group in groupby(sorted(revlog, key=lambda row: (row[1], row[0])), lambda row: row[1]):
        rows = [row for row in group if not (row[5] == 3 and row[3] == 0)]
        start = None
        for index, row in reversed(list(enumerate(rows))):
            is_reset = row[5] == 4 and row[3] == 0
            if is_answer(row) and row[5] == 0:
                start = index
            elif start is not None and (is_answer(row) or is_reset):
                break
        if start is not None:
            answers = [row for row in rows[start:] if is_answer(row)]
            kept |= {row[0]: (row, place) for place, row in enumerate(answers)}
    return [kept[key] for key in sorted(kept)]


def assert_matches(reviews, revlog, *, day_start=None):
    expected = expected_reviews(revlog)
    rows = [row for row, _ in expected]
    assert len(reviews) + sum(reviews.left_out.values()) == len(revlog)
    columns = (reviews.card, reviews.rating, reviews.duration_ms)
    assert [each.tolist() for each in columns] == [[row[k] for row in rows] for k in (1, 2, 4)]
    assert reviews.state.tolist() == [row[5] + 1 if place else 0 for row, place in expected]
    before = {}
    for row, seconds in zip(rows, reviews.elapsed_seconds, strict=True):
        assert seconds == ((row[0] - before[row[1]]) // 1000 if row[1] in before else -1)
        before[row[1]] = row[0]
    if day_start is not None:
        days = [(row[0] - day_start * 1000) // DAY_MS for row in rows]
        assert reviews.day.tolist() == [day - days[0] for day in days]


def local_minutes():
    return int(datetime.now().astimezone().utcoffset().total_seconds() // 60)


def test_collections_and_packages_hold_the_reviews_of_the_cards_in_them(student, revlog, tmp_path):
    kinds = Counter((kind, ease > 0, factor == 0) for _, _, ease, factor, _, kind in revlog)
    # Learning, reviews, relearning, cramming, and filtered decks that reschedule.
    for state, is_zero in ((0, True), (1, False), (2, False), (3, True), (3, False)):
        assert kinds[state, True, is_zero] >= 3, state
    direct = AnkiCollection(student.path).read("Ann")
    assert_matches(direct, revlog)
    assert direct.left_out["set by hand (due date or reset)"] == 7
    assert direct.left_out["filtered deck without rescheduling"] == kinds[3, True, True]
    cards = set(student.cards())
    assert set(direct.card.tolist()) - cards, "deleted cards keep their reviews"
    for legacy in (False, True):
        whole = AnkiCollection(student.export(tmp_path / "a.colpkg", legacy=legacy)).read("a")
        assert_matches(whole, revlog)
        assert np.array_equal(whole.day, direct.day)
        assert whole.left_out == direct.left_out
        log = AnkiCollection(student.export(tmp_path / "a.apkg", legacy=legacy)).read("a")
        assert_matches(log, [row for row in revlog if row[1] in cards])


def test_days_begin_where_anki_says_the_next_day_begins(student, revlog):
    preferences = student.col.get_preferences()
    for hour in (0, 23, 4):
        preferences.scheduling.rollover = hour
        student.col.set_preferences(preferences)
        student.reopen()
        next_day = student.col._backend.sched_timing_today().next_day_at
        source = AnkiCollection(student.path, utc_offset_minutes=local_minutes())
        assert_matches(source.read("Ann"), revlog, day_start=next_day)


def test_ankis_own_optimizer_counts_as_many_items(student, revlog):
    options = {"search": "", "current_params": [], "ignore_revlogs_before_ms": 0}
    options |= {"num_of_relearning_steps": 1, "health_check": False}
    answer = student.col._backend.compute_fsrs_params(**options)
    # It leaves out cards that were reset and not answered since, which the data set keeps.
    last = {row[1]: row for row in revlog if not (row[5] == 3 and row[3] == 0)}
    unseen = [cid for cid, row in last.items() if row[5] == 4 and row[3] == 0]
    reviews = AnkiCollection(student.path, utc_offset_minutes=local_minutes()).read("Ann")
    items = (reviews.elapsed_days > 0) & ~np.isin(reviews.card, unseen)
    assert answer.fsrs_items == items.sum() > 50


def test_anki_may_be_open_and_nothing_is_changed_on_disk(student, revlog, tmp_path):
    link = tmp_path / "link.anki2"
    link.symlink_to(student.path)
    student.col.db.execute("update col set mod = mod + 1")
    files = [entry for entry in sorted(student.path.parent.iterdir()) if entry.is_file()]
    before = [(entry.stat().st_mtime_ns, entry.read_bytes()) for entry in files]
    assert len(before) > 1, "Anki keeps its recent changes in a second file"
    for path in (student.path, link):
        assert_matches(AnkiCollection(path).read(path.stem), revlog)
    assert [entry for entry in sorted(student.path.parent.iterdir()) if entry.is_file()] == files
    assert [(entry.stat().st_mtime_ns, entry.read_bytes()) for entry in files] == before


def test_groups_of_cards_are_those_that_anki_tells(anki_library, tmp_path):
    """Cards of three note types in three decks, one of them filtered when the log is read."""
    student = Student(anki_library, tmp_path / "d.anki2")
    student.add_notes(*"1234")
    col, cloze = student.col, "{{c1::three}} {{c2::different}} {{c3::cards}}"
    student.add_notes("two cards", kind="Basic (and reversed card)")
    student.add_notes(cloze, kind="Cloze")
    other, third = (col.decks.id(name) for name in ("other", "other::third"))
    deck, preset = col.decks.get(third), col.decks.add_config("demanding")["id"]
    deck["conf"] = preset
    col.decks.save(deck)
    cards = student.cards()
    col.set_deck(cards[:2], other)
    col.set_deck(cards[2:4], third)
    for deck_id in (other, 1):
        col.decks.select(deck_id)
        student.study(at_most=14)
    filtered = col.sched.get_or_create_filtered_deck(0)
    filtered.config.search_terms[0].search = "deck:other"
    col.sched.add_or_update_filtered_deck(filtered)
    col.remove_notes([col.get_card(cards[0]).nid])
    expected = {}
    for card in student.cards():
        facts, kind = col.get_card(card), col.get_card(card).note_type()
        home = facts.odid or facts.did
        preset_number = col.decks.config_dict_for_deck_id(home)["id"]
        expected[card] = (facts.nid, home, preset_number, kind["name"])
    assert any(col.get_card(card).odid for card in student.cards())
    for path in (student.path, student.export(tmp_path / "d.colpkg", legacy=True)):
        log = AnkiCollection(path).read("d")
        columns = (log.note, log.deck, log.preset, log.note_type)
        for card, *numbers, kind in zip(log.card.tolist(), *columns, strict=True):
            groups = (*numbers, log.titles["note_type"].get(kind, -1))
            assert groups == expected.get(card, (-1,) * 4)
        assert {preset, 1, -1} <= set(log.preset.tolist())
        assert log.titles["preset"][preset] == "demanding"
        assert log.titles["deck"][third] == "other::third"
        assert len(set(log.note_type.tolist())) == 4
    student.col.close()


# card, type, ease and factor
ROW = st.tuples(st.integers(1, 3), st.integers(0, 5), st.integers(0, 4), st.sampled_from([0, 2500]))


def reason(row, starts):
    """Why a row is no review, given the first reviews of cards."""
    _, card, ease, factor, _, kind = row
    if kind in (4, 5):
        return "set by hand (due date or reset)" if kind == 4 else "rescheduled by Anki"
    if ease == 0:
        return "no button pressed"
    if kind == 3 and factor == 0:
        return "filtered deck without rescheduling"
    if card in starts:
        return "before the card was last learnt from the start"
    return "card without a learning step"


@given(st.lists(ROW, max_size=30))
def test_the_rule_of_any_rows_is_that_of_ankis_optimizer(drawn):
    rows = [(n, card, ease, by, 700, kind) for n, (card, kind, ease, by) in enumerate(drawn)]
    expected = expected_reviews(rows)
    number, cid, ease, factor, _, kind = np.array(rows, np.int64).reshape(-1, 6).T
    columns = {"id": number, "cid": cid, "ease": ease, "factor": factor, "type": kind}
    log = np.rec.fromarrays([*columns.values()], names=[*columns])
    found, state, left_out = select_reviews(log, np.ones(len(rows), bool))
    assert found.tolist() == [row[0] for row, _ in expected]
    assert state.tolist() == [row[5] + 1 if place else 0 for row, place in expected]
    starts, kept = {row[1] for row, _ in expected}, {row[0] for row, _ in expected}
    assert left_out == Counter(reason(row, starts) for row in rows if row[0] not in kept)
