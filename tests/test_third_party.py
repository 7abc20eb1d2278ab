"""Srs_eval as it is installed, alone and beside a package with options of its own."""

import os
import re
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path

import pytest
from commands import QUIET, SMALL, process, summary_of, write

ROOT = Path(__file__).parents[1]
GROUPS = ("algo", "data", "panel", "protocol")
# A package as docs/plugins.md says, with an option of each group, one of them named like ours.
PACKAGE = {
    "pyproject.toml": """
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "srs-half-day"
version = "0.1.0"

"""
    + re.search(r"```toml\n(.*?)```", (ROOT / "docs/plugins.md").read_text("utf-8"), re.S)[1],
    "srs_half_day/__init__.py": """
from srs_eval.algorithms.baselines import Constant
from srs_eval.metrics.metric import metric
from srs_eval.metrics.predictions import Predictions

class HalfDay(Constant):
    pass

@metric("higher")
def sharpness(predictions: Predictions) -> float:
    return float(predictions.p.std())
""",
    "srs_half_day/conf/algo/avg.yaml": "_target_: nowhere.Average\n",
    "srs_half_day/conf/algo/mine.yaml": "_target_: srs_half_day.HalfDay\np: 0.8\n",
    "srs_half_day/conf/data/mine.yaml": "defaults: [synthetic]\nusers: 2\nsize_scale: 0.02\n",
    "srs_half_day/conf/panel/mine.yaml": (
        "defaults: [quick, _self_]\n"
        "metrics: {sharpness: {_target_: srs_half_day.sharpness, _partial_: true}}\n"
    ),
    "srs_half_day/conf/protocol/mine.yaml": "_target_: srs_eval.protocol.prequential.Prequential\n",
}


def run(words, folder):
    """Run a command that cannot see the checkout, nor where its user keeps runs."""
    ours = ("PYTHON", "MLFLOW_", "SRS_EVAL")
    env = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    done = process(words, cwd=folder, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def installed(folder):
    """Build the wheel and install it with the other package; what they need is lent from here."""
    words = [sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)]
    # without the build backend at hand, an environment with it is made: that needs a network
    run([*words, "--no-isolation"] if find_spec("hatchling") else words, folder)
    (wheel,) = folder.glob("*.whl")
    run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], folder)
    python = str(folder / "venv" / "bin" / "python")
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    own = Path(run([python, "-c", where], folder).strip())
    write(folder / "srs-half-day", PACKAGE)
    words = "--no-deps --no-build-isolation --no-index --quiet --disable-pip-version-check"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", *words.split()]
    run([*pip, str(wheel)], folder)
    # only the folder, not its .pth files: an editable install there must not be found
    (own / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    run([*pip, str(folder / "srs-half-day")], folder)
    return python, str(folder / "venv" / "bin" / "srs-eval")


@pytest.mark.nightly
def test_a_package_installed_by_pip_is_found_by_the_wheel_of_srs_eval(tmp_path):
    """-P: what is tested is what was installed, not what lies in the folder."""
    python, program = installed(tmp_path)
    where = "import srs_eval, srs_half_day as s; print(srs_eval.__file__, s.__file__, sep='\\n')"
    for file in run([python, "-P", "-c", where], tmp_path).splitlines():
        assert Path(file).is_relative_to(tmp_path / "venv")
    assert f"{ROOT / 'conf'}" not in run([program, "--info", "searchpath"], tmp_path)
    listed = " ".join(run([program, "--help"], tmp_path).split())
    for group in GROUPS:
        names = listed.split(f" {group}: ")[1].split(": ")[0].replace(",", "").split()
        assert "mine" in names, group
        assert len(names) > 2
    # ours, though theirs has the same name
    assert run([program, "algo=avg", *SMALL, *QUIET], tmp_path).startswith("avg: log loss ")
    words = [*(f"{group}=mine" for group in GROUPS), "compute=processes", *QUIET]
    run([python, "-W", "error", "-m", "srs_eval", *words, "hydra.run.dir=out"], tmp_path)
    summary = summary_of(tmp_path / "out")
    assert (summary["users"], "sharpness" in summary["metrics"]) == (2, True)
    assert summary["protocol"].startswith("prequential")
