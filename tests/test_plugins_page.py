"""Every block of docs/plugins.md is what a reader would have: files are written, commands run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "plugins.md"
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.S)
NAME = re.compile(r"`([\w/]+\.(?:py|yaml))`")
# Small enough for a test; everything else is run as it stands on the page.
SMALL = ["tracking=none", "figures=false", "data.size_scale=0.02", "data.users=2"]


def blocks() -> list[tuple[str, str, str]]:
    """Language, file name (or "") and text of each block."""
    text = PAGE.read_text(encoding="utf-8")
    found = []
    end = 0
    for match in BLOCK.finditer(text):
        names = NAME.findall(text[end : match.start()])
        end = match.end()
        found.append((match[1], names[-1] if names else "", match[2]))
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("plugins")
    for language, name, text in blocks():
        if name and language in ("python", "yaml"):
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(text, encoding="utf-8")
    return place


def run_in(folder: Path, words: list[str]) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(folder), "PYTHONWARNINGS": "error"}
    return subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, check=False)


def commands() -> list[str]:
    return [text.strip() for language, _, text in blocks() if language == "sh"]


def test_the_page_has_the_files_and_commands_it_speaks_of() -> None:
    names = [name for _, name, _ in blocks() if name]
    expected = "boxes.py conf/algo/boxes.yaml doubling.py conf/algo/doubling.yaml weekend.py"
    assert names == [*expected.split(), "sharpness.py", "diary.py", "conf/data/diary.yaml"]
    assert len(commands()) == 3


@pytest.mark.nightly
@pytest.mark.parametrize("command", commands())
def test_each_command_of_the_page_runs(folder: Path, command: str) -> None:
    import shlex

    words = shlex.split(command.removeprefix("python ").replace("\\\n", " "))
    small = SMALL if "data=" not in command else SMALL[:2]
    done = run_in(folder, [sys.executable, *words, *small])
    assert done.returncode == 0, done.stderr + done.stdout
    ours = {option for option in ("boxes", "doubling") if option in command}
    assert ours == {option for option in ("boxes", "doubling") if option in done.stdout}
    assert "failed" not in done.stdout
    assert done.stderr == ""  # no file of the page hides an option


@pytest.mark.nightly
@pytest.mark.parametrize(
    "text", [text for language, name, text in blocks() if language == "python" and not name]
)
def test_each_python_block_of_the_page_runs(folder: Path, text: str) -> None:
    done = run_in(folder, [sys.executable, "-c", text])
    assert done.returncode == 0, done.stderr


@pytest.mark.nightly
def test_a_model_as_equations_is_honest_and_learns(folder: Path) -> None:
    learns = """
import numpy as np
from doubling import Doubling, DoublingEquations
from srs_eval import check_algorithm
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.protocol.srs_benchmark import SrsBenchmark

check_algorithm(Doubling())
source = SyntheticUsers(users=1, seed=5)
task = SrsBenchmark()(source.read(source.users()[0]), same_day=False)
train = task.folds[-1].train
newton = Doubling()
objective = newton.objective(
    DoublingEquations(), DoublingEquations.parameters, task.reviews, train,
    np.array(DoublingEquations.parameters.defaults),
)
fitted = newton.fit(task.reviews, train, np.random.default_rng(0))
begun, ended = (objective.gradient(np.array(w)).loss for w in (objective.centre, fitted.parameters))
assert ended < 0.99 * begun
assert len(fitted.learned.standard_errors) == 6
"""
    done = run_in(folder, [sys.executable, "-c", learns])
    assert done.returncode == 0, done.stderr
