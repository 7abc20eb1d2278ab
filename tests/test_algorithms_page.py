"""docs/algorithms.md is what its program makes, and every algorithm says what it must."""

from __future__ import annotations

import importlib.util
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[1] / "docs" / "make_algorithms.py"


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


made = load(SCRIPT)
OPTIONS = made.options()

needs_everything = pytest.mark.skipif(
    find_spec("torch") is None or find_spec("fsrs_rs_python") is None,
    reason="some algorithms need more: pip install 'srs-eval[neural,rs]'",
)


@needs_everything
@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_every_algorithm_says_what_it_must(option):
    assert option.facts.missing == []


@pytest.mark.nightly
@needs_everything
def test_the_page_is_what_the_program_makes():
    page = made.page()
    kept = made.PAGE.read_text(encoding="utf-8")
    assert kept == page, "python docs/make_algorithms.py makes it anew"
    for option in OPTIONS:
        assert f"- `algo={option.name}`: " in page
        assert page.count(f'<a id="{option.name}"></a>') == 1
        assert f"(#{option.name})" in page
