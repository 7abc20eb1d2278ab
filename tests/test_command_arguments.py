"""Words of the commands beside the main one: sorted, refused all at once, and an end for each."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from srs_eval.commands import compare, export, new, pretrain
from srs_eval.commands.arguments import NotUnderstood, carry_out, explained, sort_words
from srs_eval.errors import ConfigError, FitError

KEYS = {"to": "where it goes", "out": "the file", "user": "whose"}
CHOICES = {"to": ("anki", "json")}
COMMANDS = (compare, export, new, pretrain)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_paths_and_options_are_told_apart() -> None:
    Path("a=b").mkdir()
    found = sort_words(
        ["a=b", "run=c", "to=json", "runs", "out=x=y", "to=anki"],
        KEYS,
        choices=CHOICES,
        path_keys=("run",),
    )
    assert found.paths == (Path("a=b"), Path("c"), Path("runs"))
    assert found.options == {"to": "anki", "out": "x=y"}
    assert found.problems == ()


def test_a_home_folder_is_found() -> None:
    found = sort_words(["~/runs", "run=~/more"], KEYS, choices={}, path_keys=("run",))
    assert found.paths == (Path.home() / "runs", Path.home() / "more")


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("usr=1", "usr=1: no such key; did you mean user=?"),
        ("nonsense=1", "nonsense=1: no such key; there are to, out, user"),
        ("to=ankii", "to=ankii: did you mean to=anki?"),
        ("to=", "to=: a value is missing"),
        ("to=7", "to=7: write to=anki or json"),
        ("out=", "out=: a value is missing"),
        ("run=", "run=: no such key; there are to, out, user"),
        ("--versions", "--versions: no such flag; did you mean --version?"),
        ("-x", "-x: no such flag"),
    ],
)
def test_a_mistake_is_told_with_what_was_meant(word: str, told: str) -> None:
    assert sort_words([word], KEYS, choices=CHOICES, path_keys=("run",)).problems == (told,)


def test_all_mistakes_are_found_at_once() -> None:
    assert len(sort_words(["usr=1", "to=x", "--y"], KEYS, choices=CHOICES).problems) == 3


@pytest.mark.parametrize(
    ("error", "status", "told"),
    [
        (NotUnderstood(["this", "that"]), 2, "srs_eval: this\nsrs_eval: that\nsrs_eval: it --help"),
        (ConfigError("no such run"), 2, "srs_eval: no such run\nsrs_eval: it --help lists"),
        (FitError("went astray"), 1, "srs_eval: went astray\n"),
        (OSError(28, "No space", "file"), 1, "srs_eval: cannot write it: No space: file\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_what_goes_wrong_is_told_and_ends_with_a_status_of_its_own(
    error: BaseException, status: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def do() -> int:
        raise error

    assert carry_out(do, [], program="it", help_page="", unwritten="it") == status
    assert capsys.readouterr().err.startswith(told)


@pytest.mark.parametrize("status", [0, 1])
def test_what_does_not_go_wrong_has_the_last_word(status: int) -> None:
    assert carry_out(lambda: status, [], program="it", help_page="") == status


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_helps_and_tells_its_version(
    command: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    for word in ("--help", "-h"):
        assert command.command(["wrong=word", word]) == 0
        assert command.PROGRAM in capsys.readouterr().out
    assert command.command(["--version"]) == 0
    assert capsys.readouterr().out.startswith("srs_eval ")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_that_is_not_understood_names_its_help(
    command: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.command(["--nonsense", "nonsense=1"]) == 2
    told = capsys.readouterr().err
    assert "--nonsense" in told
    assert f"{command.PROGRAM} --help " in told
    assert "Traceback" not in told


def test_keys_are_explained_in_lines_that_fit() -> None:
    text = explained({"to": "a word " * 30, "user": "short"})
    assert "  to=" in text
    assert max(map(len, text.splitlines())) < 100


def test_it_loads_nothing_heavy() -> None:
    said = "import sys, srs_eval.commands.arguments; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)
    assert {"numpy", "hydra", "pyarrow", "matplotlib"} & {*done.stdout.split()} == set()
