"""Search spaces in the syntax of Hydra, and trials: reproducible, none repeated, none lost."""

import itertools
import json
import math
import re
import sqlite3
from dataclasses import replace
from types import SimpleNamespace

import drawings
import numpy as np
import optuna
import pytest
from cases import rest_nightly
from commands import write
from hydra.core.utils import JobReturn, JobStatus
from optuna.trial import TrialState

from srs_eval.errors import Pruned
from srs_eval.tuning import figures
from srs_eval.tuning.ending import doubts_told, times_told
from srs_eval.tuning.search import search
from srs_eval.tuning.space import SearchOptions, Space, SweepError, read_options, read_space
from srs_eval.tuning.study import SearchStudy, written

SPACE = read_space(["x=interval(-5,5)", "n=range(1,9)", "kind=red,green", "data=small"])
OPTIONS = SearchOptions(n_trials=10, startup_trials=4, may_change=("tracking",), pruner="median")


class Killed(BaseException):
    """Stands for the end of the process."""


def value_of(params):
    return float((params["x"] - 1) ** 2 + params["n"] + (params["kind"] == "red"))


def run(folder, options=OPTIONS, passing=lambda: None):
    """Carry out a search that begins again where it dies, and return its trials."""
    while True:
        try:
            study = SearchStudy(folder, SPACE, options)
            while batch := study.propose():
                passing()
                for proposal in batch:
                    value = value_of(dict(proposal.params))
                    try:
                        for step in (1, 2, 3):
                            proposal.report(step, float(value or 0) / step)
                            passing()
                    except Pruned:
                        value = None
                    study.end(proposal, value)
                    passing()
            trials = sorted(study.ended, key=lambda trial: trial.number)
            return [(t.params, t.state, t.value, t.intermediate_values) for t in trials]
        except Killed:
            continue


@pytest.mark.parametrize(("workers", "first"), rest_nightly(itertools.product((3, 1), range(4)), 1))
def test_a_search_that_dies_again_and_again_ends_as_it_would_have(
    tmp_path, monkeypatch, workers, first
):
    options = replace(OPTIONS, workers=workers)
    whole = run(tmp_path / "whole", options)
    assert len({str(params) for params, *_ in whole}) == 10
    assert {state for _, state, *_ in whole} == {TrialState.COMPLETE, TrialState.PRUNED}
    moments, deaths = itertools.count(), range(first, 60, 9)

    def passing():
        if next(moments) in deaths:
            raise Killed

    answer = optuna.trial.Trial.should_prune

    def dying_before_the_answer(trial):
        passing()
        return answer(trial)

    monkeypatch.setattr(optuna.trial.Trial, "should_prune", dying_before_the_answer)
    assert run(tmp_path / "parts", options, passing) == whole
    assert next(moments) > 60


def test_the_trials_of_a_batch_are_proposed_together_and_those_left_are_said_to_be_repeated(
    tmp_path,
):
    options = replace(OPTIONS, startup_trials=2, workers=3)
    run(tmp_path, replace(options, n_trials=4))  # which ends within a batch
    study = SearchStudy(tmp_path, SPACE, options)
    rest = study.propose()
    assert [(each.number, each.repeated) for each in rest] == [(4, False), (5, False)]
    study.end(rest[1], value_of(dict(rest[1].params)))  # and now its process dies
    (left,) = SearchStudy(tmp_path, SPACE, options).propose()
    assert (left.number, left.repeated, left.params) == (4, True, rest[0].params)


def jobs(*values):
    ended = [JobReturn(status=JobStatus.COMPLETED) for _ in values]
    for job, value in zip(ended, values, strict=True):
        job.return_value = value
    return ended


def test_a_lost_job_costs_no_other_its_result(tmp_path, capsys, golden_text):
    launched = []

    def launch(words, number):
        launched.append((number, len(words)))
        if any("number:1," in word for job in words for word in job):
            raise RuntimeError("a worker died")
        assert len(launched) == 1 or "repeated:true" in words[0][-1] or number == 3
        return jobs(*(3.0 - number for _ in words))

    options = replace(OPTIONS, n_trials=5, workers=3, pruner="none")
    SearchStudy(tmp_path, SPACE, options).propose()  # and now its process dies
    found = search(tmp_path, SPACE, options, launch)
    assert launched == [(0, 3), (0, 1), (1, 1), (2, 1), (3, 2)]
    states = [trial.state.name for trial in found.ended]
    assert states == ["COMPLETE", "FAIL", "COMPLETE", "COMPLETE", "COMPLETE"]
    said = re.sub(r"x=\S+ n=\S+ kind=\w+", "POINT", capsys.readouterr().out)
    told = [line for line in said.splitlines() if line.startswith("trial ")]
    golden_text("trials_told", "\n".join([*told, ""]))  # of equal ones the first is the best


