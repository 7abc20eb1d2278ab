"""What options may name: classes of the kind their place asks for, checked before a call."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from srs_eval.algorithms.combined.blend import Blend
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.algorithms.half_life.hlr import Hlr
from srs_eval.config import settings
from srs_eval.config.building import KINDS, build
from srs_eval.config.rebuild import rebuilt_source
from srs_eval.config.targets import Builder
from srs_eval.data.anki import AnkiCollection
from srs_eval.errors import ConfigError
from srs_eval.nouns import Algorithm, Metric, Source

FSRS6 = "srs_eval.algorithms.fsrs.fsrs6.Fsrs6"
BLEND = "srs_eval.algorithms.combined.blend.Blend"
# Things that run code or touch files when called, and were called once.
GADGETS = {
    "sympy.sympify": {"a": "open('PWNED', 'w')"},
    "sympy.Lambda": {"signature": "x", "expr": "open('PWNED', 'w')"},
    "sympy.core.sympify.sympify": {"a": "open('PWNED', 'w')"},
    "distutils.spawn.spawn": {"cmd": ["touch", "PWNED"]},
    "joblib.load": {"filename": "pickled"},
    "joblib.numpy_pickle.load": {"filename": "pickled"},
    "pandas.read_pickle": {"filepath_or_buffer": "pickled"},
    "numpy.load": {"file": "pickled", "allow_pickle": True},
    "torch.load": {"f": "pickled", "weights_only": False},
    "builtins.open": {"file": "PWNED", "mode": "w"},
    "io.FileIO": {"file": "PWNED", "mode": "w"},
    "builtins.exec": {"source": "open('PWNED', 'w')"},
    "pathlib.Path.touch": {"self": "PWNED"},
    "logging.FileHandler": {"filename": "PWNED"},
    "os.system": {"command": "touch PWNED"},
    "os.mkdir": {"path": "PWNED"},
    "subprocess.Popen": {"args": ["touch", "PWNED"]},
    "multiprocessing.pool.Pool": {"processes": 1},
    "shutil.copyfile": {"src": "pickled", "dst": "PWNED"},
    "sqlite3.connect": {"database": "PWNED"},
    "functools.partial": {"func": "print"},
    "operator.methodcaller": {"name": "touch"},
    "unittest.mock.MagicMock": {},
    "srs_eval.experiment.job.Path": {},
    "srs_eval.commands.run.main": {},
    "srs_eval.tracking.nothing.NoTracker.start": {},
    "srs_eval.experiment.report": {},
}


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory, from which modules can be imported, with a pickle that is a bomb."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "pickled").write_bytes(b"cbuiltins\nopen\n(VPWNED\nVw\ntR.")
    return tmp_path


@pytest.mark.filterwarnings("ignore")  # of the libraries that are imported
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("target", GADGETS)
def test_nothing_is_called_that_is_not_of_the_kind_asked_for(
    workplace: Path, target: str, kind: type
) -> None:
    before = sorted(workplace.iterdir())
    with pytest.raises(ConfigError, match=target.rpartition(".")[2]):
        Builder().build({"_target_": target, **GADGETS[target]}, kind)
    assert sorted(workplace.iterdir()) == before


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("target", GADGETS)
def test_nothing_of_another_kind_is_called_where_a_part_belongs(
    workplace: Path, target: str
) -> None:
    before, part = sorted(workplace.iterdir()), {"_target_": target, **GADGETS[target]}
    for options in (
        {"_target_": BLEND, "base": part},
        {"_target_": BLEND, "base": {"_target_": BLEND, "base": part}},
        {"_target_": BLEND, "base": [part]},
        {"_target_": BLEND, "base": {"x": part}},
        {"_target_": BLEND, "half_life": part},
        {"_target_": FSRS6, "fit": [[{"deep": part}]]},
        {"_target_": "srs_eval.algorithms.combined.ensemble.Ensemble", "members": {"a": part}},
    ):
        with pytest.raises(ConfigError):
            Builder().build(options, Algorithm)
    panel = {"_target_": "srs_eval.metrics.panel.Panel", "metrics": {"x": part}}
    with pytest.raises(ConfigError):
        Builder().build(panel, KINDS["panel"])
    assert sorted(workplace.iterdir()) == before


def test_parts_that_fit_are_built() -> None:
    base = {"_target_": FSRS6, "fit": "default"}
    blend = Builder().build({"_target_": BLEND, "base": base, "prior": 7.0}, Algorithm)
    assert isinstance(blend, Blend)
    assert isinstance(blend.base, Fsrs6)
    assert (blend.base.method, blend.prior) == ("default", 7.0)
    members = {"a": base, "b": {"_target_": "srs_eval.algorithms.half_life.hlr.Hlr"}}
    options = {"_target_": "srs_eval.algorithms.combined.ensemble.Ensemble", "members": members}
    ensemble = Builder().build(options, Algorithm)
    assert [type(member) for member in ensemble.members.values()] == [Fsrs6, Hlr]


def test_classes_are_found_under_the_names_of_earlier_releases() -> None:
    base = {"_target_": "srs_eval.algorithms.fsrs6.Fsrs6", "fit": "default"}
    blend = Builder().build(
        {"_target_": "srs_eval.algorithms.blend.Blend", "base": base}, Algorithm
    )
    assert isinstance(blend, Blend)
    assert isinstance(blend.base, Fsrs6)
    assert Builder().find("srs_eval.data.anki.AnkiCollection", Source) is AnkiCollection


@pytest.mark.parametrize("word", ["_partial_", "_args_", "_recursive_", "_convert_"])
def test_other_ways_of_calling_are_refused(word: str) -> None:
    options = {"_target_": FSRS6, word: True}
    for each in (options, {"_target_": BLEND, "base": options}):
        with pytest.raises(ConfigError, match=word):
            Builder().build(each, Algorithm)


@pytest.mark.parametrize(
    "target",
    ["", "x", ".", "..x.Y", "x..Y", "a b.C", 3, None, ["a.B"], "os.", ".os", "srs_eval.__main__.X"],
)
def test_what_is_no_dotted_name_is_refused_before_anything_is_imported(target: object) -> None:
    with pytest.raises(ConfigError):
        Builder().build({"_target_": target}, Algorithm)


@pytest.mark.parametrize("text", ["raise SystemExit(3)", "raise KeyError('x')", "x = ("])
def test_a_module_that_cannot_be_imported_is_told(workplace: Path, text: str) -> None:
    (workplace / "bad_module.py").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"cannot import bad_module\.X"):
        Builder().build({"_target_": "bad_module.X"}, Algorithm)


PARTS = """
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol
from srs_eval.nouns import Algorithm

