"""Pages with code, and the notebook: what they show is what a reader would have."""

import json
import os
import re
import shlex
import sys
from pathlib import Path

import pytest
from commands import process

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "plugins.md"
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.S)
NAME = re.compile(r"`([\w/]+\.(?:py|yaml))`")
# Small enough for a test; everything else is run as it stands on the page.
SMALL = ["tracking=none", "figures=false", "data.size_scale=0.02", "data.users=2"]


def blocks(page=PAGE):
    """Language, file name (or "") and text of each block."""
    # text before a block, its language and its content, in turn
    parts = BLOCK.split(page.read_text(encoding="utf-8"))
    return [
        (language, (NAME.findall(before) or [""])[-1], text)
        for before, language, text in zip(parts[::3], parts[1::3], parts[2::3], strict=False)
    ]


COMMANDS = [text.strip() for language, _, text in blocks() if language == "sh"]


@pytest.fixture
def run(tmp_path, request):
    """Write the files of the page, and run Python beside them."""
    for language, name, text in blocks(getattr(request, "param", PAGE)):
        if name and language in ("python", "yaml"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text, encoding="utf-8")

    def started(*words):
        env = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONWARNINGS": "error"}
        python = [sys.executable, *words]
        done = process(python, cwd=tmp_path, env=env)
        assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
        return done

    return started


def test_the_page_has_the_files_and_commands_it_speaks_of():
    names = [name for _, name, _ in blocks() if name]
    expected = "boxes.py conf/algo/boxes.yaml doubling.py conf/algo/doubling.yaml weekend.py"
    assert names == [*expected.split(), "sharpness.py", "diary.py", "conf/data/diary.yaml"]
    assert len(COMMANDS) == 3


@pytest.mark.nightly
@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_of_the_page_runs(run, command):
    words = shlex.split(command.removeprefix("python ").replace("\\\n", " "))
    done = run(*words, *(SMALL if "data=" not in command else SMALL[:2]))
    assert {"boxes" in text for text in (command, done.stdout)} != {True, False}
    assert {"doubling" in text for text in (command, done.stdout)} != {True, False}
    assert "failed" not in done.stdout


LEARNS = """
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
centre = np.array(DoublingEquations.parameters.defaults)
objective = newton.objective(newton.problem(task.reviews), train, centre)
fitted = newton.fit(task.reviews, train, np.random.default_rng(0))
begun, ended = (objective.gradient(np.array(w)).loss for w in (objective.centre, fitted.parameters))
assert ended < 0.99 * begun
assert len(fitted.learned.standard_errors) == 6
"""


@pytest.mark.nightly
@pytest.mark.parametrize(
    "text",
    [LEARNS, *(text for language, name, text in blocks() if language == "python" and not name)],
)
def test_each_python_block_of_the_page_runs_and_its_model_learns(run, text):
    run("-c", text)


TORCH = DOCS / "guides" / "torch.md"
# What a checkout of srs-benchmark has, with another model.
CHECKOUT = {
    "config.py": "class Config: ...",
    "models/base.py": """
from config import Config
from torch import nn
class BaseModel(nn.Module):
    lr = 0.04
    def __init__(self, config: Config): super().__init__(); self.config = config
""",
    "models/theirs.py": """
import torch
from models.base import BaseModel
from srs_eval.algorithms.neural.example_module import HalfLife
class Theirs(BaseModel):
    def __init__(self, config):
        super().__init__(config)
        self.w = torch.nn.Parameter(torch.tensor([2.0, 2.0, -1.0]))
    batch_process = HalfLife.batch_process
""",
}


@pytest.mark.nightly
@pytest.mark.parametrize("run", [TORCH], indirect=True)
def test_a_file_of_srs_benchmark_and_a_module_are_run_as_their_page_says(run, tmp_path):
    for name, text in CHECKOUT.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    commands = "".join(text for language, _, text in blocks(TORCH) if language == "sh")
    told = []
    for command in commands.replace("\\\n", " ").splitlines():
        words = shlex.split(command.removeprefix("python "))
        evaluates = words[:2] == ["-m", "srs_eval"]
        told.append(run(*words, *(SMALL if evaluates else ())).stdout)
    assert len(told) == 5
    assert {name in told[1] for name in ("theirs", "fsrs6", "avg", "to best")} == {True}
    assert {name in told[4] for name in ("mine.Mine", "config.hidden=8", "fsrs6")} == {True}


ROOT = Path(__file__).parents[1]
NOTEBOOK = ROOT / "examples" / "notebook" / "evaluate.ipynb"
NUMBER = re.compile(r"-?\d+\.\d+")


def text_of(cell):
    outputs = cell.get("outputs", [])
    texts = (each.get("text", each.get("data", {}).get("text/plain", "")) for each in outputs)
    return " ".join("".join(text) for text in texts)


def test_the_notebook_has_the_code_of_the_page_and_its_links_lead_somewhere():
    page = (ROOT / "docs" / "python.md").read_text("utf-8")
    texts = {"code": [], "markdown": []}
    for cell in json.loads(NOTEBOOK.read_text("utf-8"))["cells"]:
        texts[cell["cell_type"]].append("".join(cell["source"]))
    assert texts["code"] == [
        block.strip() for block in re.findall(r"```python\n(.*?)```", page, re.S)
    ]
    links = re.findall(r"\]\((?!https?://|#)([^)#]+)", "\n".join(texts["markdown"]))
    assert [link for link in links if not (NOTEBOOK.parent / link).exists()] == []


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore")
def test_the_notebook_runs_and_shows_what_it_has_kept(tmp_path):
    nbformat, nbclient, _ = (
        pytest.importorskip(name, reason="needs the extra test")
        for name in ("nbformat", "nbclient", "ipykernel")
    )
    kept, ran = (nbformat.read(NOTEBOOK, as_version=4) for _ in range(2))
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(ran, timeout=300, resources=resources).execute()
    for cells in zip(kept.cells, ran.cells, strict=True):
        before, after = map(text_of, cells)
        assert NUMBER.sub("", before) == NUMBER.sub("", after), "run docs/make_notebook.py"
        numbers = [list(map(float, NUMBER.findall(text))) for text in (before, after)]
        assert numbers[1] == pytest.approx(numbers[0], abs=0.002)
