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


@pytest.mark.slow
@needs_everything
def test_the_page_is_what_the_program_makes():
    page = made.PAGE.read_text(encoding="utf-8")
    assert page == made.page(), "python docs/make_algorithms.py makes it anew"


@pytest.mark.slow
@needs_everything
def test_every_option_is_on_the_page_and_its_link_leads_somewhere():
    page = made.page()
    for option in OPTIONS:
        assert f"- `algo={option.name}`: " in page
        assert page.count(f'<a id="{option.name}"></a>') == 1
        assert f"(#{option.name})" in page


def test_facts_are_found_in_a_docstring():
    facts = made.Facts(
        """Something new.

        Author (2024), *A Paper*, https://example.org. Reads elapsed time and ratings, those of
        same-day reviews included; 12 parameters. Published row, without same-day
        reviews: log loss 0.3456, RMSE(bins) 0.1.

        Parameters
        ----------
        fit : str
            Reads nothing; 3 parameters.
        """.replace("\n        ", "\n")
    )
    assert facts.reads == "elapsed time and ratings, those of same-day reviews included"
    assert (facts.count, facts.published, facts.missing) == ("12", "0.3456", [])
    assert facts.paragraphs[0] == "Something new."
    assert len(facts.paragraphs) == 2


def test_what_is_missing_is_named():
    assert len(made.Facts("Something new.").missing) == 4
    facts = made.Facts("Reads outcomes; no parameters. No published row. Of 1999.")
    assert (facts.missing, facts.count, facts.published) == ([], "0", "")


def test_numbers_of_others_are_not_taken_for_its_own():
    facts = made.Facts("Reads what others read; 2 parameters and the other's.")
    assert facts.count == "varies"
    facts = made.Facts("No published row (that of another has log loss 0.1234).")
    assert facts.published == ""
