"""The trials of a search: reproducible, none repeated, none lost."""

from __future__ import annotations

import itertools
import json
import math
import re
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hydra.core.utils import JobReturn, JobStatus
from optuna.trial import TrialState

from srs_eval.errors import Pruned
from srs_eval.tuning.ending import doubts_told, times_told
from srs_eval.tuning.options import SearchOptions
from srs_eval.tuning.search import search
from srs_eval.tuning.space import Space, SweepError, read_space
from srs_eval.tuning.study import SearchStudy

SPACE = read_space(["x=interval(-5,5)", "n=range(1,9)", "kind=red,green", "data=small"])
OPTIONS = SearchOptions(n_trials=25, startup_trials=6, may_change=("tracking",))


def value_of(params: dict[str, Any]) -> float:
    return float((params["x"] - 1) ** 2 + params["n"] + (params["kind"] == "red"))


def run(folder: Path, *, until: int, options: SearchOptions = OPTIONS) -> list[dict[str, Any]]:
    study = SearchStudy(folder, SPACE, replace(options, n_trials=until))
    while batch := study.propose():
        for proposal in batch:
            study.end(proposal, value_of(dict(proposal.params)))
    return [trial.params for trial in study.finished()]


@pytest.mark.slow
def test_an_interrupted_search_goes_on_as_it_would_have(tmp_path: Path) -> None:
    whole = run(tmp_path / "whole", until=25)
    assert len({str(params) for params in whole}) == 25
    for begun in (2, 13):
        run(tmp_path / "parts", until=begun)
        # and now its process dies
        (left,) = SearchStudy(tmp_path / "parts", SPACE, OPTIONS).propose()
        (again,) = SearchStudy(tmp_path / "parts", SPACE, OPTIONS).propose()
        assert again.repeated
        assert not left.repeated
        assert (again.number, dict(again.params)) == (left.number, dict(left.params))
    assert run(tmp_path / "parts", until=25) == whole
    assert SearchStudy(tmp_path / "parts", SPACE, OPTIONS).study.trials[-1].number == 24


@pytest.mark.slow
def test_an_interrupted_batch_is_finished_as_it_would_have_been(tmp_path: Path) -> None:
    options = replace(OPTIONS, startup_trials=2, workers=3)
    whole = run(tmp_path / "whole", until=8, options=options)
    run(tmp_path / "parts", until=4, options=options)  # which ends within a batch
    study = SearchStudy(tmp_path / "parts", SPACE, options)
    rest = study.propose()
    assert [proposal.number for proposal in rest] == [4, 5]
    study.end(rest[1], value_of(dict(rest[1].params)))  # and now its process dies
    study = SearchStudy(tmp_path / "parts", SPACE, options)
    (left,) = study.propose()
    assert (left.number, left.repeated) == (4, True)
    study.end(left, value_of(dict(left.params)))
    assert run(tmp_path / "parts", until=8, options=options) == whole
    assert len({str(params) for params in whole}) == 8
    with pytest.raises(SweepError):
        SearchStudy(tmp_path / "parts", SPACE, OPTIONS)


def jobs(*values: float) -> list[JobReturn]:
    ended = [JobReturn(status=JobStatus.COMPLETED) for _ in values]
    for job, value in zip(ended, values, strict=True):
        job.return_value = value
    return ended


