"""Presets and decks of collections, the final fit, and intervals of recall."""

import json

import numpy as np
import pytest
from anki_files import DAY, START, Written, change, collection, preset_message, write
from commands import QUIET
from metric_functions import predicted

import srs_eval as se
from srs_eval.algorithms.fsrs.current import DEFAULTS, CurrentParameters, as_fsrs6
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.algorithms.sessions.session_filter import Mixture
from srs_eval.collection.truth import shares
from srs_eval.comparison.entry import read_entry
from srs_eval.data.anki.collection import ELSEWHERE, AnkiCollection, scheduled_now
from srs_eval.data.anki.groups import Preset, preset_of, read_fsrs_settings
from srs_eval.errors import ReviewLogError
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.runs.commands import COMMANDS
from srs_eval.runs.summary import TRAITS
from srs_eval.runs.words import status

OWN = (*DEFAULTS[:2], 4.25, *DEFAULTS[3:])
PRESETS = (
    Written(10, "hard", "Spanish::Verbs", OWN, 0.85),
    Written(20, "easy", "Spanish::Nouns"),
    Written(30, "other", "[JP] Core"),
)


@pytest.fixture(scope="module")
def path(tmp_path_factory, make_log):
    log = make_log(seed=3)
    file = tmp_path_factory.mktemp("collection") / "three.anki2"
    return write(file, [(log, log.card % 3)], PRESETS)


def test_settings_of_presets_are_read_as_they_are_stored(path, tmp_path):
    settings = read_fsrs_settings(path)
    assert settings.enabled
    assert settings.presets[10].parameters == pytest.approx(OWN, rel=1e-5)
    assert settings.presets[10].desired_retention == 0.85
    assert settings.presets[20] == Preset((), 0.9)
    both = preset_message(DEFAULTS[:19], 0.9, key=5) + preset_message(OWN, 0.8)  # newest counts
    assert len(preset_of(both).parameters) == 21
    assert len(preset_of(preset_message(DEFAULTS[:17], 0.9, key=3)).parameters) == 17
    for damaged in (both[:50], b"\xff" * 20, preset_message([float("nan")], 0.9)):
        assert preset_of(damaged).parameters == ()
    old = collection(tmp_path / "old.anki2")  # as text
    presets = {"7": {"fsrsParams5": [*DEFAULTS[:19]], "desiredRetention": 0.93}, "x": 3}
    change(old, "alter table col add column dconf", f"update col set dconf='{json.dumps(presets)}'")
    settings = read_fsrs_settings(old)
    assert (settings.enabled, settings.presets) == (False, {7: Preset(DEFAULTS[:19], 0.93)})
    with pytest.raises(ReviewLogError):
        read_fsrs_settings(change(old, "update col set dconf='{'"))


@pytest.mark.slow
def test_anki_itself_writes_what_is_read(anki_library, tmp_path):
    col = anki_library.Collection(str(tmp_path / "a.anki2"))
    col.set_config("fsrs", True)  # noqa: FBT003
    options = col.decks.config_dict_for_deck_id(1)
    options["fsrsParams6"], options["desiredRetention"] = list(OWN), 0.87
    col.decks.update_config(options)
    col.close()
    settings = read_fsrs_settings(tmp_path / "a.anki2")
    assert settings.enabled
    assert settings.presets[1].parameters == pytest.approx(OWN, rel=1e-5)
    assert settings.presets[1].desired_retention == 0.87


def test_older_parameters_become_those_that_fsrs_rs_makes_of_them():
    package = pytest.importorskip("fsrs_rs_python")
    old = (0.4, 0.6, 2.4, 5.8, 4.93, 0.94, 0.86, 0.01, 1.49, 0.14, 0.94, 2.18, 0.05, 0.34, 1.26)
    for given in ((*old, 0.29, 2.61), (*DEFAULTS[:17], 0.5, 0.1), OWN):
        expected = package.check_and_fill_parameters(list(given))
        assert as_fsrs6(given) == pytest.approx(expected, rel=1e-6)
    assert as_fsrs6(DEFAULTS[:20]) == as_fsrs6(()) == DEFAULTS


def test_each_card_is_predicted_with_the_parameters_of_its_preset(path):
    task = SrsBenchmark()(AnkiCollection(path).read("three"), same_day=True)
    fold, rng = task.folds[-1], np.random.default_rng(0)
    model = CurrentParameters({10: OWN}).fit(task.reviews, fold.train, rng)
    found = model.predict(task.reviews, fold.test)
    own = task.reviews.preset[fold.test] == 10
    for parameters, rows in ((OWN, own), (DEFAULTS, ~own)):
        alone = Fsrs6(fit="default", parameters=list(parameters))
        expected = alone.fit(task.reviews, fold.train, rng).predict(task.reviews, fold.test)
        np.testing.assert_array_equal(found[rows], np.asarray(expected)[rows])
    assert own.any()
    assert not own.all()


