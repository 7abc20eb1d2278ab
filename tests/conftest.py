"""What many tests are given."""

import atexit
import copy
import gc
import multiprocessing
import os
import re
import sys
import warnings
import zlib
from functools import cache
from multiprocessing import forkserver
from pathlib import Path
from types import SimpleNamespace

import pytest

import srs_eval  # noqa: F401  # isort: skip  # before anything imports NumPy: see srs_eval.engine.cpu
from invented import Logs, invented_log
from omegaconf import OmegaConf
from public_logs import josh_reviews, write_logs
from skips import pytest_make_collect_report as pytest_make_collect_report
from skips import pytest_runtest_makereport as pytest_runtest_makereport

from srs_eval.data.reviews import Reviews

GOLDEN_TEXTS = Path(__file__).parent / "golden" / "texts"

# Collecting makes millions of objects and no garbage.
gc.disable()

PRELOADED = [
    *("srs_eval.runs.job", "srs_eval.data.synthetic", "srs_eval.algorithms.baselines", "mlflow"),
    *("srs_eval.algorithms.half_life", "srs_eval.algorithms.neural.published"),
]
MLFLOW = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_LOGGING_LEVEL": "CRITICAL"}


def pytest_sessionstart(session):
    """Have workers and commands forked from a server that has what they need.

    It begins at once where pytest has several processes, and else with the first that needs it.
    """
    os.environ.update(MLFLOW)
    if sys.platform != "win32":
        multiprocessing.set_forkserver_preload(PRELOADED)
        if hasattr(session.config, "workerinput"):
            forkserver.ensure_running()


def pytest_collection_modifyitems(items):
    """Begin with the folders that have the longest tests, so that processes end together."""
    longest = ("tests/runs/", "tests/golden_runs/")
    items.sort(key=lambda item: not item.nodeid.startswith(longest))


def pytest_collection_finish():
    """Collect garbage again, but not among what the tests are made of."""
    gc.freeze()
    atexit.register(gc.unfreeze)  # modules are freed: DuckDB's prints what is left of it
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _options_are_parsed_once():
    """Parse each file of options once in a process: commands do it thousands of times."""
    options = Path(__file__).parents[1] / "conf"
    load = OmegaConf.load

    @cache
    def parsed(file):
        return load(file)

    def loaded(file):
        path = Path(file if isinstance(file, str | Path) else str(getattr(file, "name", "")))
        return copy.deepcopy(parsed(path)) if options in path.parents else load(file)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OmegaConf, "load", loaded)
        yield


def pytest_runtest_setup():
    """Leave no settings of MLflow, from outside or of an earlier test."""
    for name in [name for name in os.environ if name.startswith("MLFLOW_")]:
        del os.environ[name]
    os.environ.update(MLFLOW)


@pytest.fixture(scope="session")
def make_log():
    return invented_log


@pytest.fixture(scope="session")
def logs_of():
    """Make a source of the given logs, or of an invented log for each given user."""

    def build(*users):
        made = [
            user
            if isinstance(user, Reviews)
            else invented_log(seed=zlib.crc32(f"{user}".encode()), user=user)
            for user in users
        ]
        return Logs({log.user: log for log in made})

    return build


@pytest.fixture
def here(tmp_path, monkeypatch, capsys):
    """Runs commands in this process, in a folder that is the working directory."""
    from commands import run_here

    def run(*words):
        capsys.readouterr()
        status = run_here(words)
        out, err = capsys.readouterr()
        return SimpleNamespace(status=status, out=out, err=err, text=out + err)

    monkeypatch.chdir(tmp_path)
    run.folder = tmp_path
    return run


@pytest.fixture
def golden_text(file_regression, tmp_path):
    """Hold a text against a file of `golden/texts`; ``--force-regen`` writes the file anew."""

    def check(name, text):
        text = text.replace(str(tmp_path), "HERE").replace(os.sep, "/")
        file_regression.check(text, fullpath=GOLDEN_TEXTS / f"{name}.txt")

    return check


@pytest.fixture
def transcript(golden_text):
    """Run each command in a file of `golden/texts`, a line that begins with ``$``, and compare.

    A new case is such a line; ``x{3}`` in it stands for ``xxx``. Lines of ``===`` stay, which say
    what the cases are of.
    """

    def check(name, told_by):
        lines = (GOLDEN_TEXTS / f"{name}.txt").read_text("utf-8").splitlines()
        told = []
        for line in (line for line in lines if line.startswith(("$ ", "=== "))):
            told.append(line)
            if line.startswith("$"):
                typed = re.sub(r"(.)\{(\d+)\}", lambda found: found[1] * int(found[2]), line)
                told.append(told_by(*typed.split()[1:]).strip("\n"))
        golden_text(name, "\n".join([*filter(None, told), ""]))

    return check


@pytest.fixture(scope="session")
def real_logs(tmp_path_factory):
    """Folder of public review logs of real users, in the files they were published as."""
    folder = tmp_path_factory.mktemp("real_logs")
    write_logs(folder)
    return folder


@pytest.fixture(scope="session")
def josh_log():
    """Reviews of the real user whose public numbers are in `golden/training_josh.json`."""
    return josh_reviews()


@pytest.fixture(scope="session")
def anki_library():
    """Anki's own module of collections; tests are skipped where it is not installed."""
    with warnings.catch_warnings():
        # Anki's generated protobuf code uses what newer protobuf versions deprecate.
        warnings.simplefilter("ignore", DeprecationWarning)
        pytest.importorskip("anki.collection", reason="Anki's library is not installed")
    return sys.modules["anki.collection"]