@pytest.mark.slow
def test_a_lost_job_costs_no_other_its_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    launched: list[tuple[int, int]] = []

    def launch(words: Sequence[Sequence[str]], number: int) -> list[JobReturn]:
        launched.append((number, len(words)))
        if any("number:1," in word for job in words for word in job):
            raise RuntimeError("a worker died")
        assert len(launched) == 1 or "repeated:true" in words[0][-1] or number == 3
        return jobs(*(3.0 - number for _ in words))

    options = replace(OPTIONS, n_trials=5, workers=3)
    SearchStudy(tmp_path, SPACE, options).propose()  # and now its process dies
    found = search(tmp_path, SPACE, options, launch)
    assert launched == [(0, 3), (0, 1), (1, 1), (2, 1), (3, 2)]
    states = [trial.state.name for trial in found.trials]
    assert states == ["COMPLETE", "FAIL", "COMPLETE", "COMPLETE", "COMPLETE"]
    said = re.sub(r"x=\S+ n=\S+ kind=\w+", "POINT", capsys.readouterr().out)
    assert [line for line in said.splitlines() if line.startswith("trial ")] == [
        "trial 0 of 5: 3.0000  POINT; best 3.0000, trial 0",
        "trial 1 of 5: failed  POINT; best 3.0000, trial 0",
        "trial 2 of 5: 1.0000  POINT; best 1.0000, trial 2",
        "trial 3 of 5: 0  POINT; best 0, trial 3",
        "trial 4 of 5: 0  POINT; best 0, trial 3",  # of equal ones the first
    ]


def test_the_best_of_each_time_is_told_and_one_of_a_handful_of_reviews_is_doubted(
    tmp_path: Path, golden_text: Callable[[str, str], None]
) -> None:
    def found(name: str, values: Sequence[float], **summaries: Sequence[object]) -> str:
        def launch(words: Sequence[Sequence[str]], number: int) -> list[JobReturn]:
            file = tmp_path / name / f"{number}_hlr" / "summary.json"
            file.parent.mkdir()
            file.write_text(json.dumps({key: of[number] for key, of in summaries.items()}))
            return jobs(values[number])

        result = search(tmp_path / name, SPACE, replace(OPTIONS, n_trials=len(values)), launch)
        assert result.best is not None
        return f"{name}: {times_told(result)}\n{doubts_told(result, result.best)}\n\n"

    times = ["previous_review", "at_review", "previous_review", "at_review"]
    text = found("two times", [2.0, 1.0, 1.5, 0.0], when=times)
    text += found("one time", [2.0, 1.0], when=times[:1] * 2)
    for reviews, forgotten in ((6, 1), (500, 3), (500, 60)):
        counts = {"reviews": [9, reviews], "forgotten": [1, forgotten]}
        text += found(f"{reviews} reviews, {forgotten} forgotten", [1.0, 0.5], **counts)
    golden_text("sweep_remarks", text)


@pytest.mark.slow
def test_estimators_do_better_than_chance(tmp_path: Path) -> None:
    tpe = run(tmp_path / "tpe", until=40)
    chance = run(tmp_path / "random", until=40, options=SearchOptions(sampler="random"))
    other = run(tmp_path / "other", until=1, options=SearchOptions(seed=1))
    assert other != chance[:1] == tpe[:1]
    late = [sum(map(value_of, params[20:])) for params in (tpe, chance)]
    assert late[0] < late[1]


def test_another_search_in_the_same_folder_is_refused_with_each_difference(
    tmp_path: Path, golden_text: Callable[[str, str], None]
) -> None:
    run(tmp_path, until=1)
    space = read_space(["x=interval(-5,6)", "n=3", "kind=red,green", "data=large"])
    options = SearchOptions(n_trials=25, startup_trials=6, seed=7, direction="maximize", workers=2)
    with pytest.raises(SweepError) as refused:
        SearchStudy(tmp_path, space, options)
    golden_text("another_search", str(refused.value).replace(str(tmp_path), "FOLDER") + "\n")


@pytest.mark.slow
def test_more_trials_and_what_changes_no_number_are_no_other_search(tmp_path: Path) -> None:
    run(tmp_path, until=2)
    space = Space(SPACE.searched, {**SPACE.fixed, "tracking": "tracking=none"}, SPACE.keys)
    assert len(SearchStudy(tmp_path, space, replace(OPTIONS, n_trials=90)).finished()) == 2


def test_a_search_without_a_result_can_be_replaced(tmp_path: Path) -> None:
    study = SearchStudy(tmp_path, SPACE, OPTIONS)
    study.end(*study.propose(), None)
    assert study.best() is None
    assert SearchStudy(tmp_path, SPACE, SearchOptions(seed=3)).finished() == []


