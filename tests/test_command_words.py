"""Words of commands: help, parsing, mistakes with a suggestion, and exit status."""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from runpy import run_module
from typing import Annotated

import pytest
from annotated_types import Gt
from cases import rest_nightly
from command_lines import QUICK, attempt, command_line, prepare
from commands import write
from omegaconf.errors import OmegaConfBaseException

from srs_eval.commands.cli import Argument, Command, Key, Local, Options, parse
from srs_eval.commands.run import command as run
from srs_eval.compute import stopping
from srs_eval.config import suggestions
from srs_eval.config.option_files import also_in, varied
from srs_eval.config.settings import explain, mistakes
from srs_eval.errors import ConfigError, FitError
from srs_eval.tuning.space import SearchOptions

MODULES = {"collection": "collection.command"}
MODULES |= {
    name: f"commands.{name}" for name in ("compare", "export", "fit", "merge", "prepare", "score")
}


def command_of(name):
    return import_module(f"srs_eval.{MODULES[name]}").command


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


def test_arguments_become_values_of_the_types_that_are_declared(tmp_path, monkeypatch):
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
def test_what_goes_wrong_is_told_and_ends_with_a_status_of_its_own(error, status, told, capsys):
    def run(_):
        raise error

    assert Command("it", "", Options, run)([]) == status
    assert capsys.readouterr().err.startswith(told)
    assert Command("it", "", Options, lambda _: 1)([]) == 1


@pytest.mark.filterwarnings("ignore:.* found in sys.modules:RuntimeWarning")
@pytest.mark.parametrize("name", ["__main__", *MODULES])
def test_every_command_is_started_by_its_name(name, monkeypatch, capsys):
    ended = []
    monkeypatch.setattr(stopping, "run", lambda command: ended.append(command()))
    monkeypatch.setattr(sys, "argv", [name, "--version"])
    # a function may be there in place of the module, where another test has imported it
    monkeypatch.delitem(sys.modules, f"srs_eval.{name}", raising=False)
    run_module(f"srs_eval.{name}", run_name="__main__")
    assert (ended, capsys.readouterr().out[:9]) == ([0], "srs_eval ")


def test_every_command_explains_itself(capsys, golden_text):
    assert run(["--help"]) == 0
    for name in MODULES:
        assert command_of(name)(["wrong=word", "--help"]) == 0
    pages = capsys.readouterr().out
    assert max(map(len, pages.splitlines())) <= 100
    golden_text("command_help", pages)
    assert command_of("export")(["-h", "run"]) == command_of("export")(["--version"]) == 0
    assert "srs_eval.export RUN" in capsys.readouterr().out


