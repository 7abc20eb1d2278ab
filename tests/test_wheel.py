"""The package as others install it: away from the checkout, with its options inside."""

import os
import sys
import sysconfig
import tarfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest
from commands import QUIET, SMALL, process, summary_of

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.nightly


def attempt(words, folder):
    """Run a command that cannot see the checkout, nor where its user keeps runs."""
    ours = ("PYTHON", "MLFLOW_", "SRS_EVAL")
    env = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return process(words, cwd=folder, env=env)


def run(words, folder):
    done = attempt(words, folder)
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


def test_the_wheel_holds_the_options_and_nothing_else_of_the_checkout(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    options = {f"srs_eval/{path.relative_to(ROOT)}" for path in (ROOT / "conf").rglob("*.yaml")}
    assert options <= set(names)
    ours = ("srs_eval/", "srs_eval-", "srs_eval_", "hydra_plugins/srs_eval_opt")
    assert all(name.startswith(ours) for name in names)
    assert "srs_eval/py.typed" in names
    kinds = ("*.py", "*.txt", "*.css", "*.js")
    files = [path for kind in kinds for path in (ROOT / "srs_eval").rglob(kind)]
    assert {str(path.relative_to(ROOT)) for path in files} <= set(names)
    (licence,) = [name for name in names if name.endswith("/LICENSE")]
    assert zipfile.ZipFile(wheel).read(licence) == (ROOT / "LICENSE").read_bytes()


def test_the_sources_hold_what_their_tests_need_and_each_file_once(wheel):
    (sources,) = wheel.parent.glob("*.tar.gz")
    with tarfile.open(sources) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    assert len(names) == len(set(names))
    known = {path.name for path in ROOT.iterdir() if not path.name.startswith(".")}
    brought = {name.partition("/")[0] for name in names}
    assert brought - known == {"PKG-INFO", ".gitignore"}
    assert {"LICENSE", "MLproject", "check", "run", "scripts", "tests", "conf", "docs"} <= brought
    assert "tests/golden/metric_cases.json" in names
    assert not [name for name in names if name.endswith((".pyc", ".db"))]


def test_an_installed_package_runs_anywhere_with_its_own_options(installed, tmp_path):
    found = run(
        [str(installed / "python"), "-c", "import srs_eval as s; print(s.__file__)"], tmp_path
    )
    assert found.startswith(str(installed.parent))
    for words in (["python", "-m", "srs_eval"], ["srs-eval"]):
        program = [str(installed / words[0]), *words[1:]]
        out = run([*program, "algo=avg", *SMALL, *QUIET, f"hydra.run.dir={words[0]}"], tmp_path)
        assert "algorithm  avg" in out
        assert summary_of(tmp_path / words[0])["users"] == 2
        searched = run([*program, "--info", "searchpath"], tmp_path)
        assert f"{installed.parent}" in searched
        assert f"{ROOT / 'conf'}" not in searched
