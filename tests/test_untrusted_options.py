"""What options may name and make Hydra do: checked before anything is called."""

import json
import logging
import sys

import pytest
from cases import refusal, values_in
from commands import run_here as command
from commands import write
from hydra.errors import HydraException
from omegaconf import OmegaConf

from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.algorithms.sessions.session_filter import SessionFilter
from srs_eval.config import settings
from srs_eval.config.building import KINDS, build, resolved
from srs_eval.config.hydra_section import Loader, composed
from srs_eval.config.option_files import also_in
from srs_eval.config.rebuild import rebuilt_source
from srs_eval.config.settings import register_schema
from srs_eval.config.targets import Builder
from srs_eval.data.anki.collection import AnkiCollection
from srs_eval.errors import ConfigError
from srs_eval.nouns import Algorithm, Metric, Source

FSRS6 = "srs_eval.algorithms.fsrs.fsrs6.Fsrs6"
FILTER = "srs_eval.algorithms.sessions.session_filter.SessionFilter"
# Things that run code or touch files when called, and were called once.
GADGETS = {
    "sympy.sympify": {"a": "open('PWNED', 'w')"},
    "joblib.load": {"filename": "pickled"},
    "builtins.open": {"file": "PWNED", "mode": "w"},
    "builtins.exec": {"source": "open('PWNED', 'w')"},
    "pathlib.Path.touch": {"self": "PWNED"},
    "logging.FileHandler": {"filename": "PWNED"},
    "os.system": {"command": "touch PWNED"},
    "functools.partial": {"func": "print"},
    "unittest.mock.MagicMock": {},
    "srs_eval.run.job.Path": {},
    "srs_eval.commands.run.main": {},
    "srs_eval.tracking.tracker.NoTracker.start": {},
}


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A working directory to import from, with a folder `c` of untrusted options and a bomb."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "c" / "experiment").mkdir(parents=True)
    (tmp_path / "pickled").write_bytes(b"cbuiltins\nopen\n(VPWNED\nVw\ntR.")
    return tmp_path


@pytest.mark.filterwarnings("ignore")  # of the libraries that are imported
@pytest.mark.parametrize("target", GADGETS)
def test_nothing_is_called_that_is_not_of_the_kind_asked_for(place, target):
    before, part = sorted(place.iterdir()), {"_target_": target, **GADGETS[target]}
    panel = {"_target_": "srs_eval.metrics.panel.Panel", "metrics": {"x": part}}
    inside = [
        *({"_target_": FILTER, "base": base} for base in (part, [part], {"x": part})),
        {"_target_": FILTER, "base": {"_target_": FILTER, "base": part}},
        {"_target_": FILTER, "width": part},
        {"_target_": FSRS6, "fit": [[{"deep": part}]]},
        {"_target_": FILTER, "extra": {"a": part}},
    ]
    of_groups = [*((kind, part) for kind in KINDS.values()), (KINDS["panel"], panel)]
    for kind, options in [*of_groups, *((Algorithm, options) for options in inside)]:
        with pytest.raises(ConfigError):
            Builder().build(options, kind)
    assert sorted(place.iterdir()) == before


def test_parts_that_fit_are_built_also_under_the_names_of_earlier_releases():
    base = {"_target_": "srs_eval.algorithms.fsrs6.Fsrs6", "fit": "default"}
    options = {"_target_": "srs_eval.algorithms.session_filter.SessionFilter", "base": base}
    made = Builder().build(options | {"width": 7.0}, Algorithm)
    assert (type(made), type(made.base)) == (SessionFilter, Fsrs6)
    assert (made.base.method, made.width) == ("default", 7.0)
    assert Builder().find("srs_eval.data.anki.AnkiCollection", Source) is AnkiCollection


