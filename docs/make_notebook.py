"""Run examples/notebook again and keep its outputs: python docs/make_notebook.py."""

import tempfile
from pathlib import Path

import nbclient
import nbformat

NOTEBOOK = Path(__file__).parents[1] / "examples" / "notebook" / "evaluate.ipynb"


def main() -> None:
    """Execute every cell in a temporary folder and write the notebook back."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        nbclient.NotebookClient(notebook, timeout=300, resources=resources).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        for numbered in (cell, *cell.get("outputs", [])):
            if "execution_count" in numbered:
                numbered.execution_count = None
    nbformat.write(notebook, NOTEBOOK)


if __name__ == "__main__":
    main()
