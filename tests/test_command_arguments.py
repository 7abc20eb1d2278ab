"""Command lines other than `python -m srs_eval`: their help, parsing, refusals and exit status."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from runpy import run_module
from typing import Annotated

import pytest
from annotated_types import Gt

from srs_eval.commands.cli import Argument, Command, Key, Local, Options, parse
from srs_eval.compute import stopping
from srs_eval.errors import ConfigError, FitError

MODULES = {name: f"{name}.command" for name in ("collection", "site", "submit")}
MODULES |= {
    name: f"commands.{name}"
    for name in ("compare", "export", "fit", "merge", "new", "power", "prepare", "pretrain")
}


def command_of(name: str) -> Command:
    command: Command = import_module(f"srs_eval.{MODULES[name]}").command
    return command


@dataclass(frozen=True, slots=True, kw_only=True)
class Example(Options):
    """Options of every kind."""

    run: Argument[Path]
    """a run"""
    others: Argument[tuple[Path, ...]] = ()
    """further runs"""
    share: Annotated[float, Gt(0)] = 1.0
    """a share"""
    is_small: bool = False
    """true: few users"""
    names: tuple[str, ...] = ()
    """names"""
    data: Annotated[Mapping[str, str], Key("data.KEY")] = field(default_factory=dict)
    """data"""
    uri: Annotated[str | None, Key("tracking.uri")] = None
    """a store"""
    out: Local[Path | None] = None
    """a file"""
    overrides: tuple[str, ...] = ()


def test_arguments_become_values_of_the_types_that_are_declared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["run=~/c", "share=2", "a", "is_small=true", "names=x, y,", "data.b=1", "data.c.d=x=y"]
    words += ["~no_such_user/b", "tracking.uri=u", "out=~/o", "share=0.5", "algo=avg", "algo.p=1"]
    found = parse(Example, words)
    assert found == Example(
        run=Path.home() / "c",
        others=(Path("a"), Path("~no_such_user/b")),
        share=0.5,
        is_small=True,
        names=("x", "y"),
        data={"b": "1", "c.d": "x=y"},
        uri="u",
        out=Path.home() / "o",
        overrides=("algo=avg", "algo.p=1"),
    )
    assert found.words == words
    named = parse(Example, ["others=b", "c", "run=a", "others=d"])
    assert (named.run, named.others) == (Path("a"), (Path("b"), Path("d"), Path("c")))
    assert parse(Example, ["b", "run=a"]).others == (Path("b"),)
    Path("a=b").mkdir()
    compare = command_of("compare")
    assert parse(compare.options, ["a=b", "metric=auc"]).runs == (Path("a=b"),)
    for wrong in ("share=nan", "share=inf", "share=0", "is_small=2", "out=s3://a/b"):
        with pytest.raises(ConfigError) as refused:
            parse(Example, ["a", wrong])
        assert refused.value.args[0].startswith(f"{wrong}: ")


@pytest.mark.parametrize(
    ("error", "status", "told"),
    [
        (ConfigError("this", "that"), 2, "srs_eval: this\nsrs_eval: that\nsrs_eval: it --help"),
        (FitError("went astray"), 1, "srs_eval: went astray\n"),
        (OSError(28, "No space", "file"), 1, "srs_eval: cannot read or write file: No space\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_what_goes_wrong_is_told_and_ends_with_a_status_of_its_own(
    error: BaseException, status: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(_: Options) -> int:
        raise error

    assert Command("it", "", Options, run)([]) == status
    assert capsys.readouterr().err.startswith(told)
    assert Command("it", "", Options, lambda _: 1)([]) == 1


@pytest.mark.filterwarnings("ignore:.* found in sys.modules:RuntimeWarning")
@pytest.mark.parametrize("name", ["__main__", *MODULES])
def test_every_command_is_started_by_its_name(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ended: list[int] = []
    monkeypatch.setattr(stopping, "run", lambda command: ended.append(command()))
    monkeypatch.setattr(sys, "argv", [name, "--version"])
    run_module(f"srs_eval.{name}", run_name="__main__")
    assert (ended, capsys.readouterr().out[:9]) == ([0], "srs_eval ")


def test_every_command_explains_itself(
    capsys: pytest.CaptureFixture[str], golden_text: Callable[[str, str], None]
) -> None:
    for name in MODULES:
        assert command_of(name)(["wrong=word", "--help"]) == 0
    pages = capsys.readouterr().out
    assert max(map(len, pages.splitlines())) <= 100
    golden_text("command_help", pages)
    assert command_of("new")(["-h", "algo"]) == command_of("export")(["--version"]) == 0
    assert "srs_eval.new algo" in capsys.readouterr().out


def test_all_that_is_wrong_with_a_command_line_is_told_at_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    transcript: Callable[[str, Callable[..., str]], None],
) -> None:
    monkeypatch.chdir(tmp_path)

    def told_by(name: str, *words: str) -> str:
        assert command_of(name)(words) == 2, (name, words)
        assert list(tmp_path.iterdir()) == []
        return capsys.readouterr().err

    transcript("argument_mistakes", told_by)
    # as of a variable of the shell that is not set
    assert {name: len(told_by(name, "").splitlines()) > 1 for name in MODULES} == dict.fromkeys(
        MODULES, True
    )