def test_the_file_that_is_read_is_never_written(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, words in {"collection": [], "fit": ["to=anki"], "score": []}.items():
        Path("log.csv").write_text("card,rating,time")
        for out in ("log.csv", str(tmp_path / "log.csv")):
            assert command_of(name)(["log.csv", *words, f"out={out}"]) == 2
            assert f"out={out}" in capsys.readouterr().err
        assert Path("log.csv").read_text() == "card,rating,time"
        assert len(list(tmp_path.iterdir())) == 1


def test_all_that_is_wrong_with_a_command_line_is_told_at_once(
    tmp_path, monkeypatch, capsys, transcript
):
    monkeypatch.chdir(tmp_path)

    def told_by(name, *words):
        assert command_of(name)(words) == 2, (name, words)
        assert list(tmp_path.iterdir()) == []
        return capsys.readouterr().err

    transcript("argument_mistakes", told_by)
    # as of a variable of the shell that is not set
    assert {name: len(told_by(name, "").splitlines()) > 1 for name in MODULES} == dict.fromkeys(
        MODULES, True
    )


OWN = {
    "eighty": "_target_: srs_eval.algorithms.baselines.Constant\np: 0.8\n",
    "empty": "",
    "untargeted": "epochs: 3\n",
    "nowhere": "_target_: nowhere.There\n",
    "misnamed": "_target_: srs_eval.algorithms.schedulers.sm2.Sm3\n",
}
CHANCE = "# @package _global_\nhydra:\n  sweeper:\n    params:\n      algo.p: 0.8,0.9\n"


@pytest.fixture
def shell(here):
    """A folder with options of a user: right ones, wrong ones, and some that are bombs."""
    prepare(here.folder)
    files = {f"mine/algo/{name}.yaml": text for name, text in OWN.items()}
    files |= {"mine/sweep/chance.yaml": CHANCE, "broken/algo/broken.yaml": "a: [\n"}
    write(here.folder, files)
    return here


@pytest.mark.parametrize(
    "name", ["mistakes", pytest.param("mistakes_when_composed", marks=pytest.mark.slow)]
)
def test_mistakes_are_told_as_the_transcript_says_before_anything_runs(shell, transcript, name):
    def told_by(*words):
        done = shell("hydra.run.dir=out", "hydra.sweep.dir=out", *words)
        assert (done.status, "Traceback" in done.err) == (2, False), words
        assert {path.name for path in shell.folder.iterdir()} <= {*before, "out"}, words
        return done.err

    before = {path.name for path in shell.folder.iterdir()}
    transcript(name, told_by)
    assert not list(shell.folder.rglob("summary.json"))


def test_options_of_a_user_are_listed_beside_those_that_cannot_be_read(shell):
    done = shell("algo=?", "--config-dir=mine")
    assert done.status == 0
    assert re.search(r"^eighty +p=0.8$", done.out, re.M)
    assert "latin" in shell("algo=?", "--config-dir=options").out


def test_what_is_right_is_not_complained_about(transcript):
    transcript("no_mistakes", lambda *words: "\n".join([*mistakes(words), ""]))


def test_an_overlay_may_choose_the_option_that_it_varies(tmp_path):
    params = "{algo: 'avg,constant', algo.p: '0.8,0.9', data.seed: '1,2'}"
    write(tmp_path, {"sweep/both.yaml": f"hydra: {{sweeper: {{params: {params}}}}}\n"})
    with also_in([tmp_path]):
        assert varied("sweep", "both") == {"data": ["seed"]}


def test_what_hydra_says_is_told_without_its_links_and_with_the_cause():
    error = ValueError("cannot be composed\nsee https://hydra.cc/docs/x")
    error.__cause__ = OmegaConfBaseException("no such key\nfull_key: x")
    assert explain(error, []) == "cannot be composed\nno such key"
    several = explain(ValueError("Ambiguous value for argument 'a=1,2'"), ["a=1,2", "b=[1,2]"])
    assert several == "a=1,2: several values need the flag -m"


def test_what_a_search_is_known_to_have_is_what_it_has():
    assert set(suggestions._OF_A_SEARCH) == set(SearchOptions.__dataclass_fields__) - {
        "seed",  # there is one for runs too
        "may_change",
    }


def test_words_are_kept_as_they_were_typed_and_long_ones_cut_where_they_are_shown(shell):
    ended = attempt((*QUICK, "name=${oc.decode:'['}", "name=x"))
    assert (ended.kind, "Traceback" in ended.text) == ("accepted", False)
    ended = attempt((*QUICK, f"tracking.file={'x' * 5000}", f"algo={'y' * 3000}"))
    assert (ended.kind, len(ended.text) < 4000) == ("clear error", True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", rest_nightly(range(25), 5))
def test_a_random_command_line_ends_well(shell, seed):
    """With a clear error or a run, soon, and with nothing left elsewhere."""
    ended = attempt(command_line(random.Random(seed)))
    assert ended.kind in ("accepted", "clear error"), (ended.words, ended.text)
    assert not (shell.folder / "PWNED").exists()
    assert not any(path.name.endswith(":") for path in shell.folder.iterdir())
