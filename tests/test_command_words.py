"""Words of commands: help, parsing, mistakes with a suggestion, and exit status."""

from __future__ import annotations

import random
import re

import pytest
from cases import rest_nightly
from command_lines import QUICK, attempt, command_line, prepare
from commands import write
from omegaconf.errors import OmegaConfBaseException
from srs_eval.config import suggestions
from srs_eval.config.option_files import also_in, varied
from srs_eval.config.settings import explain, mistakes
from srs_eval.tuning.space import SearchOptions

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
