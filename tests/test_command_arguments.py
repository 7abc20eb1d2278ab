"""Command lines of compare, export, new and pretrain: parsing, errors, exit status."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from srs_eval.commands import compare, export, new, pretrain
from srs_eval.commands.arguments import carry_out, sort_words
from srs_eval.errors import ConfigError, FitError

KEYS = {"to": "where it goes", "out": "the file", "user": "whose"}
CHOICES = {"to": ("anki", "json")}
COMMANDS = (compare, export, new, pretrain)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_paths_and_options_are_parsed() -> None:
    Path("a=b").mkdir()
    found = sort_words(
        ["a=b", "run=~/c", "to=json", "runs", "out=x=y", "to=anki"],
        KEYS,
        choices=CHOICES,
        path_keys=("run",),
    )
    assert found.paths == (Path("a=b"), Path.home() / "c", Path("runs"))
    assert found.options == {"to": "anki", "out": "x=y"}
    assert found.problems == ()


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("usr=1", "user="),
        ("nonsense=1", "to, out, user"),
        ("to=ankii", "to=anki?"),
        ("to=", "to="),
        ("to=7", "anki or json"),
        ("out=", "out="),
        ("run=", "to, out, user"),
        ("--versions", "--version?"),
        ("-x", "-x"),
    ],
)
def test_each_error_names_the_argument_and_a_suggestion(word: str, meant: str) -> None:
    found = sort_words([word, "--y"], KEYS, choices=CHOICES, path_keys=("run",))
    assert len(found.problems) == 2
    assert found.problems[0].startswith(f"{word}: ")
    assert meant in found.problems[0]


@pytest.mark.parametrize(
    ("error", "status", "told"),
    [
        (ConfigError("this", "that"), 2, "srs_eval: this\nsrs_eval: that\nsrs_eval: it --help"),
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
        told = capsys.readouterr().out
        assert command.PROGRAM in told
        assert [key for key in getattr(command, "KEYS", ()) if f"  {key}=" not in told] == []
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