BAD_MODULES = {
    "ends": "raise SystemExit(3)",
    "raises": "raise KeyError('x')",
    "unfinished": "x = (",
}
PARTS = """
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol
from srs_eval.nouns import Algorithm

if TYPE_CHECKING:
    from nowhere import Number

class Kernel(Protocol):
    def weigh(self, days): ...

class Flat:
    def weigh(self, days): ...

class Base: ...
class Derived(Base): ...

@dataclass
class Smooth(Algorithm):
    kernel: "Kernel | None"
    bases: list[Base] = ()
    size: "Number" = 1
    def fit(self, reviews, rows, rng): ...

class Plain:
    same_day, when = False, "previous_review"
    def __init__(self, kernel, **others):
        self.sees_truth, self.kernel, self.others = False, kernel, others
    def fit(self, reviews, rows, rng): ...

class Lacking:
    same_day = True
    def fit(self, reviews, rows, rng): ...

class Breaks(Smooth):
    def __init__(self):
        raise LookupError("no such thing")
"""


@pytest.fixture
def _parts(place, monkeypatch):
    monkeypatch.delitem(sys.modules, "their_parts", raising=False)
    modules = {**BAD_MODULES, "their_parts": PARTS}
    write(place, {f"{name}.py": text for name, text in modules.items()})


@pytest.mark.usefixtures("_parts")
def test_parts_of_plug_ins_are_checked_by_their_annotations():
    flat, derived = ({"_target_": f"their_parts.{name}"} for name in ("Flat", "Derived"))
    options = {"_target_": "their_parts.Smooth", "kernel": flat, "bases": [derived], "size": 2}
    smooth = Builder().build(options, Algorithm)
    assert smooth.size == 2
    assert type(smooth.kernel).__name__ == "Flat"
    assert type(smooth.bases[0]).__name__ == "Derived"
    options = {"_target_": "their_parts.Plain", "kernel": [1], "a": {"b": 2}}
    plain = Builder().build(options, Algorithm)
    assert (plain.kernel, plain.others) == ([1], {"a": {"b": 2}})


@pytest.mark.usefixtures("_parts")
def test_what_is_refused_is_told(transcript):
    def told_by(target, arguments="{}"):
        options = {**values_in([f"_target_={target}"]), **json.loads(arguments)}
        plain = target.startswith("srs_eval") and ".algorithms." not in target
        return refusal(lambda: Builder().build(options, object if plain else Algorithm))

    transcript("refused_targets", told_by)