def test_a_small_space_is_gone_through_once(tmp_path: Path) -> None:
    space = read_space(["n=range(1,4)", "kind=red,green", "x=range(0.1,0.5,0.2)"])
    study = SearchStudy(tmp_path, space, SearchOptions(n_trials=50))
    seen = []
    while batch := study.propose():
        seen.append(tuple(batch[0].params.values()))
        study.end(batch[0], 1.0)
    points = itertools.product((1, 2, 3), ("green", "red"), (0.1, 0.3))
    assert sorted(seen) == list(points)


def test_what_is_worse_than_half_is_pruned(tmp_path: Path) -> None:
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
    assert [trial.state for trial in study.finished()][-1] == TrialState.PRUNED
    best = study.best()
    assert (best and best.number) == 0


@pytest.mark.slow
@pytest.mark.parametrize("pruner", ["median", "hyperband"])
def test_before_the_step_that_was_asked_for_nothing_is_pruned(tmp_path: Path, pruner: str) -> None:
    last = {}
    for prune_from in (0, 3):
        options = SearchOptions(pruner=pruner, prune_from=prune_from)
        study = SearchStudy(tmp_path / str(prune_from), SPACE, options)
        for number in range(8):
            (proposal,) = study.propose()
            try:
                for step in range(1, 6):
                    proposal.report(step, float(number))
            except Pruned:
                study.end(proposal, None)
            else:
                study.end(proposal, float(number))
        pruned = [t for t in study.finished() if t.state == TrialState.PRUNED]
        last[prune_from] = min(max(trial.intermediate_values) for trial in pruned)
    assert last[0] < 3 <= last[3]


@pytest.mark.slow
def test_a_search_from_before_there_was_a_first_step_is_gone_on_with(tmp_path: Path) -> None:
    run(tmp_path, until=1)
    kept = SearchStudy(tmp_path, SPACE, OPTIONS).study.user_attrs["identity"]["settings"]
    assert "prune_from" not in kept
    SearchStudy(tmp_path, SPACE, replace(OPTIONS, prune_from=5))  # it prunes nothing
    pruned = replace(OPTIONS, pruner="median")
    run(tmp_path / "pruned", until=1, options=pruned)
    with pytest.raises(SweepError, match="prune_from: it was not given, and is 5"):
        SearchStudy(tmp_path / "pruned", SPACE, replace(pruned, prune_from=5))


@pytest.mark.slow
def test_a_repeated_trial_says_again_what_it_has_said_and_goes_on_where_it_went_on(
    tmp_path: Path,
) -> None:
    options = SearchOptions(pruner="median")
    study = SearchStudy(tmp_path, SPACE, options)
    for number in range(5):
        (proposal,) = study.propose()
        for step in (1, 2):
            proposal.report(step, float(number))
        study.end(proposal, float(number))
    (killed,) = study.propose()
    killed.report(1, 0.0)
    killed.trial.report(9.0, 2)  # and before the answer its process died
    (again,) = SearchStudy(tmp_path, SPACE, options).propose()
    again.report(1, 0.0)
    again.report(2, 9.0)
    again.report(3, 0.5)
    assert again.trial.study.trials[5].intermediate_values == {1: 0.0, 2: 9.0, 3: 0.5}


@pytest.mark.slow
def test_a_locked_file_neither_ends_a_trial_nor_loses_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("srs_eval.tuning.study._PATIENCE", 0.1)
    study = SearchStudy(tmp_path, SPACE, replace(OPTIONS, pruner="median"))
    (proposal,) = study.propose()
    with sqlite3.connect(tmp_path / "optuna.db") as other:
        other.execute("BEGIN EXCLUSIVE")
        proposal.report(1, 0.5)
        with pytest.raises(SweepError, match="locked"):
            study.end(proposal, 0.5)
        other.rollback()
    other.close()
    (again,) = SearchStudy(tmp_path, SPACE, replace(OPTIONS, pruner="median")).propose()
    assert again.repeated
    assert dict(again.params) == dict(proposal.params)
