"""Options of other packages are found by srs_eval, in any folder, and by no other program."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from commands import QUIET, SMALL, Done, apart, summary_of
from offenders import CAUGHT
from test_wheel import attempt, installed, run, wheel  # noqa: F401 - fixtures of slow tests

from srs_eval.tracking.run_facts import plug_in_versions

GROUPS = ("algo", "data", "panel", "protocol", "tracking")
MODULE = """
from pathlib import Path

from srs_eval.algorithms.baselines import Constant
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.nouns import Metric
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.tracking.items import Value

class Mine(Constant):
    '''Predicts what it is told.'''

class Users(SyntheticUsers):
    name = "theirs"

class Benchmark(SrsBenchmark):
    name = "their_benchmark"

class Sharpness(Metric):
    name, better, section = "sharpness", "higher", "test"

    def __call__(self, predictions):
        return float(predictions.p.std())

class Notes:
    def __init__(self, *, file):
        self.file = Path(file)

    def start(self, run):
        self.lines = [run.name]

    def log(self, items):
        self.lines += [item.name for item in items if isinstance(item, Value)]

    def finish(self, status):
        self.file.write_text("\\n".join([*self.lines, status]), encoding="utf-8")
        # and nothing to show: that is no reason to fail
"""
OPTIONS = {
    "algo/mine": "# Theirs.\n_target_: srs_other.parts.Mine\np: 0.8\n",
    "algo/mine_fsrs": "# Ours with another fit.\ndefaults: [fsrs6, _self_]\nfit: default\n",
    "data/mine": "_target_: srs_other.parts.Users\nusers: 2\nsize_scale: 0.02\n",
    "panel/mine": (
        "defaults: [quick, _self_]\nmetrics: {sharpness: {_target_: srs_other.parts.Sharpness}}\n"
    ),
    "protocol/mine": "_target_: srs_other.parts.Benchmark\n",
    "tracking/mine": "_target_: srs_other.parts.Notes\nfile: notes.txt\n",
}
# Makes the model that `srs_eval.new` has written learn from what it is tested on.
CHEAT = """
import numpy as np
from srs_half_day.model import HalfDay as Honest

class HalfDay(Honest):
    def fit(self, reviews, rows, rng):
        return super().fit(reviews, np.flatnonzero(reviews.elapsed > 0), rng)
"""


def write(folder: Path, texts: dict[str, str]) -> None:
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def ship(folder: Path, name: str, options: dict[str, str], *, init: str = "") -> None:
    """Leave a package behind as pip does: its files, and what it says of itself."""
    module = name.replace("-", "_")
    write(folder, {f"{module}/__init__.py": init, f"{module}/parts.py": MODULE})
    write(folder / module / "conf", {f"{option}.yaml": text for option, text in options.items()})
    about = {
        "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        "entry_points.txt": f"[srs_eval.conf]\n{module} = {module}\n",
    }
    write(folder / f"{module}-1.0.dist-info", about)


class Site:
    """A place packages are installed in, and commands that run with it from another folder."""

    def __init__(self, folder: Path) -> None:
        self.packages, self.elsewhere = folder / "site", folder / "elsewhere"
        self.packages.mkdir()
        self.elsewhere.mkdir()
        self.env = {"PYTHONPATH": str(self.packages), "PYTHONWARNINGS": "error"}

    def __call__(self, *words: str, **env: str) -> Done:
        return apart(self.elsewhere, *words, env={**self.env, **env})


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    place = Site(tmp_path_factory.mktemp("other"))
    ship(place.packages, "srs-other", OPTIONS)
    return place


@pytest.fixture
def empty_site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@pytest.mark.nightly
def test_help_completion_and_a_list_of_a_group_have_them(site: Site) -> None:
    done = site("--help")
    assert (done.status, done.err) == (0, "")
    listed = " ".join(done.out.split())
    for group in GROUPS:
        names = listed.split(f" {group}: ")[1].split(": ")[0].replace(",", "").split()
        assert "mine" in names, group
        assert len(names) > 2
        line = f"srs-eval {group}=mi"
        done = site("-sc", "query=bash", COMP_LINE=line, COMP_POINT=str(len(line)))
        assert f"{group}=mine" in done.out.split()
    (line,) = [line for line in site("algo=?").out.splitlines() if line.startswith("mine ")]
    assert line.split() == ["mine", "Theirs."]


def test_misspelt_ones_are_refused_with_what_was_meant(site: Site) -> None:
    done = site("algo=mien", "data=mien", "panel=mine", "panel.metrics.sharpnes=1")
    assert done.status == 2
    assert done.err.count("did you mean 'mine'?") == 2
    done = site("algo=mine_fsrs", "algo.ftt=lbfgs")
    assert (done.status, "did you mean 'algo.fit'?" in done.err) == (2, True)


@pytest.mark.nightly
def test_a_glob_takes_them(site: Site) -> None:
    others = ",".join(f"{letter}*" for letter in "abcdefghijklnopqrstuvwxyz")
    words = ["-m", f"algo=glob(*,exclude=[{others},moving_avg,mixture])", "hydra.sweep.dir=all"]
    done = site(*words, *SMALL, *QUIET)
    assert done.status == 0, done.err
    folders = sorted(path.name for path in (site.elsewhere / "all").iterdir() if path.is_dir())
    assert folders == ["0_mine", "1_mine_fsrs"]


@pytest.mark.slow
def test_all_groups_of_a_run_may_be_theirs(site: Site) -> None:
    words = [f"{group}=mine" for group in GROUPS]
    done = site(*words, "algo.p=0.7", "compute=processes", "figures=false", "hydra.run.dir=out")
    assert done.status == 0, done.err
    assert "algorithm  mine" in done.out
    expect_all_theirs(site.elsewhere, "srs-other", "1.0")


def expect_all_theirs(folder: Path, package: str, version: str) -> None:
    """Expect that a run in the folder ``out`` was made of nothing but a package's own."""
    summary = summary_of(folder / "out")
    assert (summary["users"], summary["protocol"]) == (2, "their_benchmark")
    assert "sharpness" in summary["metrics"]
    assert summary["tags"][f"version.{package}"] == version
    notes = (folder / "notes.txt").read_text(encoding="utf-8").splitlines()
    assert notes[0].endswith(" on mine")
    assert notes[-1] == "finished"
    assert "test/log_loss" in notes