def test_stored_parameters_may_have_been_fitted_to_the_rows_that_score_them(path, here):
    stored = {10: as_fsrs6(OWN), 20: as_fsrs6(())}
    assert CurrentParameters(stored).in_sample
    assert Mixture(CurrentParameters(stored)).in_sample
    assert not CurrentParameters({20: stored[20]}).in_sample
    words = ["algo=fsrs6", "algo.parameters=current", "data=anki", f"data.path={path}"]
    done = here(*words, *QUIET, "hydra.run.dir=out")
    assert TRAITS["in_sample"][1] in done.out
    run = read_entry(here.folder / "out")
    assert run.traits == ("in_sample",)
    assert run.rank > 0  # it cannot lead


@pytest.mark.parametrize(
    ("options", "presets"),
    [
        ({"decks": "spanish"}, [10, 20]),  # a deck includes its subdecks
        ({"decks": "Spanish::V*"}, [10]),
        ({"decks": ["*nouns", "[jp] core"]}, [20, 30]),
        ({"presets": "?a?y"}, [20]),
        ({"presets": "*", "decks": "[JP]*"}, [30]),
    ],
)
def test_reviews_of_other_cards_are_left_out_and_counted(path, options, presets):
    whole = AnkiCollection(path).read("three")
    log = AnkiCollection(path, **options).read("three")
    assert np.unique(log.preset).tolist() == presets
    assert len(log) == np.isin(whole.preset, presets).sum()
    assert len(whole) - len(log) == log.left_out[ELSEWHERE]
    assert log.row.tolist() == list(range(len(log)))


def test_an_error_names_the_decks_that_exist(path):
    with pytest.raises(ReviewLogError) as caught:
        AnkiCollection(path, decks=["French", "Spanish"]).read("three")
    assert caught.value.violations == ("data.decks=French: no such name in the collection",)
    assert all(preset.deck in caught.value.hint for preset in PRESETS)


def test_cards_are_due_when_their_last_answer_says(tmp_path):
    # card, type (4: by hand) and interval, which is negative in learning
    steps = ((5, 1, 9), (6, 0, -86_399), (7, 0, -3 * 86_400 - 5), (8, 4, 9))
    rows = [(1000 * (START + card * DAY), card, 3, 2500, 4000, *each) for card, *each in steps]
    path = collection(tmp_path / "steps.anki2", rows)
    found = AnkiCollection(path, scheduler=2).read_with_table("steps")
    assert scheduled_now(found.revlog) == {5: 9}


def test_the_command_fits_all_reviews_and_hands_the_parameters_over(path, capsys):
    fitted = se.fit("fsrs6", path, progress=False)
    assert status(*COMMANDS["fit"], [str(path), "to=anki"]) == 0
    assert capsys.readouterr().out.strip() == str(fitted.export("anki"))
    for wrong in ("data.decks=*日本語's*", "algo=hlr"):
        assert status(*COMMANDS["fit"], [str(path), "to=anki", wrong]) == 1


def predictions(recalled, card):
    n = np.arange(len(recalled))
    return predicted(np.full(len(n), 0.9), recalled, card=card, day=n // 20)


def share_of(recalled, card):
    (found,) = shares(predictions(recalled, card), [("all", np.ones(len(recalled), np.bool_))])
    return found.lo, found.hi


def test_intervals_cover_where_cards_differ():
    rng, card = np.random.default_rng(0), np.repeat(np.arange(60), 5)
    # Cards are easy or hard: reviews of a card are alike, and on average 0.8 are recalled.
    drawn = (rng.random(300) < rng.beta(2, 0.5, 60)[card] for _ in range(300))
    covered = [lo <= 0.8 <= hi for lo, hi in (share_of(recalled, card) for recalled in drawn)]
    assert np.mean(covered) >= 0.975


def test_intervals_of_groups_hold_together_and_where_all_was_recalled():
    lo, hi = share_of(np.ones(100, np.bool_), np.arange(100) // 2)
    # exact for five days, as if there were five reviews
    assert (lo, hi) == (pytest.approx(0.005 ** (1 / 5)), 1.0)
    # One review of which 98.1 % were said and none recalled is no error beyond chance.
    assert share_of(np.zeros(1, np.bool_), np.zeros(1, np.int64))[1] > 0.99
    card = np.arange(400) // 4
    found = predictions(np.random.default_rng(1).random(400) < 0.9, card)
    (alone,) = shares(found, [("first", card < 50)])
    several = [("first", card < 50), ("second", card >= 50), ("none", card < 0)]
    first, second = shares(found, several)
    assert (first.observed, first.reviews, second.name) == (alone.observed, 200, "second")
    assert first.lo < alone.lo < alone.hi < first.hi
