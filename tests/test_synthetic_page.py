"""What docs/synthetic.md says of version 2 is in its table, which a script makes."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.nightly
def test_the_table_is_made_by_its_script(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.spec_from_file_location("make_synthetic", DOCS / "make_synthetic.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, script)
    spec.loader.exec_module(script)
    users = script.SyntheticUsers(users=2, seed=script.SEED, version=2)
    studied = list(script.studied(users))
    column = script.column(studied)
    assert column[0] == str(len(studied)) != "0"
    assert len(column) == 2 + len(script.STATISTICS)
