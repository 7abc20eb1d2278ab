"""The causal study from end to end: the critics' case, coverage, verdicts, refusals and words."""

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from cases import values_in
from commands import outcome_of
from drawn_intervals import GIVES_UP, SHOWN, write_collection
from invented import Ends
from srs_eval.run.study import load_study

import srs_eval as se
from srs_eval.algorithms.half_life.hlr import Hlr
from srs_eval.config.settings import of_study
from srs_eval.data.anki.collection import AnkiCollection
from srs_eval.draws.estimate import Effect
from srs_eval.draws.reconstruct import SEED, Month
from srs_eval.draws.report import answer, count_records, draw_records, model_records, sentences
from srs_eval.draws.result import LARGEST_BOUND, Lottery, OfDraws, OfModel, found_in, log_loss
from srs_eval.draws.rules import Rule
from srs_eval.draws.study import NOT_V3, Collected, collect, read_draws
from srs_eval.errors import ConfigError, FitError, FitSkipped

BOOK = Path(__file__).parents[2] / "experiments"


@pytest.fixture(scope="module")
def study():
    load_study("lottery", BOOK)
    return sys.modules["study_lottery"]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("lottery") / "one.anki2"
    write_collection(path, np.random.default_rng(0), cards=150, rule=Rule.V3)
    return path


@pytest.fixture(scope="module")
def found(path):
    return se.lottery(["hlr", "avg", "moving_avg"], path, progress=False)


@pytest.mark.slow
def test_the_associational_model_wins_and_is_rejected(study):
    table = study.of_critics(5, 20_000)[0].set_index("model")
    assert table["log loss"][study.ASSOCIATIONAL] < table["log loss"][study.HONEST] - 0.02
    assert table["rejected"][study.ASSOCIATIONAL] == 1
    assert table["ratio"][study.ASSOCIATIONAL] > 2.5


@pytest.mark.slow
def test_the_truth_is_rejected_as_often_as_promised(study):
    table = study.of_critics(100, 2500, seed=1)[0].set_index("model")
    assert 0.005 < table["rejected"][study.TRUTH] < 0.1
    assert table["ratio"][study.TRUTH] == pytest.approx(1, abs=0.15)


@pytest.mark.nightly
def test_intervals_contain_the_ratio_of_the_truth_in_100_collections(study):
    table = study.coverage_table(study.of_collections(100, 400, ["hlr"]))
    assert 0.9 <= table.set_index("drawn by")["covered"][study._ALL] <= 0.99


def test_every_answer_is_used_or_counted_by_reason(found, path):
    collected = found.found.collected
    log = AnkiCollection(path).read("one")
    assert sum(collected.excluded.values()) + found.found.draws.trials == len(log)
    assert sum(row["number"] for row in count_records(found.found)) == len(log)


def test_the_result_has_a_row_for_each_model_with_a_curve(found):
    table = found.table.set_index("model")
    assert [*table.index] == ["hlr", "avg"]
    assert list(found.found.collected.missing) == ["moving_avg"]
    assert np.isfinite(table["ratio"]["hlr"])
    assert np.isnan(table["ratio"]["avg"])
    assert table["verdict"]["avg"].startswith("refused")
    assert np.isfinite(found.found.models[0].later.value)
    assert log_loss(np.array([0.9, 0.2, 0.5]), np.array([1.0, 0, 1])) == pytest.approx(0.3405504)
    assert len(draw_records(found.found)) > 8
    assert all(abs(each.value / each.se) < 5 for each in found.found.draws.balance.values())
    assert found.found.draws.f > 100
    assert "hlr" in repr(found)
    assert len(found.plot(title="one").axes) == 2


def test_only_draws_of_version_3_are_used_on_demand(found, path, tmp_path):
    again = collect([AnkiCollection(path)], {"hlr": Hlr()}, only_v3=True)
    assert set(again.trials().rule) <= {Rule.V3, SEED}
    assert again.excluded.get(NOT_V3, 0) < 0.2 * found.found.draws.trials
    old = tmp_path / "old.anki2"
    write_collection(old, np.random.default_rng(0), cards=30, rule=Rule.V1)
    assert collect([AnkiCollection(old)], {"hlr": Hlr()}, only_v3=True).excluded[NOT_V3] > 30


def test_a_fit_that_fails_is_told_and_leaves_the_others(path):
    failing = Ends(FitError("no minimum"))
    collected = collect([AnkiCollection(path)], {"failing": failing, "hlr": Hlr()})
    assert collected.missing == {"failing for one": "no minimum"}
    failed, hlr = found_in(collected).models
    assert (failed.trials, failed.verdict) == (0, "refused: it predicts no user")
    assert np.isfinite(hlr.ratio.value)


