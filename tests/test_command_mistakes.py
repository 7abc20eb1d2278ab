"""A command line with a mistake: a line that says what was meant, exit status 2, nothing begun."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Here


@pytest.fixture
def here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Here:
    monkeypatch.chdir(tmp_path)
    return Here(tmp_path, capsys)


MISTAKES = [
    (["algo=lsmt"], ["algo=lsmt: no such option; did you mean 'lstm'?", "moving_avg"]),
    (["algoo=lstm"], ["there is no 'algoo'; did you mean 'algo'?"]),
    (["algo=gru", "algo.epoch=3"], ["there is no 'algo.epoch'; did you mean 'algo.epochs'?"]),
    (["algo.hidden=3"], ["algo=fsrs6 has no 'hidden', but gru,", "lstm_published have"]),
    (["data.user=3"], ["data=synthetic has no 'user', but anki has"]),
    (["seed=abc"], ["seed=abc: expected a whole number"]),
    (["figures=maybe"], ["figures=maybe: expected true or false"]),
    (["data.users=abc"], ["data.users='abc': expected a whole number"]),
    (["algo=constant", "algo.p=much"], ["algo.p='much': expected a number"]),
    (["algo=hlr", "algo.fit=s0"], ["fit=s0 is not one of: newton, lbfgs, reference, default"]),
    (["data=csv"], ["data=csv needs data.path=…"]),
    (["data=anki"], ["data=anki needs data.path=…"]),
    (["+nonsense=1"], ["there is no 'nonsense'"]),
    (["algo.nonsense=1"], ["there is no 'algo.nonsense'"]),
    (["+algo.nonsense=1"], ["Fsrs6: there is no argument 'nonsense'", "fit, parameters"]),
    (["~algo"], ["algo cannot be left out"]),
    (["~panel.metrics.eec"], ["did you mean 'panel.metrics.ece'?"]),
    (["algo"], ["algo: write algo=OPTION; there are\n  ", " constant,"]),
    (["fsrs6"], ["fsrs6: write KEY=VALUE"]),
    (["tags.who=me"], ["tags.who=me: write +tags.who=me"]),
    (["algo.parameters=[1"], ["cannot be read", "close every bracket"]),
    (["algo=avg,sm2"], ["algo=avg,sm2: several values need the flag -m"]),
    (["-m", "algo=avg,smm2"], ["algo=smm2: no such option; did you mean 'sm2'?"]),
    (["-m", "algo=avg,constant", "algo.p=0.8"], ["algo=avg has no 'p', but constant has"]),
    (["experiment=quick"], ["experiment=quick: no such option; did you mean 'quick_start'?"]),
    (["--hlep"], ["--hlep: no such flag; did you mean --help?"]),
    (["seed=-1", "curves_per_user=-2"], ["seed=-1, curves_per_user=-2: expected a whole number"]),
    (["tracking=none", "algo=avg", "--config-dir", "nowhere"], ["nowhere' not found"]),
    (
        ["tracking=mlfow", "panel=fulll", "compute=serail"],
        ["did you mean 'mlflow'?", "did you mean 'full'?", "did you mean 'serial'?"],
    ),
]


@pytest.mark.parametrize(("words", "told"), MISTAKES, ids=[" ".join(m[0]) for m in MISTAKES])
def test_a_mistake_is_told_in_a_line_with_what_was_meant(
    here: Here, words: list[str], told: list[str]
) -> None:
    done = here(*words, "hydra.run.dir=out", "hydra.sweep.dir=out")
    assert done.status == 2
    for text in told:
        assert text in done.err
    assert "Traceback" not in done.text
    assert "HYDRA_FULL_ERROR" not in done.text
    assert all(len(line) < 200 for line in done.err.splitlines())
    assert not list(here.folder.rglob("summary.json"))
    assert not (here.folder / "mlflow.db").exists()


def test_all_mistakes_are_told_at_once(here: Here) -> None:
    done = here("algo=lsmt", "dat.users=3", "seed=x", "data.usres=4", "panel=defualt")
    assert done.status == 2
    meant = ("'lstm'", "'data'", "whole number", "'data.users'", "'default'")
    assert all(text in done.err for text in meant)


def test_all_values_an_option_lacks_or_refuses_are_told_at_once(here: Here) -> None:
    done = here("algo=constant", "algo.p=7", "data.users=0", "tracking=none", "hydra.run.dir=out")
    assert done.status == 2
    assert "p=7" in done.err
    assert "data.users=0" in done.err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "has no _target_"),
        ("epochs: 3\n", "has no _target_"),
        ("_target_: nowhere.There\n", "cannot import nowhere.There (No module named 'nowhere')"),
        (
            "_target_: srs_eval.algorithms.schedulers.sm2.Sm3\n",
            "cannot import srs_eval.algorithms.schedulers.sm2.Sm3",
        ),
        ("a: [\n", "own.yaml"),
    ],
)
def test_an_option_file_of_ones_own_that_is_wrong_is_named(
    here: Here, text: str, told: str
) -> None:
    (here.folder / "mine" / "algo").mkdir(parents=True)
    (here.folder / "mine" / "algo" / "own.yaml").write_text(text, encoding="utf-8")
    done = here("algo=own", "tracking=none", "hydra.run.dir=out", "--config-dir", "mine")
    assert done.status == 2
    assert told in done.err
    assert "Traceback" not in done.text


def test_options_and_arguments_of_ones_own_are_known_to_the_advice(here: Here) -> None:
    (here.folder / "mine" / "algo").mkdir(parents=True)
    text = "_target_: srs_eval.algorithms.baselines.Constant\np: 0.8\n"
    (here.folder / "mine" / "algo" / "eighty.yaml").write_text(text, encoding="utf-8")
    assert "did you mean 'eighty'?" in here("algo=eigthy", "--config-dir=mine").err
    done = here("algo=eighty", "algo.q=1", "--config-dir=mine")
    assert "there is no 'algo.q'; there are p" in done.err
    assert "p=0.8" in here("algo=?", "--config-dir=mine").out