@pytest.mark.nightly
def test_a_run_tells_the_versions_of_packages_in_use_and_of_no_file_at_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, here = tmp_path / "site", tmp_path / "here"
    for name in ("srs-shadow", "srs-edited"):
        ship(site, name, {})
    write(here, {"srs_local.py": "", "srs_shadow/__init__.py": ""})
    # as after `pip install -e`: installed there, but to be found and edited here
    (site / "srs_edited").rename(here / "srs_edited")
    origin = {"url": here.as_uri(), "dir_info": {"editable": True}}
    write(site, {"srs_edited-1.0.dist-info/direct_url.json": json.dumps(origin)})
    monkeypatch.syspath_prepend(site)
    monkeypatch.syspath_prepend(here)
    assert plug_in_versions(["srs_edited.parts.Mine"]) == {"version.srs-edited": "1.0"}
    # the folder at hand is imported, and not what was installed by its name
    assert plug_in_versions(["srs_local.Model", "srs_shadow.Model", "__main__.Model"]) == {}
    assert plug_in_versions(["srs_eval.algorithms.features.dash.Dash"]) == {}
    assert plug_in_versions(["sklearn.linear_model.LogisticRegression"]) == {
        "version.scikit-learn": version("scikit-learn")
    }


@pytest.mark.nightly
def test_one_that_builds_on_one_of_ours_has_its_arguments_also_in_a_notebook(site: Site) -> None:
    words = ["algo=mine_fsrs", "algo.prior_weight=2", "--cfg", "job", "--package", "algo"]
    done = site(*words)
    assert done.status == 0, done.err
    assert {"fit: default", "prior_weight: 2"} <= set(done.out.splitlines())
    code = "from srs_eval.config.settings import composed; print(composed(['algo=mine']).algo.p)"
    assert started(site, site.elsewhere, "-c", code).out == "0.8\n"


