"""The numbers of a site, read back from its scripts: those of `compare`, and of plain loops."""

import base64
import json
import math
from itertools import combinations, pairwise

import numpy as np
import pytest

from srs_eval.comparison.compare import compare
from srs_eval.site import data
from srs_eval.site.standings import histogram, of_model, standings
from srs_eval.site.view import view
from srs_eval.stats.estimate import mean_of_users
from srs_eval.stats.paired import user_weights
from srs_eval.stats.significance import ALPHA, holm
from srs_eval.text.plain import one_line

METRICS = ("log_loss", "auc", "smece", "mbe")  # one has no score of some model, one is best at 0
CASES = [(metric, weighting) for metric in METRICS for weighting in ("users", "reviews")]
EDGES = (0, 1_000, 3_000, 10_000, 30_000, math.inf)


@pytest.fixture(scope="module")
def shown(boards):
    return view(boards[0])


def of(verdict, model=None):
    """Return the numbers of a metric, or of a model by it, as they are written."""
    content = standings(verdict) if model is None else of_model(verdict, model)
    return json.loads(json.dumps(data._plain(content)))


def written(site, board, key):
    """Read a script of a board."""
    text = (site / board.name / f"{key}.js").read_text(encoding="ascii")
    name, _, value = text.removeprefix("data.receive(").removesuffix(");\n").partition(",")
    assert json.loads(name) == key
    return json.loads(value)


def same(found, expected):
    """Compare numbers, as far as they are written; None stands for NaN."""
    values = [math.nan if value is None else value for value in found]
    return values == pytest.approx([*expected], rel=1e-9, abs=1e-12, nan_ok=True)


def is_row(found, standing):
    answer, counts = standing.average, standing.counts
    numbers = standing.difference.mean, answer.lo, answer.hi, answer.p_value
    expected = [*numbers, counts.better, counts.worse]
    return found[4] == answer.verdict and same(found[:4] + found[5:], expected)


@pytest.mark.parametrize(("metric", "weighting"), CASES)
def test_tables_are_those_of_compare(shown, metric, weighting):
    table, runs = of(shown.verdicts[metric])[weighting], shown.paired.runs
    for baseline, run in enumerate(runs):
        verdict = compare(runs, metric=metric, baseline=run.name)
        (board,) = (one for one in verdict.leaderboards if one.weighting == weighting)
        assert tuple(table["order"]) == board.order
        for number, standing in enumerate(board.to_best):
            assert same(
                table["means"][number], (of[number] for of in (board.mean, board.lo, board.hi))
            )
            assert is_row(table["best"][number], standing)
            assert is_row(table["against"][baseline][number], board.to_baseline[number])
    leaders = [leader for leader in board.groups if leader >= 0]
    for leader, (when, said) in zip(leaders, table["said"], strict=True):
        verb = "predicts best" if board.to_best[leader].average.verdict == "best" else "leads"
        assert when == runs[leader].when
        assert said.startswith(f"{one_line(runs[leader].name)} {verb}")


@pytest.mark.parametrize("weighting", ["users", "reviews"])
def test_groups_are_neighbours_without_a_significant_difference(shown, weighting):
    runs = shown.paired.runs
    boards = compare(runs).leaderboards
    (table,) = (one for one in boards if one.weighting == weighting)
    letters = of(shown.usual)[weighting]["groups"]
    for when in shown.times:
        order = [n for n in table.order if runs[n].when == when]
        pairs = list(combinations(range(len(order)), 2))
        adjusted = holm([table.pairs[order[b]][order[a]].p_value for a, b in pairs]).p_value
        differ = {pair for pair, p in zip(pairs, adjusted, strict=True) if p < ALPHA}
        for a, b in pairs:
            between = {*combinations(range(a, b + 1), 2)}
            assert bool({*letters[order[a]]} & {*letters[order[b]]}) == differ.isdisjoint(between)
    assert {*letters[runs.index(runs[table.order[0]])]} <= {*"ab"}


@pytest.mark.parametrize(("metric", "weighting"), CASES)
def test_two_models_are_compared_as_compare_does(shown, metric, weighting):
    runs = shown.paired.runs
    for a, b in ((0, 6), (6, 0), (1, 2)):
        verdict = compare([runs[a], runs[b]], metric=metric, baseline=runs[b].name)
        (board,) = (one for one in verdict.leaderboards if one.weighting == weighting)
        difference, counts = board.pairs[0][1], board.to_baseline[0].counts
        pair = of(shown.verdicts[metric], a)["against"][b]
        assert (pair["n_users"], tuple(pair["counts"])) == (len(verdict.users), counts)
        assert same(pair["share"], counts.interval())
        for found, expected in zip(pair["extremes"], verdict.extremes[0], strict=True):
            assert [name for name, _ in found] == [str(user) for user, _ in expected]
            assert same((gap for _, gap in found), (gap for _, gap in expected))
        one = pair[weighting]
        assert same(one["means"], board.mean)
        assert same(one["difference"], (difference.mean, *difference.interval()))
        assert same([one["p"]], [difference.p_value])
        check_strata(one["strata"], verdict, weighting)