@pytest.mark.parametrize(
    ("metric", "returned", "value"),
    [
        ("loss", np.float32(0.5), 0.5),
        ("loss", np.int64(3), 3.0),
        ("loss", {"auc": 1, "loss": 2}, 2.0),
        ("brier", {"auc": 1, "loss": 2}, None),
        ("loss", np.True_, None),
        ("loss", True, None),
        ("loss", "text", None),
        ("loss", math.inf, None),
    ],
)
def test_any_number_that_a_job_returns_is_a_value_and_nothing_else(
    tmp_path, metric, returned, value
):
    options = SearchOptions(n_trials=3, metric=metric, max_failures=1)
    found = search(tmp_path, SPACE, options, lambda words, number: jobs(returned))
    assert [trial.value for trial in found.ended] == [value] * (1 if value is None else 3)
    assert (found.best is None, bool(found.complaint)) == (value is None, value is None)


def test_the_highest_value_is_the_best_where_it_is_to_be_high(tmp_path):
    options = SearchOptions(n_trials=3, direction="maximize", sampler="random")
    values, first = [0.2, 1234.5, 1234.5], {"x": 1.0, "n": 2, "kind": "red"}
    found = search(tmp_path, SPACE, options, lambda words, number: jobs(values[number]), first)
    assert (found.best and found.best.number) == 1
    assert found.ended[0].params == first
    shown = [written(value) for value in (None, 0.01, 0.0099, -999.94, 1000.0)]
    assert shown == ["-", "0.0100", "0.0099", "-999.9400", "1000"]


def test_the_best_of_each_time_is_told_and_one_of_a_handful_of_reviews_is_doubted(
    tmp_path, golden_text
):
    def found(name, values, **summaries):
        def launch(words, number):
            summary = json.dumps({key: of[number] for key, of in summaries.items()})
            write(tmp_path / name / f"{number}_hlr", {"summary.json": summary})
            return jobs(values[number])

        options = replace(OPTIONS, n_trials=len(values), pruner="none")
        result = search(tmp_path / name, SPACE, options, launch)
        return f"{name}: {times_told(result)}\n{doubts_told(result, result.best)}\n\n"

    times = ["previous_review", "at_review", "previous_review", "at_review"]
    text = found("two times", [2.0, 1.0, 1.5, 0.0], when=times)
    text += found("one time", [2.0, 1.0], when=times[:1] * 2)
    for reviews, forgotten in ((6, 1), (500, 3), (500, 60)):
        counts = {"reviews": [9, reviews], "forgotten": [1, forgotten]}
        text += found(f"{reviews} reviews, {forgotten} forgotten", [1.0, 0.5], **counts)
    golden_text("sweep_remarks", text)


def test_another_search_in_the_same_folder_is_refused_with_each_difference(tmp_path, golden_text):
    options = SearchOptions(n_trials=1, startup_trials=6, may_change=("tracking",))
    run(tmp_path, options)
    space = read_space(["x=interval(-5,6)", "n=3", "kind=red,green", "data=large"])
    others = replace(options, seed=7, direction="maximize", workers=2)
    with pytest.raises(SweepError) as refused:
        SearchStudy(tmp_path, space, others)
    golden_text("another_search", str(refused.value).replace(str(tmp_path), "FOLDER") + "\n")
    # more trials, what changes no number, and the first step where nothing is pruned
    space = Space(SPACE.searched, {**SPACE.fixed, "tracking": "tracking=none"}, SPACE.keys)
    more = replace(options, n_trials=90, prune_from=5)
    assert len(SearchStudy(tmp_path, space, more).ended) == 1
    run(tmp_path / "pruned", replace(options, pruner="median"))
    with pytest.raises(SweepError, match="prune_from: it was not given, and is 5"):
        SearchStudy(tmp_path / "pruned", SPACE, replace(more, pruner="median"))
    study = SearchStudy(tmp_path / "without a result", SPACE, options)
    study.end(*study.propose(), None)
    assert study.best is None
    assert SearchStudy(tmp_path / "without a result", SPACE, others).ended == []


def test_a_small_space_is_gone_through_once(tmp_path):
    space = read_space(["n=range(1,4)", "kind=red,green", "x=range(0.1,0.5,0.2)"])
    study = SearchStudy(tmp_path, space, SearchOptions(n_trials=50))
    seen = []
    while batch := study.propose():
        seen.append(tuple(batch[0].params.values()))
        study.end(batch[0], 1.0)
    points = list(itertools.product((1, 2, 3), ("green", "red"), (0.1, 0.3)))
    assert sorted(seen) == points
    assert len(list(study._every_point())) == len(points)


