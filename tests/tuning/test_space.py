"""Hydra's sweep syntax as a search space, and errors for invalid spaces."""

from __future__ import annotations

import pytest
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from srs_eval.tuning.options import SearchOptions
from srs_eval.tuning.space import SweepError, read_space


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("range(1,20)", IntDistribution(1, 19)),
        ("range(1,21,5)", IntDistribution(1, 16, step=5)),
        ("range(20,1,-5)", IntDistribution(5, 20, step=5)),
        ("range(5)", IntDistribution(0, 4)),
        ("tag(log,range(1,20))", IntDistribution(1, 19, log=True)),
        ("range(0.1,0.5,0.2)", FloatDistribution(0.1, 0.3, step=0.2)),
        ("interval(1,20)", FloatDistribution(1, 20)),
        ("tag(log,interval(0.003,0.3))", FloatDistribution(0.003, 0.3, log=True)),
        ("int(interval(1,20))", IntDistribution(1, 20)),
        ("choice(8,16,32)", CategoricalDistribution(["8", "16", "32"])),
        ("mild,steep", CategoricalDistribution(["mild", "steep"])),
        ("null,0.5", CategoricalDistribution(["null", "0.5"])),
    ],
)
def test_words_of_hydra_become_spaces(word: str, expected: BaseDistribution) -> None:
    assert read_space([f"a.b={word}"]).searched["a.b"] == expected


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("interval(3,1)", "between its ends"),
        ("interval(2,2)", "between its ends"),
        ("range(10,1)", "between its ends"),
        ("range(1,2)", "between its ends"),
        ("tag(log,interval(0,1))", "begins above 0"),
        ("tag(log,range(1,20,5))", "leave the step out"),
        ("tag(log,choice(1,2))", "choices have no scale"),
        ("tag(loog,interval(1,2))", "tag loog"),
        ("shuffle(range(1,5))", "leave shuffle out"),
        ("choice(1)", "only one choice"),
    ],
)
def test_words_that_are_no_space_are_refused_with_the_reason(word: str, reason: str) -> None:
    with pytest.raises(SweepError, match=reason) as refused:
        read_space([f"a.b={word}", "a.c=interval(5,1)"])
    told = str(refused.value).splitlines()
    assert len(told) == 2  # everything that is wrong at once
    assert told[0].startswith(f"a.b={word}: ")


def test_without_anything_to_search_over_it_is_said_how_that_is_written() -> None:
    with pytest.raises(SweepError, match=r"nothing to search over.*tag\(log, …\)"):
        read_space(["algo=hlr"])


def test_the_later_word_for_a_key_holds() -> None:
    space = read_space(["a=range(1,9)", "b=1,2", "a=5", "b=interval(0,1)", "c=7"])
    assert list(space.searched) == ["b"]
    assert dict(space.fixed) == {"a": "a=5", "c": "c=7"}
    assert space.words({"b": 0.25}) == ["a=5", "c=7", "b=0.25"]


def test_a_key_keeps_what_it_is_written_with() -> None:
    space = read_space(["+a.b=range(1,9)", "~c", "optimizer@second=x,y"])
    words = space.words({"a.b": 3, "optimizer@second": "y"})
    assert words == ["~c", "+a.b=3", "optimizer@second=y"]


def test_options_that_mean_nothing_are_refused_all_at_once() -> None:
    with pytest.raises(SweepError) as refused:
        SearchOptions(n_trials=0, direction="up", pruner="some", seed=-1)  # type: ignore[arg-type]
    wrong = [line.partition(":")[0] for line in str(refused.value).splitlines()]
    assert [name.removeprefix("hydra.sweeper.") for name in wrong] == [
        *("direction=up", "pruner=some", "n_trials=0", "seed=-1")
    ]
