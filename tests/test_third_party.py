"""Options of other packages are found by srs_eval, in any folder, and by no other program."""

import json
import os
import re
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from commands import QUIET, SMALL, process, summary_of
from test_wheel import attempt, installed, run, wheel  # noqa: F401 - fixtures of slow tests

from srs_eval.config import option_files
from srs_eval.config.settings import composed
from srs_eval.tracking.run_facts import plug_in_versions

GROUPS = ("algo", "data", "panel", "protocol", "tracking")
MODULE = """
from pathlib import Path

from srs_eval.algorithms.baselines import Constant
from srs_eval.nouns import Metric
from srs_eval.tracking.items import Value

class Mine(Constant):
    '''Predicts what it is told.'''

class Sharpness(Metric):
    name, better, section = "sharpness", "higher", "test"

    def __call__(self, predictions):
        return float(predictions.p.std())

class Notes:
    def __init__(self, *, file):
        self.file, self.lines = Path(file), []

    def start(self, run):
        self.lines.append(run.name)

    def log(self, items):
        self.lines += [item.name for item in items if isinstance(item, Value)]

    def finish(self, status):
        self.file.write_text("\\n".join([*self.lines, status]), encoding="utf-8")
        # and nothing to show: that is no reason to fail
"""
OPTIONS = {
    "algo/mine": "# Theirs.\n_target_: srs_other.parts.Mine\np: 0.8\n",
    "algo/mine_fsrs": "# Ours with another fit.\ndefaults: [fsrs6, _self_]\nfit: default\n",
    "data/mine": "_target_: srs_eval.data.synthetic.SyntheticUsers\nusers: 2\nsize_scale: 0.02\n",
    "panel/mine": (
        "defaults: [quick, _self_]\nmetrics: {sharpness: {_target_: srs_other.parts.Sharpness}}\n"
    ),
    "protocol/mine": "_target_: srs_eval.protocol.prequential.Prequential\n",
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


def write(folder, texts):
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


class Site:
    """A place packages are installed in, and commands that run with it from another folder."""

    def __init__(self, packages, here):
        self.packages, self.here = packages, here

    def ship(self, name, options, *, init="", module=""):
        """Leave a package behind as pip does: its files, and what it says of itself."""
        module = module or name.replace("-", "_")
        folder = self.packages.joinpath(*module.split("."))
        write(folder, {"__init__.py": init, "parts.py": MODULE})
        write(folder / "conf", {f"{option}.yaml": text for option, text in options.items()})
        about = {
            "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
            "entry_points.txt": f"[srs_eval.conf]\nany = {module}\n",
        }
        write(self.packages / f"{name.replace('-', '_')}-1.0.dist-info", about)
        option_files.packages.cache_clear()
        return folder

    def composed(self, *words):
        """What a command would build its algorithm of, and what it says of that."""
        done = self.here(*words, "--cfg", "job", "--package", "algo")
        assert done.status == 0, done.text
        return done.text


@pytest.fixture
def site(tmp_path, here, monkeypatch):
    (tmp_path / "site").mkdir()
    monkeypatch.syspath_prepend(tmp_path / "site")
    before = set(sys.modules)
    yield Site(tmp_path / "site", here)
    for name in set(sys.modules) - before:
        if name.startswith(("srs_", "acme", "bold")) and not name.startswith("srs_eval"):
            del sys.modules[name]
    option_files.packages.cache_clear()


@pytest.fixture
def other(site):
    site.ship("srs-other", OPTIONS)
    return site


def test_help_completion_and_a_list_of_a_group_have_them(other, monkeypatch):
    done = other.here("--help")
    assert (done.status, done.err) == (0, "")
    listed = " ".join(done.out.split())
    for group in GROUPS:
        names = listed.split(f" {group}: ")[1].split(": ")[0].replace(",", "").split()
        assert "mine" in names, group
        assert len(names) > 2
        line = f"srs-eval {group}=mi"
        monkeypatch.setenv("COMP_LINE", line)
        monkeypatch.setenv("COMP_POINT", str(len(line)))
        assert f"{group}=mine" in other.here("-sc", "query=bash").out.split()
    (line,) = [line for line in other.here("algo=?").out.splitlines() if line.startswith("mine ")]
    assert line.split() == ["mine", "Theirs."]


def test_misspelt_ones_are_refused_with_what_was_meant(other):
    done = other.here("algo=mien", "data=mien", "panel=mine", "panel.metrics.sharpnes=1")
    assert (done.status, done.err.count("did you mean 'mine'?")) == (2, 2)
    done = other.here("algo=mine_fsrs", "algo.ftt=lbfgs")
    assert (done.status, "did you mean 'algo.fit'?" in done.err) == (2, True)


@pytest.mark.slow
def test_a_glob_takes_them_and_all_groups_of_a_run_may_be_theirs(other):
    unlike = ",".join(f"{letter}*" for letter in "abcdefghijklnopqrstuvwxyz")
    words = ["-m", f"algo=glob(*,exclude=[{unlike},moving_avg,mixture])", "hydra.sweep.dir=all"]
    done = other.here(*words, *SMALL, *QUIET)
    assert done.status == 0, done.err
    assert sorted(path.name for path in Path("all").glob("*_mine*")) == ["0_mine", "1_mine_fsrs"]
    words = [*(f"{group}=mine" for group in GROUPS), "algo.p=0.7", "compute=processes"]
    done = other.here(*words, "figures=false", "hydra.run.dir=out")
    assert done.status == 0, done.err
    summary = summary_of(Path("out"))
    found = (summary["algo"], summary["users"], summary["protocol"][:11])
    assert found == ("mine", 2, "prequential")
    assert "sharpness" in summary["metrics"]
    assert summary["tags"]["version.srs-other"] == "1.0"
    notes = Path("notes.txt").read_text(encoding="utf-8").splitlines()
    assert (notes[0][-8:], "test/log_loss" in notes, notes[-1]) == (" on mine", True, "finished")


def test_a_run_tells_the_versions_of_packages_in_use_and_of_no_file_at_hand(
    site, tmp_path, monkeypatch
):
    here = tmp_path / "here"
    site.ship("srs-shadow", {})
    write(here, {"srs_local.py": "", "srs_shadow/__init__.py": ""})
    # as after `pip install -e`: installed there, but to be found and edited here
    site.ship("srs-edited", {}).rename(here / "srs_edited")
    origin = {"url": here.as_uri(), "dir_info": {"editable": True}}
    write(site.packages, {"srs_edited-1.0.dist-info/direct_url.json": json.dumps(origin)})
    monkeypatch.syspath_prepend(here)
    versions = {"version.srs-edited": "1.0", "version.scikit-learn": version("scikit-learn")}
    targets = ["srs_edited.parts.Mine", "sklearn.linear_model.LogisticRegression"]
    assert plug_in_versions(targets) == versions
    # the folder at hand is imported, and not what was installed by its name
    assert plug_in_versions(["srs_local.Model", "srs_shadow.Model", "__main__.Model"]) == {}
    assert plug_in_versions(["srs_eval.algorithms.features.dash.Dash"]) == {}


def test_one_that_builds_on_one_of_ours_has_its_arguments_also_in_a_notebook(other):
    told = other.composed("algo=mine_fsrs", "algo.prior_weight=2")
    assert {"fit: default", "prior_weight: 2"} <= set(told.splitlines())
    assert composed(["algo=mine"]).algo.p == 0.8


def test_of_options_of_one_name_ours_is_taken_or_that_of_the_first_package(site):
    for package, p, options in (("srs_b", 0.2, ("mine", "avg")), ("srs_a", 0.1, ("mine",))):
        text = f"_target_: {package}.parts.Mine\np: {p}\n"
        site.ship(package.replace("_", "-"), {f"algo/{option}": text for option in options})
    for option, other, target in (
        ("mine", "srs-a", "srs_a.parts.Mine"),
        ("avg", "srs_eval", "srs_eval.algorithms.baselines.Average"),
    ):
        told = site.composed(f"algo={option}")
        assert f"_target_: {target}\n" in told
        assert f"srs-b: its algo={option} is left out, because {other} has one" in told
    assert "p=0.1" in site.here("algo=?").out


@pytest.mark.slow
def test_a_file_of_ones_own_comes_before_all_and_is_told_of_once(other):
    mine = "_target_: srs_other.parts.Mine\np: 0.4\n"
    names = ("algo/avg", "algo/mine", "algo/sm2", "algo/new_one", "tracking/jsonl")
    write(Path("put"), {f"{name}.yaml": mine for name in names})
    for name in ("avg", "mine"):
        told = other.composed("--config-dir=put", f"algo={name}")
        assert "_target_: srs_other.parts.Mine\np: 0.4" in told
    words = ["--config-dir=put", "-m", "algo=glob([avg,mine])"]
    brief = ["panel=quick", "curves_per_user=0", "data.users=1"]
    done = other.here(*words, *SMALL, *QUIET, *brief, "hydra.sweep.dir=hidden")
    assert done.status == 0, done.err
    assert done.err.splitlines() == [
        "srs_eval: algo=avg is that of put/algo/avg.yaml, not srs_eval's",
        "srs_eval: algo=mine is that of put/algo/mine.yaml, not srs-other's",
    ]


def test_packages_are_found_without_an_import_also_within_others(site):
    """As `acme.memory`: the outer one may be a package, or a folder that several share."""
    raises = "raise RuntimeError('imported')"
    for outer in ("acme", "bold"):
        options = {f"algo/{outer}": "_target_: x.Y\n", "algo/torn": "p: [1\n"}
        site.ship(f"{outer}-memory", options, init=raises, module=f"{outer}.memory")
    write(site.packages, {"bold/__init__.py": raises})
    assert {"acme,", "bold,"} <= set(site.here("--help").out.split())
    assert [site.here(f"algo={name}", "--cfg", "job").status for name in ("bold", "avg")] == [0, 0]
    assert "torn" in site.here("algo=?").out
    done = site.here("algo=torn")
    assert (done.status, "Traceback" in done.err) == (2, False)


def test_an_entry_point_that_leads_nowhere_is_told_of(site):
    for name, module in (("no-conf", "srs_without"), ("lost", "srs_lost"), ("inner", "srs_in.x")):
        folder = site.ship(name, {"algo/mine": "p: 1\n"}, module=module)
        (folder / "conf" if name == "no-conf" else folder).rename(site.packages / f"gone {name}")
    done = site.here("--help")
    told = re.findall("left out, .* names '(.*?)'", done.err)
    assert (done.status, sorted(told)) == (0, ["srs_in.x", "srs_lost", "srs_without"])


APP = """
import sys, hydra

@hydra.main(config_path="FOLDER", config_name="config", version_base="1.3")
def app(cfg):
    print(cfg.algo.name, [name for name in sys.modules if name.split(".")[0] == "srs_eval"])

app()
"""


@pytest.mark.nightly
@pytest.mark.parametrize("folder", ["conf", "options"])  # of the name of ours, and of another
def test_other_applications_of_the_environment_find_none_of_it(other, tmp_path, folder):
    def started(*words):
        env = {**os.environ, "PYTHONPATH": str(other.packages)}
        command = [sys.executable, "app.py", *words]
        return process(command, env=env)

    write(
        tmp_path / folder,
        {"config.yaml": "defaults: [algo: own]\n", "algo/own.yaml": "name: own\n"},
    )
    write(tmp_path, {"app.py": APP.replace("FOLDER", folder)})
    done = started("algo=mine")
    assert (done.returncode, "Could not find 'algo/mine'" in done.stderr) == (1, True)
    assert "srs" not in started("--info", "searchpath").stdout.replace(str(tmp_path), "")
    assert started().stdout == "own []\n"  # nor is srs_eval imported


@pytest.mark.nightly
def test_a_package_installed_by_pip_is_found_and_checked_by_the_wheel_of_srs_eval(
    installed,  # noqa: F811
    tmp_path,
):
    """-P: what is tested is what was installed, not what lies in the folder."""
    python, folder = str(installed / "python"), tmp_path / "srs-half-day"
    run([python, "-m", "srs_eval.new", "algo", "half_day"], tmp_path)
    words = "--no-deps --no-build-isolation --no-index --quiet --disable-pip-version-check"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", *words.split()]
    run([*pip, str(folder)], tmp_path)
    where = "import srs_eval, srs_half_day as s; print(srs_eval.__file__, s.__file__, sep='\\n')"
    for file in run([python, "-P", "-c", where], tmp_path).splitlines():
        assert Path(file).is_relative_to(installed.parent)
    words = ["-m", "algo=half_day,avg", *SMALL, *QUIET, "hydra.sweep.dir=both"]
    assert "half_day" in run([python, "-W", "error", "-m", "srs_eval", *words], tmp_path)
    tags = summary_of(tmp_path / "both" / "0_half_day")["tags"]
    assert tags["version.srs-half-day"] == "0.1.0"
    pytest_ = [python, "-P", "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider"]
    assert "5 passed" in run(pytest_, folder)
    write(folder, {"srs_half_day/__init__.py": CHEAT})
    done = attempt([python, "-m", "pytest", "-q"], folder)
    assert "when the reviews after the last training row were changed before the fit" in done.stdout
    assert (done.returncode, "1 failed, 4 passed" in done.stdout) == (1, True)
