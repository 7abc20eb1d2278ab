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
MODULE = """
from pathlib import Path

from srs_eval.algorithms.baselines import Constant
from srs_eval.metrics.metric import metric
from srs_eval.metrics.predictions import Predictions

class Mine(Constant):
    '''Predicts what it is told.'''

@metric("higher")
def sharpness(predictions: Predictions) -> float:
    return float(predictions.p.std())
"""
OPTIONS = {
    "algo/avg": "_target_: srs_other.parts.Mine\n",
    "algo/mine": "# Theirs.\n_target_: srs_other.parts.Mine\np: 0.8\n",
    "algo/mine_fsrs": "# Ours with another fit.\ndefaults: [fsrs6, _self_]\nfit: default\n",
    "data/mine": "_target_: srs_eval.data.synthetic.SyntheticUsers\nusers: 2\nsize_scale: 0.02\n",
    "panel/mine": (
        "defaults: [quick, _self_]\n"
        "metrics: {sharpness: {_target_: srs_other.parts.sharpness, _partial_: true}}\n"
    ),
    "protocol/mine": "_target_: srs_eval.protocol.prequential.Prequential\n",
}
# A package as docs/plugins.md says, before pip has it.
HALF_DAY = {
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

class HalfDay(Constant):
    pass
""",
    "srs_half_day/conf/algo/half_day.yaml": "_target_: srs_half_day.HalfDay\np: 0.8\n",
}


@pytest.fixture
def other(tmp_path, monkeypatch):
    """A package as pip leaves it behind: its files, and what it says of itself."""
    files = {f"srs_other/conf/{option}.yaml": text for option, text in OPTIONS.items()}
    write(tmp_path / "site", {"srs_other/__init__.py": "", "srs_other/parts.py": MODULE, **files})
    say_installed(tmp_path / "site", "srs-other", "1.0", "srs_other")
    monkeypatch.syspath_prepend(tmp_path / "site")
    yield
    for name in {"srs_other", "srs_other.parts"} & set(sys.modules):
        del sys.modules[name]


@pytest.mark.usefixtures("other")
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
@pytest.mark.usefixtures("other")
def test_a_glob_takes_them_and_all_groups_of_a_run_may_be_theirs(here):
    unlike = ",".join(f"{letter}*" for letter in "abcdefghijklnopqrstuvwxyz")
    words = ["-m", f"algo=glob(*,exclude=[{unlike},moving_avg,mixture])", "hydra.sweep.dir=all"]
    done = here(*words, *SMALL, *QUIET)
    assert done.status == 0, done.err
    assert sorted(path.name for path in Path("all").glob("*_mine*")) == ["0_mine", "1_mine_fsrs"]
    words = [*(f"{group}=mine" for group in GROUPS), "algo.p=0.7", "compute=processes"]
    done = here(*words, *QUIET, "hydra.run.dir=out")
    assert done.status == 0, done.err
    summary = summary_of(Path("out"))
    told = (summary["algo"], summary["users"], summary["protocol"][:11])
    assert told == ("mine", 2, "prequential")
    assert "sharpness" in summary["metrics"]


@pytest.mark.nightly
def test_a_package_installed_by_pip_is_found_by_the_wheel_of_srs_eval(installed, tmp_path):
    """-P: what is tested is what was installed, not what lies in the folder."""
    python, folder = str(installed / "python"), tmp_path / "srs-half-day"
    write(folder, HALF_DAY)
    words = "--no-deps --no-build-isolation --no-index --quiet --disable-pip-version-check"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", *words.split()]
    run([*pip, str(folder)], tmp_path)
    where = "import srs_eval, srs_half_day as s; print(srs_eval.__file__, s.__file__, sep='\\n')"
    for file in run([python, "-P", "-c", where], tmp_path).splitlines():
        assert Path(file).is_relative_to(installed.parent)
    words = ["-m", "algo=half_day,avg", *SMALL, *QUIET, "hydra.sweep.dir=both"]
    assert "half_day" in run([python, "-W", "error", "-m", "srs_eval", *words], tmp_path)
    assert summary_of(tmp_path / "both" / "0_half_day")["users"] == 2


def run(words, folder):
    """Run a command that cannot see the checkout, nor where its user keeps runs."""
    ours = ("PYTHON", "MLFLOW_", "SRS_EVAL")
    env = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    done = process(words, cwd=folder, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Build the sources, and from those the wheel, as is done for a release."""
    folder = tmp_path_factory.mktemp("dist")
    words = [sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)]
    # without the build backend at hand, an environment with it is made: that needs a network
    run([*words, "--no-isolation"] if find_spec("hatchling") else words, folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """Make an environment with the wheel; the packages it needs are lent by this one."""
    place = tmp_path_factory.mktemp("fresh") / "venv"
    run([sys.executable, "-m", "venv", "--without-pip", str(place)], place.parent)
    python = place / "bin" / "python"
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    own = Path(run([str(python), "-c", where], place.parent).strip())
    words = ["--no-deps", "--no-index", "--quiet", "--disable-pip-version-check"]
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", *words, str(wheel)]
    run(pip, place.parent)
    # only the folder, not its .pth files: an editable install there must not be found
    (own / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return place / "bin"


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