if TYPE_CHECKING:
    from nowhere import Number

class Kernel(Protocol):
    def weigh(self, days): ...

class Flat:
    def weigh(self, days):
        return 1.0

class Base:
    pass

class Derived(Base):
    pass

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
def parts(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.delitem(sys.modules, "their_parts", raising=False)
    (workplace / "their_parts.py").write_text(PARTS, encoding="utf-8")
    return "their_parts"


def test_parts_of_plug_ins_are_checked_by_their_annotations(parts: str) -> None:
    flat, derived = {"_target_": f"{parts}.Flat"}, {"_target_": f"{parts}.Derived"}
    smooth = Builder().build(
        {"_target_": f"{parts}.Smooth", "kernel": flat, "bases": [derived], "size": 2}, Algorithm
    )
    assert smooth.size == 2
    assert type(smooth.kernel).__name__ == "Flat"
    assert type(smooth.bases[0]).__name__ == "Derived"
    for wrong in ({"kernel": derived}, {"kernel": None, "bases": [flat]}):
        with pytest.raises(ConfigError, match="their_parts"):
            Builder().build({"_target_": f"{parts}.Smooth", **wrong}, Algorithm)
    with pytest.raises(ConfigError, match="annotate"):
        Builder().build({"_target_": f"{parts}.Plain", "kernel": flat}, Algorithm)
    plain = Builder().build({"_target_": f"{parts}.Plain", "kernel": [1], "a": {"b": 2}}, Algorithm)
    assert (plain.kernel, plain.others) == ([1], {"a": {"b": 2}})


def test_what_a_class_lacks_is_named(parts: str) -> None:
    with pytest.raises(ConfigError, match=r"sees_truth, when as in .*Algorithm"):
        Builder().build({"_target_": f"{parts}.Lacking"}, Algorithm)
    with pytest.raises(ConfigError, match="no such thing"):
        Builder().build({"_target_": f"{parts}.Breaks"}, Algorithm)
    with pytest.raises(ConfigError, match=r"there is no argument 'kernell'; did you mean 'kernel'"):
        Builder().build({"_target_": f"{parts}.Smooth", "kernell": None}, Algorithm)


def test_a_strangers_record_imports_nothing_that_was_not_installed_as_a_plug_in(
    workplace: Path,
) -> None:
    (workplace / "marking.py").write_text("open('PWNED', 'w').close()\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="marking is not imported"):
        rebuilt_source({"_target_": "marking.X"})
    for target in ("antigravity.fly", "this.s", "..x.Y", "srs_eval.__main__.main"):
        with pytest.raises(ConfigError):
            rebuilt_source({"_target_": target})
    assert not (workplace / "PWNED").exists()
    assert "marking" not in sys.modules
    assert "antigravity" not in sys.modules


def test_every_problem_of_every_group_is_told() -> None:
    cfg = settings.composed([])
    OmegaConf.set_struct(cfg, value=False)
    cfg.algo = {"_target_": "sympy.sympify", "a": "1"}
    cfg.panel.metrics = {"x": {"_target_": FSRS6}}
    with pytest.raises(ConfigError) as raised:
        build(cfg, dict.fromkeys(KINDS, "mine"))
    assert "algo=mine: sympy.sympify is not a class" in str(raised.value)
    assert f"panel=mine: {FSRS6}" in str(raised.value)
    assert f"{Metric.__module__}.Metric" in str(raised.value)


@pytest.mark.parametrize(
    ("target", "arguments"),
    [
        ("srs_eval.compute.processes.Processes", {"workers": 1.0}),
        ("srs_eval.compute.processes.Processes", {"workers": 1.5}),
        ("srs_eval.compute.processes.Processes", {"workers": True}),
        ("srs_eval.data.table_options.Columns", {"card": ["a"]}),
        ("srs_eval.data.table_options.Columns", {"card": 7}),
        ("srs_eval.data.table.ReviewTable", {"path": ""}),
        ("srs_eval.data.table.ReviewTable", {"path": " "}),
        ("srs_eval.data.table.ReviewTable", {"path": "pickled/"}),
        ("srs_eval.data.table.ReviewTable", {"path": 2026}),
        ("srs_eval.protocol.validation.Validation", {"base": 2026}),
        ("srs_eval.algorithms.baselines.Constant", {"p": "0.9"}),
        (FSRS6, {"binary": 1}),
    ],
)
def test_a_plain_value_must_be_what_its_annotation_says(
    workplace: Path, target: str, arguments: dict[str, object]
) -> None:
    kind = Builder().find(target, object)
    (name,) = arguments
    with pytest.raises(ConfigError, match=f"{name}="):
        Builder().build({"_target_": target, **arguments}, kind)