def started(site: Site, folder: Path, *words: str) -> Done:
    """Start Python where the packages are installed."""
    env = {**os.environ, **site.env}
    python = [sys.executable, *words]
    done = subprocess.run(python, cwd=folder, env=env, capture_output=True, text=True, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


APP = """
import sys
import hydra

@hydra.main(config_path="conf", config_name="config", version_base="1.3")
def app(cfg):
    print(cfg.algo.name, [name for name in sys.modules if name.split(".")[0] == "srs_eval"])

app()
"""


@pytest.mark.nightly
def test_other_applications_of_the_environment_find_none_of_it(site: Site, tmp_path: Path) -> None:
    theirs = {"conf/config.yaml": "defaults: [algo: own]\n", "conf/algo/own.yaml": "name: own\n"}
    # a folder of the same name as that of srs_eval, one of another, and none
    write(tmp_path, {"app.py": APP, **theirs})
    renamed = {name.replace("conf/", "options/"): text for name, text in theirs.items()}
    write(tmp_path, {"plain.py": APP.replace('"conf"', '"options"'), **renamed})
    bare = APP.replace('config_path="conf", config_name="config", ', "")
    write(tmp_path, {"bare.py": bare.replace("cfg.algo.name, ", "")})
    for app in ("app.py", "plain.py"):
        done = started(site, tmp_path, app, "algo=mine")
        assert done.status == 1
        assert "Could not find 'algo/mine'" in done.err
        searched = started(site, tmp_path, app, "--info", "searchpath").out
        assert "srs" not in searched.replace(str(tmp_path), "")
        assert started(site, tmp_path, app).out == "own []\n"  # nor is srs_eval imported
    assert started(site, tmp_path, "bare.py").out == "[]\n"


@pytest.mark.nightly
def test_of_options_of_one_name_ours_is_taken_or_that_of_the_first_package(
    empty_site: Site,
) -> None:
    for name, p in (("srs-b", 0.2), ("srs-a", 0.1)):
        target = f"_target_: {name.replace('-', '_')}.parts.Mine\np: {p}\n"
        options = {"algo/mine": target, **({"algo/avg": target} if name == "srs-b" else {})}
        ship(empty_site.packages, name, options)
    done = empty_site("algo=mine", "--cfg", "job", "--package", "algo")
    assert "_target_: srs_a.parts.Mine" in done.out
    assert "srs-b: its algo=mine is left out, because srs-a has one" in done.err
    assert "p=0.1" in empty_site("algo=?").out
    done = empty_site("algo=avg", "--cfg", "job", "--package", "algo")
    assert "_target_: srs_eval.algorithms.baselines.Average" in done.out
    assert "srs-b: its algo=avg is left out, because srs_eval has one" in done.err


@pytest.mark.nightly
def test_a_file_of_ones_own_comes_before_all(site: Site) -> None:
    write(site.elsewhere, {"own/algo/mine.yaml": "p: 0.3\n", "own/algo/avg.yaml": "p: 0.4\n"})
    for option, p in (("mine", 0.3), ("avg", 0.4)):
        words = [f"algo={option}", "--config-dir=own", "--cfg", "job", "--package", "algo"]
        done = site(*words)
        assert done.out.strip().endswith(f"p: {p}"), done.err
        assert "_target_" not in done.out


@pytest.mark.nightly
def test_a_file_in_place_of_an_option_in_use_is_told_once_and_of_no_other(site: Site) -> None:
    mine = "_target_: srs_other.parts.Mine\np: 0.4\n"
    names = ("algo/avg", "algo/mine", "algo/sm2", "algo/new_one", "tracking/jsonl")
    write(site.elsewhere / "put", {f"{name}.yaml": mine for name in names})
    words = ["--config-dir=put", "-m", "algo=glob([avg,mine])", "seed=1,2"]
    brief = ["panel=quick", "curves_per_user=0", "data.users=1"]
    done = site(*words, *SMALL, *QUIET, *brief, "hydra.sweep.dir=hidden")
    assert done.status == 0, done.err
    assert done.err.splitlines() == [
        "srs_eval: algo=avg is that of put/algo/avg.yaml, not srs_eval's",
        "srs_eval: algo=mine is that of put/algo/mine.yaml, not srs-other's",
    ]
    config = (site.elsewhere / "hidden" / "0_avg" / ".hydra" / "config.yaml").read_text("utf-8")
    assert "p: 0.4" in config


@pytest.mark.nightly
def test_a_package_within_another_has_options_and_neither_is_imported(empty_site: Site) -> None:
    """As `acme.memory`: the outer one may be a package, or a folder that several share."""
    for outer, init in (("acme", None), ("bold", "raise RuntimeError('imported')")):
        name = f"{outer}-memory"
        ship(empty_site.packages, name, {f"algo/{outer}": "_target_: x.Y\n"}, init=init or "")
        inner = empty_site.packages / f"{outer}_memory"
        (empty_site.packages / outer).mkdir()
        inner.rename(empty_site.packages / outer / "memory")
        if init:
            write(empty_site.packages, {f"{outer}/__init__.py": init})
        info = empty_site.packages / f"{outer}_memory-1.0.dist-info"
        write(info, {"entry_points.txt": f"[srs_eval.conf]\n{outer} = {outer}.memory\n"})
    done = empty_site("--help")
    assert done.err == ""
    assert {"acme,", "bold,"} <= set(done.out.split())
    assert empty_site("algo=bold", "--cfg", "job").status == 0
    write(info, {"entry_points.txt": "[srs_eval.conf]\nbold = bold.other\n"})
    said = empty_site("--help").err
    assert "'bold.other', and there is no package of that name with a folder conf" in said


@pytest.mark.nightly
def test_what_is_broken_is_no_trouble_to_others_before_it_is_used(empty_site: Site) -> None:
    torn = {**OPTIONS, "algo/torn": "p: [1\n"}
    ship(empty_site.packages, "srs-broken", torn, init="raise RuntimeError('broken')")
    listed = empty_site("--help").out.replace(",", "").split()
    assert {"mine", "torn"} <= set(listed)
    done = empty_site("algo=avg", "--cfg", "job")
    assert (done.status, done.err) == (0, "")
    assert "torn" in empty_site("algo=?").out
    done = empty_site("algo=torn")
    assert (done.status, "Traceback" in done.err) == (2, False)


@pytest.mark.nightly
@pytest.mark.parametrize("lost", ["conf", "all"])
def test_an_entry_point_that_leads_nowhere_is_told_of(empty_site: Site, lost: str) -> None:
    ship(empty_site.packages, "srs-lost", {"algo/mine": "p: 1\n"})
    gone = empty_site.packages / "srs_lost"
    gone.joinpath("conf").rename(empty_site.packages / "gone")
    if lost == "all":
        gone.rename(empty_site.packages / "gone_too")
    done = empty_site("--help")
    assert done.status == 0
    assert done.err.startswith("srs_eval: srs-lost: its options are left out")
    assert "'srs_lost'" in done.err


@pytest.fixture(scope="module")
def theirs(
    installed: Path,  # noqa: F811
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """Write a package with an algorithm, add options of all groups, and install it by pip."""
    python, place = str(installed / "python"), tmp_path_factory.mktemp("theirs")
    run([python, "-m", "srs_eval.new", "algo", "half_day"], place)
    folder = place / "srs-half-day"
    own = {name: text.replace("srs_other", "srs_half_day") for name, text in OPTIONS.items()}
    write(folder / "srs_half_day/conf", {f"{name}.yaml": text for name, text in own.items()})
    write(folder, {"srs_half_day/parts.py": MODULE})
    words = ["--no-deps", "--no-build-isolation", "--no-index", "--quiet"]
    pip = [sys.executable, "-m", "pip", "--python", python, "install", *words]
    run([*pip, "--disable-pip-version-check", str(folder)], place)
    return folder


@pytest.mark.nightly
def test_a_package_installed_by_pip_is_found_by_srs_eval_from_its_wheel(
    installed: Path,  # noqa: F811
    theirs: Path,
    tmp_path: Path,
) -> None:
    python = str(installed / "python")
    where = "import srs_eval, srs_half_day as s; print(srs_eval.__file__, s.__file__, sep='\\n')"
    for file in run([python, "-c", where], tmp_path).splitlines():
        assert Path(file).is_relative_to(installed.parent)
    assert "half_day" in run([python, "-m", "srs_eval", "--help"], tmp_path)
    words = ["-m", "algo=half_day,avg", *SMALL, *QUIET, "hydra.sweep.dir=both"]
    assert "half_day" in run([python, "-m", "srs_eval", *words], tmp_path)
    words = [*(f"{group}=mine" for group in GROUPS), "figures=false", "hydra.run.dir=out"]
    run([python, "-W", "error", "-m", "srs_eval", *words], tmp_path)
    expect_all_theirs(tmp_path, "srs-half-day", "0.1.0")


@pytest.mark.nightly
def test_where_it_is_installed_its_checks_pass_and_every_planted_cheat_is_caught(
    installed: Path,  # noqa: F811
    theirs: Path,
    tmp_path: Path,
) -> None:
    """-P: what is tested is what was installed, not what lies in the folder."""
    pytest_ = [str(installed / "python"), "-P", "-m", "pytest", "-q", "-W", "error"]
    pytest_ += ["-p", "no:cacheprovider"]
    assert "5 passed" in run(pytest_, theirs)
    for name in ("cases.py", "offenders.py", "test_checks.py"):
        shutil.copy(Path(__file__).with_name(name), tmp_path / name)
    pytest_ += ["-o", "markers=nightly: full grids", "-k", "planted_cheat"]
    assert f"{len(CAUGHT)} passed" in run(pytest_, tmp_path)


@pytest.mark.nightly
def test_the_tests_it_was_written_with_fail_once_its_model_cheats(
    installed: Path,  # noqa: F811
    theirs: Path,
    tmp_path: Path,
) -> None:
    changed = tmp_path / "changed"
    shutil.copytree(theirs, changed)
    write(changed, {"srs_half_day/__init__.py": CHEAT})
    done = attempt([str(installed / "python"), "-m", "pytest", "-q"], changed)
    assert done.returncode == 1
    assert "CheckFailed: HalfDay: the prediction of row" in done.stdout
    assert "when the reviews after the last training row were changed before the fit" in done.stdout
    assert "1 failed, 4 passed" in done.stdout
