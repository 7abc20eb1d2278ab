"""Pages with code, the notebook and the site: what they show is what a reader would have."""

import json
import re
import shlex
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from commands import write
from mlflow_store import started

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGE = DOCS / "plugins.md"
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.S)
NAME = re.compile(r"`([\w/]+\.(?:py|yaml))`")
# Small enough for a test; everything else is run as it stands on the page.
SMALL = ["tracking=none", "figures=false", "data.size_scale=0.02", "data.users=2"]


def blocks():
    """Language, file name (or "") and text of each block."""
    # text before a block, its language and its content, in turn
    parts = BLOCK.split(PAGE.read_text(encoding="utf-8"))
    return [
        (language, (NAME.findall(before) or [""])[-1], text)
        for before, language, text in zip(parts[::3], parts[1::3], parts[2::3], strict=False)
    ]


COMMANDS = [text.strip() for language, _, text in blocks() if language == "sh"]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Write the files of the page, and run Python beside them."""
    for language, name, text in blocks():
        if name and language in ("python", "yaml"):
            write(tmp_path, {name: text})
    monkeypatch.setenv("PYTHONWARNINGS", "error")
    return partial(started, tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_of_the_page_runs(run, command):
    words = shlex.split(command.removeprefix("python ").replace("\\\n", " "))
    told = run(*words, *(SMALL if "data=" not in command else SMALL[:2]))
    for name in ("boxes", "doubling"):
        assert (name in command) == (name in told)
    assert "failed" not in told


@pytest.mark.nightly
def test_each_python_block_of_the_page_runs(run):
    for language, name, text in blocks():
        if language == "python" and not name:
            run("-c", text)


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


@pytest.mark.nightly
def test_the_site_is_built_without_a_warning_such_as_of_a_link_that_leads_nowhere(tmp_path):
    pytest.importorskip("myst_nb", reason="needs the extra site")
    words = ["-W", "--keep-going", "-q", "-b", "html", "-c", "docs", ".", str(tmp_path)]
    subprocess.run([sys.executable, "-m", "sphinx", *words], cwd=ROOT, check=True)
    assert "SM-17" in (tmp_path / "docs" / "algorithms.html").read_text("utf-8")


MLFLOW = (DOCS / "mlflow.md").read_text(encoding="utf-8")
TINY = (*SMALL[1:], "hydra.run.dir=out")
COMPARED = """
import srs_eval

scores = srs_eval.score(frame["p"], frame["recalled"])
found = {name.partition("/")[2]: value for name, value in result.metrics.items()}
assert found["log_loss"] > 0
assert {name: scores[name] for name in found} == found
"""


def block(containing):
    (text,) = [text for _, text in BLOCK.findall(MLFLOW) if containing in text]
    return text


@pytest.mark.nightly
def test_the_metric_and_the_model_of_the_page_do_what_it_says(tmp_path):
    assert started(tmp_path, "-c", block('predictions="p"') + COMPARED) == "0.3240\n"

    store = f"tracking.uri=sqlite:///{tmp_path / 'mlflow.db'}"
    words = ("algo=fsrs6", "algo.fit=default", "panel=quick", "tracking.model=true", store)
    started(tmp_path, "-m", "srs_eval", *words, *TINY)
    printed = started(tmp_path, "-c", block("register_model(newest"))
    recall = [float(line.split()[-1]) for line in printed.splitlines()[-6:]]
    assert len(recall) == 6
    assert recall[:3] == sorted(recall[:3], reverse=True)
