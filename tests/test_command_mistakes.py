"""Command lines with a mistake: a suggestion, exit status 2, and nothing is run."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest
from cases import rest_nightly
from command_lines import attempt, command_line, prepare
from commands import Here

from srs_eval.config import suggestions
from srs_eval.config.settings import mistakes
from srs_eval.tuning.options import SearchOptions

OWN = {
    "eighty": "_target_: srs_eval.algorithms.baselines.Constant\np: 0.8\n",
    "empty": "",
    "untargeted": "epochs: 3\n",
    "nowhere": "_target_: nowhere.There\n",
    "misnamed": "_target_: srs_eval.algorithms.schedulers.sm2.Sm3\n",
}
CHANCE = "# @package _global_\nhydra:\n  sweeper:\n    params:\n      algo.p: 0.8,0.9\n"


@pytest.fixture
def shell(here: Here) -> Here:
    """A folder with options of a user: right ones, wrong ones, and some that are bombs."""
    prepare(here.folder)
    files = {f"mine/algo/{name}.yaml": text for name, text in OWN.items()}
    files |= {"mine/sweep/chance.yaml": CHANCE, "broken/algo/broken.yaml": "a: [\n"}
    for name, text in files.items():
        (here.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (here.folder / name).write_text(text, encoding="utf-8")
    return here


@pytest.mark.parametrize(
    "name", ["mistakes", pytest.param("mistakes_when_composed", marks=pytest.mark.slow)]
)
def test_mistakes_are_told_as_the_transcript_says_before_anything_runs(
    shell: Here, transcript: Callable[[str, Callable[..., str]], None], name: str
) -> None:
    def told_by(*words: str) -> str:
        done = shell("hydra.run.dir=out", "hydra.sweep.dir=out", *words)
        assert (done.status, "Traceback" in done.err) == (2, False), words
        assert {path.name for path in shell.folder.iterdir()} <= {*before, "out"}, words
        return done.err

    before = {path.name for path in shell.folder.iterdir()}
    transcript(name, told_by)
    assert not list(shell.folder.rglob("summary.json"))


def test_options_of_a_user_are_listed_beside_those_that_cannot_be_read(shell: Here) -> None:
    done = shell("algo=?", "--config-dir=mine")
    assert done.status == 0
    assert re.search(r"^eighty +p=0.8$", done.out, re.M)
    assert "latin" in shell("algo=?", "--config-dir=options").out


@pytest.mark.parametrize(
    "line",
    [
        "sweep=optuna_lstm algo=lstm",
        "sweep=optuna_fsrs",
        "sweep=lstm_size algo=lstm",
        "sweep=optuna_trees algo=boosted_trees_monotone",
        "sweep=optuna_lstm experiment=quick_start",
        "sweep=optuna_lstm hydra.sweeper.params={algo.p:choice(1,2)}",
        "sweep=null experiment=null",
        "algo=gru algo.epochs=9",
        "algo=avg,sm2,lstm",
        "algo=glob(*)",
        "algo=lstm algo.hidden=range(4,9)",
        "data=revlogs_10k data.path=/a/b data.users=[8,36]",
        "data=csv data.path=log.csv data.columns.card=note",
        "panel=full ~panel.metrics.ece panel.metrics.ece_15.bins=20",
        "experiment=quick_start algo.hidden=3",
        "hydra.run.dir=here +tags.a=b notes='a_b'",
    ],
)
def test_what_is_right_is_not_complained_about(line: str) -> None:
    assert mistakes(line.split()) == []


def test_what_a_search_is_known_to_have_is_what_it_has() -> None:
    assert set(suggestions._OF_A_SEARCH) == set(SearchOptions.__dataclass_fields__) - {
        "seed",  # there is one for runs too
        "may_change",
    }


@pytest.mark.slow
@pytest.mark.parametrize("seed", rest_nightly(range(25), 5))
def test_a_random_command_line_ends_well(shell: Here, seed: int) -> None:
    """With a clear error or a run, soon, and with nothing left elsewhere."""
    ended = attempt(command_line(random.Random(seed)))
    assert ended.kind in ("accepted", "clear error"), (ended.words, ended.text)
    assert not (shell.folder / "PWNED").exists()
    assert not any(path.name.endswith(":") for path in shell.folder.iterdir())
