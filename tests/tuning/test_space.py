"""Hydra's sweep syntax as a search space, and errors for invalid spaces."""

import pytest
from optuna.distributions import (
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from srs_eval.tuning.options import read_options
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
        ("range(0.5,0.1,-0.2)", FloatDistribution(0.3, 0.5, step=0.2)),
        ("tag(log,range(0.5,4.5))", FloatDistribution(0.5, 3.5, log=True)),
        ("interval(1,20)", FloatDistribution(1, 20)),
        ("tag(log,interval(0.003,0.3))", FloatDistribution(0.003, 0.3, log=True)),
        ("int(interval(1,20))", IntDistribution(1, 20)),
        ("choice(8,16,32)", CategoricalDistribution(["8", "16", "32"])),
        ("mild,steep", CategoricalDistribution(["mild", "steep"])),
        ("null,0.5", CategoricalDistribution(["null", "0.5"])),
    ],
)
def test_words_of_hydra_become_spaces(word, expected):
    assert read_space([f"a.b={word}"]).searched["a.b"] == expected


def test_words_that_are_no_space_are_refused_all_at_once(golden_text):
    words = ["interval(3,1)", "interval(2,2)", "range(10,1)", "range(1,2)", "choice(1)"]
    words += ["tag(log,interval(0,1))", "tag(log,range(1,20,5))", "tag(log,choice(1,2))"]
    words += ["tag(loog,interval(1,2))", "shuffle(range(1,5))"]
    with pytest.raises(SweepError) as refused:
        read_space(["a.ok=1,2", *(f"a.p{n}={word}" for n, word in enumerate(words))])
    with pytest.raises(SweepError) as nothing:
        read_space(["algo=hlr"])
    with pytest.raises(SweepError) as options:
        read_options(
            {"n_trials": 0, "direction": "up", "pruner": "some", "seed": -1, "workers": True}
        )
    golden_text("no_spaces", f"{refused.value}\n\n{nothing.value}\n\n{options.value}\n")


def test_the_later_word_for_a_key_holds():
    space = read_space(["a=range(1,9)", "b=1,2", "a=5", "b=interval(0,1)", "c=7"])
    assert list(space.searched) == ["b"]
    assert dict(space.fixed) == {"a": "a=5", "c": "c=7"}
    assert space.words({"b": 0.25}) == ["a=5", "c=7", "b=0.25"]


def test_a_key_keeps_what_it_is_written_with():
    space = read_space(["+a.b=range(1,9)", "~c", "optimizer@second=x,y"])
    words = space.words({"a.b": 3, "optimizer@second": "y"})
    assert words == ["~c", "+a.b=3", "optimizer@second=y"]