@pytest.mark.parametrize(("error", "status"), [(FitError("x"), 1), (FitSkipped("x"), 0)])
def test_the_command_ends_with_1_if_a_fit_failed(here, path, monkeypatch, error, status):
    monkeypatch.setattr("srs_eval.api.inputs.algorithm", lambda name: Ends(error))
    words = ["experiment=lottery", f"data.path={path}", "tracking=none", "hydra.run.dir=out"]
    assert here(*words, "algo=hlr").status == status
    assert outcome_of(Path("out"))["status"] == ("failed" if status else "ok")


def test_a_log_whose_days_were_chosen_or_that_does_not_say_them_is_refused(
    path, found, logs_of, monkeypatch
):
    monkeypatch.setattr("srs_eval.draws.study.doubts", lambda *_: "chosen")
    chosen = collect([AnkiCollection(path)], {"hlr": Hlr()})
    assert chosen.refused == {"one": "chosen"}
    assert chosen.excluded["of users who are refused"] >= found.found.draws.trials
    assert found_in(chosen).draws is None
    found = se.lottery(Hlr(), logs_of(1), progress=False)
    assert found.found.draws is None
    assert list(found.found.collected.refused) == ["1"]
    assert len(found.table) == 0
    with pytest.raises(ConfigError):
        found.plot()


def test_simulated_users_may_bring_a_table_of_their_draws(logs_of, make_log):
    class WithLots:
        name = location = "simulated"

        def users(self):
            return [1]

        def read_with_intervals(self, user):
            log = make_log(cards=80, intervals=(3, 4, 5), same_day=0)
            row = log.row[:-1]
            low = np.full(len(row), 3)
            days = np.roll(log.elapsed_days, -1)[:-1].clip(3, 5)
            return log, SimpleNamespace(row=row, days=days, low=low, high=low + 2)

    log, draws = read_draws(WithLots(), 1)
    assert draws.assigned.row.tolist() == log.row[:-1].tolist()
    assert set(draws.assigned.drawn) == {3, 4, 5} == set(draws.assigned.lots.days)


def test_attrition_widens_intervals_or_refuses(tmp_path):
    path = tmp_path / "gives_up.anki2"
    rng = np.random.default_rng(2)
    write_collection(path, rng, cards=900, rule=Rule.V3, habit=GIVES_UP)
    lottery = found_in(collect([AnkiCollection(path)], {"hlr": Hlr()}))
    (model,) = lottery.models
    assert lottery.draws.attrition_t < -3
    assert model.bound > 0
    assert model.interval()[0] == model.ratio.interval()[0] - model.bound
    assert bool(model.refused) == (model.bound > LARGEST_BOUND)


def test_ratings_that_react_to_the_interval_shown_unbalance_the_draw(tmp_path):
    path = tmp_path / "shown.anki2"
    write_collection(path, np.random.default_rng(3), cards=150, rule=Rule.V3, habit=SHOWN)
    draws = found_in(collect([AnkiCollection(path)], {"hlr": Hlr()})).draws
    rating = draws.balance["rating"]
    assert rating.value / rating.se < -5


def of_model(value, se, **changes):
    n = 1000
    moments = np.tile([1.0, -1.0], n // 2) * se / np.sqrt(n)
    ratio = Effect(value, se, value / n + moments, np.full(n, 1 / n))
    return replace(OfModel("m", 9, ratio, 0, -1, 0, None, 0), **changes)


def test_verdicts_of_models(transcript):
    def told_by(value, se, *words):
        return f"{of_model(float(value), float(se), **values_in(words)).verdict}\n"

    transcript("lottery_verdicts", told_by)


def test_words_of_an_evaluation_are_given_to_the_study(transcript):
    transcript("words_of_studies", lambda *words: " ".join(of_study(list(words))) + "\n")


def test_words_say_what_was_found(golden_text):
    slope, later = of_model(-0.05, 0.01).ratio, of_model(0.02, 0.04).ratio
    balance = {"rating": of_model(0.01, 0.01).ratio, "weekday": of_model(-0.06, 0.02).ratio}
    of_draws = (9000, 2, 800, 0.9, 4321.0, slope, later, -5.0, 9900, 0.9, slope, balance)
    models = [
        of_model(1.1, 0.2, name="hlr", slope=-0.04, later=later),
        of_model(2.0, 0.2, name="flat", slope=-0.02, later=later, bound=0.1),
        of_model(1.0, 0.2, name="avg", later=later, refused="it has no slope"),
    ]
    months = [("one", Month("2020-01", 30, "v1", 1.0, share)) for share in (1.0, 0.9)]
    collected = Collected([], [], {}, {"two": "no draws"}, months, {"net": "it has no curve"})
    lottery = Lottery(collected, OfDraws(*of_draws), tuple(models))
    nothing = Lottery(collected, None, ())
    lines = [answer(lottery), *sentences(lottery), answer(nothing), *sentences(nothing)]
    golden_text("lottery", "\n".join(lines))
    assert [row["95 % interval"] for row in model_records(lottery)][1] == "[+1.51, +2.49]"