def check_strata(found, verdict, weighting):
    """Compare strata by number of reviews with those of a loop."""
    gap, weights = (
        verdict.scores[:, 0] - verdict.scores[:, 1],
        user_weights(verdict.reviews, weighting),
    )
    expected = []
    for low, high in pairwise(EDGES):
        inside = (verdict.reviews >= low) & (verdict.reviews < high)
        if inside.any():
            part = mean_of_users(gap[inside], weights[inside], size=1.0)
            expected.append([int(inside.sum()), part.mean, *part.interval()])
    assert len(found) == len(expected) > 1
    assert all(same(mine[1:], theirs) for mine, theirs in zip(found, expected, strict=True))


@pytest.mark.parametrize("metric", METRICS)
def test_users_of_a_model_are_counted_as_loops_do(shown, metric):
    verdict = shown.verdicts[metric]
    board, users = verdict.leaderboard, verdict.every_score
    for model in range(len(verdict.runs)):
        found, known = of(verdict, model), users[:, model]
        known = known[~np.isnan(known)]
        assert found["n_users"] == len(known)
        if not len(known):
            assert found["quantiles"] == []
            assert found["histogram"] is found["ranks"] is None
            continue
        assert same(found["quantiles"], np.quantile(known, (0.05, 0.25, 0.5, 0.75, 0.95)))
        assert found["histogram"]["mark"] == pytest.approx(np.median(known))
        peers = [n for n in board.groups[board.leaders[model]] if not np.isnan(board.mean[n])]
        own = [
            sum(board.sign * row[peers] < board.sign * row[model])
            + (sum(row[peers] == row[model]) + 1) / 2
            for row in verdict.scores
        ]
        assert same(
            [found["ranks"][key] for key in ("mean", "first")],
            [np.mean(own), np.mean(np.equal(own, 1))],
        )
        bars = found["ranks"]["histogram"]
        assert same(bars["ends"], (0.5, len(board.groups[board.leaders[model]]) + 0.5))
        halves = np.histogram(np.array(own) + 0.5, np.arange(1, len(bars["counts"]) + 2))[0]
        assert (bars["counts"], bars["mark"]) == (halves.tolist(), np.median(own))


def test_histograms_are_of_all_users_between_rounded_ends():
    values = np.random.default_rng(0).normal(5, 1, 1000)
    low, high = np.quantile(values, (0.005, 0.995))
    low, high = low - 0.02 * (high - low), high + 0.02 * (high - low)
    for zero, ends in ((False, (low, high)), (True, (0.0, high))):
        found = histogram(values, zero=zero)
        assert same(found["ends"], ends)
        assert found["counts"] == np.histogram(np.clip(values, *ends), 20, ends)[0].tolist()
        assert found["mark"] == (0.0 if zero else np.median(values))
    for alike, ends, bins in ((np.full(5, 2.0), (1.96, 2.04), 8), (np.zeros(10**5), (-1, 1), 48)):
        found = histogram(alike)
        assert same(found["ends"], ends)
        assert (len(found["counts"]), sum(found["counts"])) == (bins, len(alike))
    assert histogram(-values, zero=True)["ends"][1] == 0.0
    assert histogram(values[:1]) is histogram(np.full(3, math.nan)) is None


def test_scripts_hold_these_numbers_and_every_score(site, shown, boards):
    verdict = shown.verdicts["mbe"]
    assert written(site, boards[0], "standings/mbe") == of(verdict)
    assert written(site, boards[0], "pairs/mbe/2") == of(verdict, 2)
    flat = np.frombuffer(base64.b64decode(written(site, boards[0], "scores/mbe")), "<f8")
    expected = np.abs(shown.paired.scores("mbe"))
    assert np.array_equal(flat.reshape(expected.shape[::-1]).T, expected, equal_nan=True)
    models = {model["id"]: model for model in written(site, boards[0], "board")["models"]}
    twin = models["model03"]["column"]
    assert twin == models["model00"]["column"]  # a duplicate
    alike = of(shown.usual, twin)["against"][twin]
    assert (alike["users"]["alike"], alike["counts"]) == (True, [0, 0, 60])
