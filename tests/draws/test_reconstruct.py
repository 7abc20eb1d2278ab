"""Draws are found again in collections: simulated ones, and those of Anki itself."""

import random
from dataclasses import replace

import numpy as np
import pytest
from anki_files import DAY_MS, MORNING, SETTINGS, collection
from drawn_intervals import write_collection

from srs_eval.data.anki.collection import AnkiCollection
from srs_eval.data.anki.fuzz import fuzz_factor
from srs_eval.data.anki.presets import IntervalOptions, preset_in_message, preset_in_text
from srs_eval.draws import reconstruct
from srs_eval.draws.reconstruct import MATCHED, SEED, UNEXPLAINED, reconstructed
from srs_eval.draws.rules import Rule


def table_of(path):
    source = AnkiCollection(path)
    return source.read_with_table(source.users()[0])


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Collections of each rule, small."""
    folder = tmp_path_factory.mktemp("collections")
    for rule in Rule:
        write_collection(folder / rule.name, np.random.default_rng(1), cards=80, rule=rule)
    return {rule: table_of(folder / rule.name) for rule in Rule}


@pytest.mark.parametrize("rule", Rule)
def test_every_rule_is_recognised_and_every_answer_accounted_for(made, rule):
    log = made[rule]
    found = reconstructed(log, {})
    assert found.rule.count(rule) > 0.8 * len(found.rule) > 200  # short months are alike
    assert sum(found.excluded.values()) + len(found.assigned) == len(log.reviews)
    assert UNEXPLAINED not in found.excluded
    row = log.rows[np.searchsorted(log.reviews.row, found.assigned.row)]
    same = found.assigned.drawn == log.revlog.ivl[row]
    assert same[np.array(found.rule) == rule].all()
    lots = found.assigned.lots
    assert (lots.below(found.assigned.drawn)[1] > 0).all()
    assert (np.diff(found.assigned.row) > 0).all()


@pytest.mark.parametrize("off", [-1, 1])
def test_another_count_of_answers_explains_no_month(made, off, monkeypatch):
    monkeypatch.setattr(reconstruct, "fuzz_factor", lambda card, n: fuzz_factor(card, n + off))
    found = reconstructed(made[Rule.V3], {})
    assert Rule.V3 not in found.rule


def test_another_modifier_than_that_of_the_preset_is_found(made):
    found = reconstructed(made[Rule.V2], {1: IntervalOptions(modifier=0.5)})
    large = [month for month in found.months if month.rows > 20]
    assert [month.modifier for month in large] == pytest.approx([2] * len(large), abs=0.1)
    assert min(month.matched for month in large) >= MATCHED


def test_a_wrong_factor_of_easy_leaves_months_unexplained(made):
    found = reconstructed(made[Rule.V3], {1: IntervalOptions(easy=3.0)})
    assert found.excluded[UNEXPLAINED] > 100


@pytest.mark.parametrize("difficulty", [100, 500, 1100])
def test_draws_of_fsrs_are_taken_around_a_guess(made, difficulty):
    log = made[Rule.V3]
    factor = np.full(len(log.revlog), difficulty)
    by_fsrs = replace(log, revlog=replace(log.revlog, factor=factor))
    found = reconstructed(by_fsrs, {})
    assert set(found.rule) == {SEED}
    row = log.rows[np.searchsorted(log.reviews.row, found.assigned.row)]
    given = np.log(log.revlog.ivl[row]) - found.assigned.lots.mean_log
    instrument = np.log(found.assigned.drawn) - found.assigned.lots.mean_log
    assert abs(instrument.mean()) < 4 * instrument.std() / np.sqrt(len(instrument))
    assert np.corrcoef(instrument, given)[0, 1] > 0.1


def test_the_ease_before_an_answer_is_that_after_it_without_its_step():
    rating, factor = np.array([2, 3, 4, 2, 2, 3, 2]), np.array([2350, 2500, 2650] + [1300] * 4)
    last = np.array([2500, 2500, 2500, 1400, 0, 1300, 2500])  # as the row before has it
    ease, is_known = reconstruct._ease_before(rating, factor, last)
    assert ease.tolist() == [2.5, 2.5, 2.5, 1.4, 1.3, 1.3, 1.45]
    assert is_known.all()
    _, is_known = reconstruct._ease_before(rating, factor, last + 50)
    assert is_known.tolist() == [False, False, False, True, True, False, True]


def test_nothing_is_drawn_in_a_log_without_reviews(tmp_path):
    found = reconstructed(table_of(collection(tmp_path / "small.anki2", settings=SETTINGS)), {})
    assert (len(found.assigned), found.rule) == (0, [])


def test_options_of_intervals_are_read_in_both_forms():
    message = b"\x65" + np.float32(1.5).tobytes() + b"\x7d" + np.float32(0.9).tobytes()
    assert preset_in_message(message + b"\x80\x01\x64").intervals == IntervalOptions(
        modifier=0.9, easy=1.5, maximum=100
    )
    text = {"rev": {"ivlFct": 0.8, "ease4": 1.4, "hardFactor": 1.1, "maxIvl": 200}}
    assert preset_in_text(text).intervals == IntervalOptions(0.8, 1.1, 1.4, 200)
    assert preset_in_text({"rev": {"ivlFct": "x", "maxIvl": -1}}).intervals == IntervalOptions()


@pytest.mark.parametrize("balanced", [False, True])
def test_draws_of_anki_itself_are_reconstructed(anki_library, tmp_path, balanced):
    """Answers in today's Anki, whose calendar moves on between them."""
    path, rng = tmp_path / "anki.anki2", random.Random(1)
    opened = anki_library.Collection(str(path))
    opened.set_config("loadBalancerEnabled", balanced)
    config = opened.decks.get_config(1)
    config["new"]["perDay"] = config["rev"]["perDay"] = 9999
    config["lapse"]["delays"] = []
    opened.decks.update_config(config)
    for number in range(60):
        note = opened.new_note(opened.models.by_name("Basic"))
        note["Front"] = str(number)
        opened.add_note(note, 1)
    for days in (1, 4, 2, 7, 15, 4, 30, 7, 15, 30):
        first = opened.db.scalar("select count() from revlog") == 0
        while card := opened.sched.getCard():
            opened.sched.answerCard(card, 4 if first else rng.choice([2, 3, 3, 4, 1]))
        opened.db.execute("update col set crt = crt - ?", days * DAY_MS // 1000)
        opened.db.execute("update revlog set id = id - ?", days * DAY_MS)
        opened.close()
        opened = anki_library.Collection(str(path))
    opened.close()
    found = reconstructed(table_of(path), {})
    assert len(found.assigned) > 80
    assert set(found.rule) == {SEED if balanced else Rule.V3}
    assert min(month.matched for month in found.months) == 1


def test_answers_that_tell_no_draw_are_left_out_for_their_reasons(tmp_path):
    """Rows of a card: days since the first, button, ease after, kind of review, and interval."""
    cards = {
        "of its second answer": [(0, 3, 2500, 0, 3), (3, 3, 2500, 1, 7)],
        reconstruct.FORGOTTEN: [(0, 3, 2500, 0, 3), (3, 1, 2300, 1, -600)],
        reconstruct.BY_HAND: [(0, 3, 2500, 0, 3), (1, 0, 2500, 4, 4), (5, 3, 2500, 1, 12)],
        reconstruct.NO_INTERVAL: [(0, 3, 2500, 0, -600), (3, 3, 2500, 1, 7)],
        reconstruct.EARLY: [(0, 3, 2500, 0, 3), (2, 3, 2500, 1, 7)],
    }
    rows = [
        (MORNING + day * DAY_MS + number, number, button, ease, 4000, kind, given)
        for number, answers in enumerate(cards.values(), 1)
        for day, button, ease, kind, given in answers
    ]
    path = collection(tmp_path / "odd.anki2", sorted(rows), settings=SETTINGS)
    found = reconstructed(table_of(path), {}).excluded
    assert {reason: found[reason] for reason in [*cards][1:]} == dict.fromkeys([*cards][1:], 1)
