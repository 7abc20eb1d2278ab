"""A skip for a reason that is on no list is a failure where CI=true, and nowhere else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import pytest

def test_passes(): pass
def test_accepted(): pytest.skip("there is no GPU here")
@pytest.mark.xfail
def test_known(): raise ValueError
@pytest.mark.skipif(True, reason="no Chromium on the PATH")
def test_by_mark(): pass
@pytest.fixture
def log(): pytest.skip("the log is not beside this checkout")
def test_by_fixture(log): pass
"""
MODULE = "import pytest; pytest.importorskip('no_such_package')"


@pytest.mark.parametrize("ci", ["true", ""])
def test_only_accepted_skips_are_silent_in_ci(tmp_path: Path, ci: str) -> None:
    (tmp_path / "test_some.py").write_text(TESTS)
    (tmp_path / "test_module.py").write_text(MODULE)
    env = os.environ | {"CI": ci, "PYTHONPATH": str(Path(__file__).parent)}
    words = ["-m", "pytest", "-q", "-p", "skips", "-p", "no:cacheprovider", "--color=no"]
    words += ["--continue-on-collection-errors", "--rootdir", str(tmp_path), str(tmp_path)]
    command = [sys.executable, *words]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    skipped = "1 skipped, 1 xfailed, 3 errors" if ci else "4 skipped, 1 xfailed"
    assert done.stdout.strip().splitlines()[-1].startswith(f"1 passed, {skipped}"), done.stdout
