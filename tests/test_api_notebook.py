"""The page and the notebook for people in Python: one code, and it runs."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "python.md"
NOTEBOOK = ROOT / "examples" / "notebook" / "evaluate.ipynb"
NUMBER = re.compile(r"-?\d+\.\d+")


def blocks():
    found = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.S)
    return [block.strip() for block in found]


def text_of(output):
    text = output.get("text", output.get("data", {}).get("text/plain", ""))
    return "".join(text)


def test_the_notebook_has_the_code_of_the_page_and_its_links_lead_somewhere():
    cells = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
    texts = {"code": [], "markdown": []}
    for cell in cells:
        texts[cell["cell_type"]].append("".join(cell["source"]))
    assert texts["code"] == blocks()
    links = re.findall(r"\]\((?!https?://|#)([^)#]+)", "\n".join(texts["markdown"]))
    assert [link for link in links if not (NOTEBOOK.parent / link).exists()] == []


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore")
def test_the_notebook_runs_and_shows_what_it_has_kept(tmp_path):
    nbformat = pytest.importorskip("nbformat", reason="needs the extra test")
    nbclient = pytest.importorskip("nbclient", reason="needs the extra test")
    pytest.importorskip("ipykernel", reason="needs the extra test")
    kept = nbformat.read(NOTEBOOK, as_version=4)
    ran = nbformat.read(NOTEBOOK, as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(ran, timeout=300, resources=resources).execute()
    for old, new in zip(kept.cells, ran.cells, strict=True):
        outputs = [[text_of(each) for each in cell.get("outputs", [])] for cell in (old, new)]
        before, after = (" ".join(texts) for texts in outputs)
        assert NUMBER.sub("", before) == NUMBER.sub("", after), "run docs/make_notebook.py"
        numbers = [list(map(float, NUMBER.findall(text))) for text in (before, after)]
        assert numbers[1] == pytest.approx(numbers[0], abs=0.002)