def test_a_strangers_record_imports_nothing_that_was_not_installed_as_a_plug_in(place):
    (place / "marking.py").write_text("open('PWNED', 'w').close()\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="marking is not imported"):
        rebuilt_source({"_target_": "marking.X"})
    for target in ("antigravity.fly", "this.s", "..x.Y", "srs_eval.__main__.main"):
        with pytest.raises(ConfigError):
            rebuilt_source({"_target_": target})
    assert not (place / "PWNED").exists()
    assert "marking" not in sys.modules
    assert "antigravity" not in sys.modules


def test_every_problem_of_every_group_is_told():
    cfg = settings.composed([])
    OmegaConf.set_struct(cfg, value=False)
    cfg.algo = {"_target_": "sympy.sympify", "a": "1"}
    cfg.panel.metrics = {"x": {"_target_": FSRS6}}
    with pytest.raises(ConfigError) as raised:
        build(resolved(cfg, {}), dict.fromkeys(KINDS, "mine"))
    algo, panel = raised.value.args
    assert algo == "algo=mine: sympy.sympify is not a class"
    assert panel.startswith(f"panel=mine: {FSRS6}")
    assert f"{Metric.__module__}.Metric" in panel


QUICK = ["algo=avg", "data.users=1", "data.size_scale=0.02", "tracking=none", "figures=false"]
CALL = "{_target_: distutils.spawn.spawn, cmd: [touch, PWNED]}"
PLUG_INS = ("hydra/launcher=submitit_slurm", "hydra/sweeper=srs_eval_optuna")
LAUNCHER = "hydra_plugins.hydra_submitit_launcher"
# Of a file that is named in the option of a group; what decides is what Hydra has composed.
HANDLERS = """
version: 1
disable_existing_loggers: false
formatters: {simple: {format: '[%(asctime)s][%(name)s][%(levelname)s] - %(message)s'}}
handlers:
  console: {class: logging.StreamHandler, formatter: simple, stream: 'ext://sys.stdout'}
  file:
    class: logging.FileHandler
    formatter: simple
    filename: FILE
root: {level: INFO, handlers: [console, file]}
"""
OWN_FILE = "${hydra.runtime.output_dir}/${hydra.job.name}.log"


@pytest.fixture
def _log_files_are_closed():
    """Close what Hydra logs to, as the end of a process does."""
    kept = logging.root.handlers[:]
    yield
    for handler in [one for one in logging.root.handlers if one not in kept]:
        logging.root.removeHandler(handler)
        handler.close()


def overlay(place, name, section):
    write(place / "c", {f"experiment/{name}.yaml": f"# @package _global_\nhydra: {{{section}}}\n"})


def test_what_an_overlay_makes_hydra_do_is_refused(place, transcript):
    pytest.importorskip(LAUNCHER, reason=f"{LAUNCHER} is needed")
    register_schema()

    def told(*words):
        chosen = [word for word in PLUG_INS if words[0].rstrip(":") in word]
        overlay(place, "x", " ".join(words))
        both = pytest.raises((ConfigError, HydraException))
        with also_in([place / "c"]), both as refused:
            composed(Loader(), ["experiment=x", *chosen])
        if isinstance(refused.value, HydraException):
            return f"{refused.value}".partition("\n")[0] + "\n"
        return f"{refused.value}\n"

    transcript("refused_overlays", told)
    assert sorted(path.name for path in place.iterdir()) == ["c", "pickled"]


def test_a_command_with_such_an_overlay_does_nothing(place, here):
    swept = "# @package _global_\ndefaults: [override /hydra/sweeper: srs_eval_optuna]\n"
    swept += f"algo: {CALL}\nhydra: {{sweeper: {{trial: '${{algo}}'}}}}\n"
    write(place, {"c/experiment/y.yaml": swept})
    done = here("-m", "experiment=y", *QUICK, "--config-dir", "c")
    assert (done.status, "hydra.sweeper.trial" in done.err) == (2, True)
    assert sorted(path.name for path in place.iterdir()) == ["c", "pickled"]


@pytest.mark.usefixtures("_log_files_are_closed")
@pytest.mark.parametrize(
    ("file", "kind", "status"),
    [("PWNED", "job", 2), ("PWNED", "hydra", 2), (OWN_FILE, "job", 0)],
)
def test_an_option_of_logging_writes_no_file_but_that_of_hydra(place, file, kind, status):
    write(place, {f"c/hydra/{kind}_logging/x.yaml": HANDLERS.replace("FILE", file)})
    words = [*QUICK, "panel=quick", "--config-dir", "c", "hydra.run.dir=out"]
    assert command([*words, f"hydra/{kind}_logging=x"]) == status
    if kind == "hydra":  # which help would open
        assert command(["--config-dir", "c", "hydra/hydra_logging=x", "--hydra-help"]) == 2
    assert not (place / "PWNED").exists()
    assert (place / "out" / "srs_eval.log").exists() == (status == 0)


def test_what_a_launcher_runs_is_typed(place):
    pytest.importorskip(LAUNCHER, reason=f"{LAUNCHER} is needed")
    overlay(place, "x", "launcher: {partition: long, timeout_min: 5, setup: [module load x]}")
    words = ["experiment=x", "hydra/launcher=submitit_slurm"]
    register_schema()
    with also_in([place / "c"]):
        with pytest.raises(ConfigError, match=r"^hydra\.launcher\.setup:"):
            composed(Loader(), words)
        assert composed(Loader(), [*words, "hydra.launcher.setup=[module load y]"])


@pytest.mark.slow
def test_what_a_sweep_chooses_is_checked_before_the_first_job(place, here):
    overlay(place, "x", "job_logging: {formatters: {x: {(): distutils.spawn.spawn}}}")
    overlay(place, "y", "job: {chdir: false}")
    hidden = "# @package _global_\nhydra: {sweeper: {params: {experiment: 'x,null'}}}\n"
    write(place, {"c/sweep/s.yaml": hidden})
    for how in ("sweep=s", "experiment=x,y", "experiment=glob(*)", "experiment=choice(x,y)"):
        done = here("-m", *QUICK, "--config-dir", "c", how, "hydra.sweep.dir=out")
        assert (done.status, "hydra.job_logging" in done.err) == (2, True), how
        assert not list((place / "out").glob("*/"))
