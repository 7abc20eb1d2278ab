"""Options of other packages are found in any folder, also by srs_eval as it is installed."""

import os
import re
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path

import pytest
from commands import QUIET, SMALL, process, say_installed, summary_of, write

from srs_eval.runs.config import composed

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
    "srs_half_day/conf/algo/avg.yaml": "_target_: srs_half_day.HalfDay\n",
    "srs_half_day/conf/algo/mine.yaml": "_target_: srs_half_day.HalfDay\np: 0.8\n",
    "srs_half_day/conf/algo/mine_fsrs.yaml": "defaults: [fsrs6, _self_]\nfit: default\n",
    "srs_half_day/conf/data/mine.yaml": "defaults: [synthetic]\nusers: 2\nsize_scale: 0.02\n",
    "srs_half_day/conf/panel/mine.yaml": (
        "defaults: [quick, _self_]\n"
        "metrics: {sharpness: {_target_: srs_half_day.sharpness, _partial_: true}}\n"
    ),
    "srs_half_day/conf/protocol/mine.yaml": "_target_: srs_eval.protocol.prequential.Prequential\n",
}


@pytest.fixture
def _other(tmp_path, monkeypatch):
    """The package as pip leaves it behind: its files, and what it says of itself."""
    write(tmp_path / "site", PACKAGE)
    say_installed(tmp_path / "site", "srs-half-day", "0.1.0", "srs_half_day")
    monkeypatch.syspath_prepend(tmp_path / "site")
    yield
    sys.modules.pop("srs_half_day", None)


@pytest.mark.usefixtures("_other")
def test_help_lists_them_and_one_of_our_name_is_ours(here):
    done = here("--help")
    assert (done.status, done.err) == (0, "")
    listed = " ".join(done.out.split())
    for group in GROUPS:
        names = listed.split(f" {group}: ")[1].split(": ")[0].replace(",", "").split()
        assert "mine" in names, group
        assert len(names) > 2
    assert composed({"algo": "avg"})[0].algo._target_.endswith("baselines.Average")


@pytest.mark.slow
@pytest.mark.usefixtures("_other")
def test_a_glob_takes_them_and_all_groups_of_a_run_may_be_theirs(here):
    words = ["-m", "algo=glob(mine*)", "hydra.sweep.dir=all", *SMALL, *QUIET]
    assert here(*words).status == 0
    assert sorted(path.name for path in Path("all").glob("*_mine*")) == ["0_mine", "1_mine_fsrs"]
    words = [*(f"{group}=mine" for group in GROUPS), "algo.p=0.7", "compute=processes"]
    done = here(*words, *QUIET, "hydra.run.dir=out")
    assert done.status == 0, done.err
    summary = summary_of(Path("out"))
    assert (summary["algo"], summary["users"]) == ("mine", 2)
    assert summary["protocol"].startswith("prequential")
    assert "sharpness" in summary["metrics"]


def run(words, folder):
    """Run a command that cannot see the checkout, nor where its user keeps runs."""
    ours = ("PYTHON", "MLFLOW_", "SRS_EVAL")
    env = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    done = process(words, cwd=folder, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Build the wheel from the sources, as for a release; install it and the other package.

    The packages that both need are lent by this environment.
    """
    folder = tmp_path_factory.mktemp("fresh")
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
    return folder / "venv" / "bin"


@pytest.mark.nightly
def test_a_package_installed_by_pip_is_found_by_the_wheel_of_srs_eval(installed, tmp_path):
    """-P: what is tested is what was installed, not what lies in the folder."""
    python = str(installed / "python")
    where = "import srs_eval, srs_half_day as s; print(srs_eval.__file__, s.__file__, sep='\\n')"
    for file in run([python, "-P", "-c", where], tmp_path).splitlines():
        assert Path(file).is_relative_to(installed.parent)
    words = ["-m", "algo=mine,avg", *SMALL, *QUIET, "hydra.sweep.dir=both"]
    assert "mine" in run([python, "-W", "error", "-m", "srs_eval", *words], tmp_path)
    assert summary_of(tmp_path / "both" / "0_mine")["users"] == 2


@pytest.mark.nightly
def test_an_installed_package_runs_anywhere_with_its_own_options(installed, tmp_path):
    for words in (["python", "-m", "srs_eval"], ["srs-eval"]):
        program = [str(installed / words[0]), *words[1:]]
        out = run([*program, "algo=avg", *SMALL, *QUIET, f"hydra.run.dir={words[0]}"], tmp_path)
        assert out.startswith("avg: log loss ")
        assert summary_of(tmp_path / words[0])["users"] == 2
    searched = run([*program, "--info", "searchpath"], tmp_path)
    assert f"{installed.parent}" in searched
    assert f"{ROOT / 'conf'}" not in searched
