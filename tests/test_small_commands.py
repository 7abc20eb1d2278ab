"""Words of the small commands: values, help, mistakes, and how they end."""

import re
import sys
from dataclasses import dataclass, field, fields
from pathlib import Path
from runpy import run_module
from typing import Any

import pytest
from omegaconf import MISSING

from srs_eval.collection.command import Collection, report
from srs_eval.errors import ConfigError
from srs_eval.runs.commands import COMMANDS
from srs_eval.runs.words import read, status

EVERY = {**COMMANDS, "collection": (Collection, report)}


@dataclass
class Example:
    """Options of every kind."""

    file: Path = MISSING
    out: Path | None = None
    name: str = "nobody"
    small: bool = False
    count: int = 3
    names: list[str] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)
    choices: dict[str, str] = field(default_factory=lambda: {"data": "csv"})


def test_words_become_values_of_the_types_that_are_declared(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a=b").mkdir()
    words = ["out=o p", "name=007", "small=true", "count=7", "names=[x, y]", "data=table"]
    words += ["data.path=*x", "data.users=[1, b]", "data.columns.user=who", "a=b"]
    assert read(Example, words) == Example(
        Path("a=b"),
        out=Path("o p"),
        name="007",
        small=True,
        count=7,
        names=["x", "y"],
        data={"path": "*x", "users": [1, "b"], "columns": {"user": "who"}},
        choices={"data": "table"},
    )
    assert read(COMMANDS["compare"][0], ["a", "b", "metric=auc"]).runs == ["a", "b"]


@pytest.mark.parametrize(
    ("error", "ends"),
    [(ConfigError("this", "that"), 1), (OSError(28, "this"), 1), (KeyboardInterrupt(), 130)],
)
def test_what_goes_wrong_is_told_and_ends_with_a_status(error, ends, capsys):
    def run(_):
        raise error

    assert status(Example, run, ["x"]) == ends
    assert ("this" in capsys.readouterr().err) == (ends == 1)
    assert status(Example, lambda _: 1, ["x"]) == 1
    assert status(Example, lambda _: None, ["x"]) == 0


WRONG = {
    "compare": [["wrong=1", "'wrong'"], ["intersect=7x", "7x"], ["", "no runs"]],
    "export": [["run", "to"], ["run to=word", "to=word"], ["a b to=anki", "a b"]],
    "fit": [["log.csv", "to"], ["nope.csv to=anki", "nope.csv"]],
    "score": [["nope.jsonl", "nope.jsonl"], ["a.jsonl p=3", "'p'"]],
    "prepare": [["out=o data=synthetic", "data=synthetic"], ["data=csv data.path=x", "out"]],
    "collection": [["nope.colpkg", "nope.colpkg"], ["decks=x", "collection"]],
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_words_are_told_in_a_line_or_two_and_nothing_is_written(
    name, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    secret = ["out=postgresql://me:hush@host/db", "out: leave the password"]
    for words, told in (*WRONG[name], secret):
        assert status(*EVERY[name], words.split()) == 1, words
        text = capsys.readouterr().err
        assert text.startswith("srs_eval: ")
        assert told in text
        assert "hush" not in text
        assert len(text.splitlines()) < 4, text
        assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("ignore:.* found in sys.modules:RuntimeWarning")
@pytest.mark.parametrize("name", EVERY)
def test_every_command_explains_all_its_options(name, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [name, "wrong=word", "--help"])
    # a function may be there in place of the module, where another test has imported it
    monkeypatch.delitem(sys.modules, f"srs_eval.{name}", raising=False)
    with pytest.raises(SystemExit) as end:
        run_module(f"srs_eval.{name}", run_name="__main__")
    page = capsys.readouterr().out
    assert end.value.code == 0
    assert f"python -m srs_eval.{name}" in page
    assert max(map(len, page.splitlines())) <= 100
    keys = [each.name for each in fields(EVERY[name][0])[1:] if each.name != "choices"]
    assert [key for key in keys if not re.search(rf"\b{key}[=.]", page)] == []


@pytest.mark.parametrize("name", ["collection", "fit", "score"])
def test_the_file_that_is_read_is_never_written(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("log.csv").write_text("card,rating,time")
    for out in ("log.csv", str(tmp_path / "log.csv")):
        words = ["log.csv", f"out={out}", *["to=anki"] * (name == "fit")]
        assert status(*EVERY[name], words) == 1
        assert f"out={out}" in capsys.readouterr().err
    assert Path("log.csv").read_text() == "card,rating,time"
    assert len(list(tmp_path.iterdir())) == 1
