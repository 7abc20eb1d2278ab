"""Command lines of compare, export, new and pretrain: parsing, errors, exit status."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from srs_eval.commands import compare, export, new, pretrain
from srs_eval.commands.arguments import carry_out, sort_words
from srs_eval.errors import ConfigError, FitError

KEYS = {"to": "where it goes", "out": "the file", "user": "whose"}
CHOICES = {"to": ("anki", "json")}
COMMANDS = (compare, export, new, pretrain)
WRONG = "usr=1 nonsense=1 to=ankii to= to=7 out= run= --versions -x"


def test_paths_and_options_are_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a=b").mkdir()
    words = ["a=b", "run=~/c", "to=json", "runs", "out=x=y", "to=anki"]
    found = sort_words(words, KEYS, choices=CHOICES, path_keys=("run",))
    assert found.paths == (Path("a=b"), Path.home() / "c", Path("runs"))
    assert found.options == {"to": "anki", "out": "x=y"}
    assert found.problems == ()


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
    assert [carry_out(lambda n=n: n, [], program="it", help_page="") for n in (0, 1)] == [0, 1]


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


def test_each_wrong_argument_is_named_with_a_suggestion(
    capsys: pytest.CaptureFixture[str], golden_text: Callable[[str, str], None]
) -> None:
    for command in COMMANDS:
        assert command.command(["--nonsense", "nonsense=1"]) == 2
    words = [*WRONG.split(), "--y"]
    problems = sort_words(words, KEYS, choices=CHOICES, path_keys=("run",)).problems
    golden_text("argument_mistakes", "\n".join([*problems, "", capsys.readouterr().err]))