def test_what_is_worse_than_half_is_pruned(tmp_path):
    study = SearchStudy(tmp_path, SPACE, SearchOptions(pruner="median"))
    for number in range(5):
        (proposal,) = study.propose()
        for step in range(4):
            proposal.report(step, float(number))
        proposal.report(3, math.nan)  # not defined there, and no reason for anything
        study.end(proposal, float(number))
    (bad,) = study.propose()
    with pytest.raises(Pruned, match="at step 0, with 50"):
        bad.report(0, 50.0)
    study.end(bad, None)
    assert [trial.state for trial in study.ended][-1] == TrialState.PRUNED
    best = study.best
    assert (best and best.number) == 0


@pytest.mark.slow
@pytest.mark.parametrize("pruner", ["median", "hyperband"])
def test_before_the_step_that_was_asked_for_nothing_is_pruned(tmp_path, pruner):
    def steps_of_pruned(prune_from):
        options = replace(OPTIONS, pruner=pruner, prune_from=prune_from)
        for _, state, _, told in run(tmp_path / str(prune_from), options):
            if state == TrialState.PRUNED:
                yield max(told)

    assert min(steps_of_pruned(0)) < 3
    assert set(steps_of_pruned(3)) == {3}


def test_a_locked_file_neither_ends_a_trial_nor_loses_one(tmp_path, monkeypatch):
    monkeypatch.setattr("srs_eval.tuning.study._PATIENCE", 0.1)
    study = SearchStudy(tmp_path, SPACE, OPTIONS)
    (proposal,) = study.propose()
    with sqlite3.connect(tmp_path / "optuna.db") as other:
        other.execute("BEGIN EXCLUSIVE")
        proposal.report(1, 0.5)
        with pytest.raises(SweepError, match="locked"):
            study.end(proposal, 0.5)
        other.rollback()
    other.close()
    (again,) = SearchStudy(tmp_path, SPACE, OPTIONS).propose()
    assert (again.repeated, again.params) == (True, proposal.params)


def test_figures_of_a_search_have_what_is_written_down_for_review(
    tmp_path, monkeypatch, golden_text
):
    """Every trial, the best so far, and far ones at the edge, whichever end is the better."""
    drawn = []
    save = figures.style.save_figure
    monkeypatch.setattr(figures.style, "save_figure", lambda figure, *_: drawn.append(figure))
    x = {"x": optuna.distributions.FloatDistribution(0, 10)}
    for direction, sign, count in (("minimize", 1, 11), ("maximize", -1, 11), ("minimize", 1, 3)):
        study = optuna.create_study(direction=direction, sampler=optuna.samplers.RandomSampler(1))
        for value in [5, 4, 900, 6, 4, 3, 5, 4, 6, 5, 4][:count]:
            study.tell(study.ask(x), sign * value)
        pruned = study.ask(x)
        for step in (1, 2):
            pruned.report(sign * (6 + step), step)
        study.tell(pruned, state=TrialState.PRUNED)
        options = SimpleNamespace(sampler="random", direction=direction)
        found = SimpleNamespace(study=study, ended=study.trials, folder=tmp_path, options=options)
        figures.draw(found, "a loss")
    assert save(drawn[0], tmp_path, "history")
    golden_text("search_figures", "\n".join(map(drawings.told, drawn)))


def test_words_of_hydra_become_spaces(transcript):
    transcript("spaces", lambda word: f"{read_space([f'a.b={word}']).searched['a.b']}\n")


def test_words_that_are_no_space_are_refused_all_at_once(refusals):
    words = ["interval(3,1)", "interval(2,2)", "range(10,1)", "range(1,2)", "choice(1)"]
    words += ["tag(log,interval(0,1))", "tag(log,range(1,20,5))", "tag(log,choice(1,2))"]
    words += ["tag(loog,interval(1,2))", "shuffle(range(1,5))"]
    odd = ["a.ok=1,2", *(f"a.p{n}={word}" for n, word in enumerate(words))]
    options = {"n_trials": 0, "direction": "up", "pruner": "some", "seed": -1, "workers": True}
    calls = {
        "words": lambda: read_space(odd),
        "nothing": lambda: read_space(["algo=hlr"]),
        "options": lambda: read_options(options),
    }
    refusals("no_spaces", calls, kinds=SweepError)


def test_the_later_word_for_a_key_holds_and_a_key_keeps_what_it_is_written_with():
    space = read_space(["a=range(1,9)", "b=1,2", "a=5", "b=interval(0,1)", "c=7"])
    assert list(space.searched) == ["b"]
    assert dict(space.fixed) == {"a": "a=5", "c": "c=7"}
    assert space.words({"b": 0.25}) == ["a=5", "c=7", "b=0.25"]
    space = read_space(["+a.b=range(1,9)", "~c", "optimizer@second=x,y"])
    words = space.words({"a.b": 3, "optimizer@second": "y"})
    assert words == ["~c", "+a.b=3", "optimizer@second=y"]
