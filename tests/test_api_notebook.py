"""The page and the notebook for people in Python: one code, and it runs."""

import json
import re
from pathlib import Path

import pytest

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
