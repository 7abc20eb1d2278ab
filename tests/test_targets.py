"""What options may name: classes of the kind their place asks for, checked before a call."""

from __future__ import annotations

import sys
from collections.abc import Callable
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
ENSEMBLE = "srs_eval.algorithms.combined.ensemble.Ensemble"
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
    "srs_eval.experiment.job.Path": {},
    "srs_eval.commands.run.main": {},
    "srs_eval.tracking.nothing.NoTracker.start": {},
}


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory, from which modules can be imported, with a pickle that is a bomb."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "pickled").write_bytes(b"cbuiltins\nopen\n(VPWNED\nVw\ntR.")
    return tmp_path


@pytest.mark.filterwarnings("ignore")  # of the libraries that are imported
@pytest.mark.parametrize("target", GADGETS)
def test_nothing_is_called_that_is_not_of_the_kind_asked_for(workplace: Path, target: str) -> None:
    before, part = sorted(workplace.iterdir()), {"_target_": target, **GADGETS[target]}
    panel = {"_target_": "srs_eval.metrics.panel.Panel", "metrics": {"x": part}}
    for kind, options in [
        *((kind, part) for kind in KINDS.values()),
        (KINDS["panel"], panel),
        (Algorithm, {"_target_": BLEND, "base": part}),
        (Algorithm, {"_target_": BLEND, "base": {"_target_": BLEND, "base": part}}),
        (Algorithm, {"_target_": BLEND, "base": [part]}),
        (Algorithm, {"_target_": BLEND, "base": {"x": part}}),
        (Algorithm, {"_target_": BLEND, "half_life": part}),
        (Algorithm, {"_target_": FSRS6, "fit": [[{"deep": part}]]}),
        (Algorithm, {"_target_": ENSEMBLE, "members": {"a": part}}),
    ]:
        with pytest.raises(ConfigError):
            Builder().build(options, kind)
    assert sorted(workplace.iterdir()) == before


def test_parts_that_fit_are_built_also_under_the_names_of_earlier_releases() -> None:
    base = {"_target_": "srs_eval.algorithms.fsrs6.Fsrs6", "fit": "default"}
    of_blend = {"_target_": "srs_eval.algorithms.blend.Blend", "base": base, "prior": 7.0}
    blend = Builder().build(of_blend, Algorithm)
    assert isinstance(blend, Blend)
    assert isinstance(blend.base, Fsrs6)
    assert (blend.base.method, blend.prior) == ("default", 7.0)
    members = {"a": base, "b": {"_target_": "srs_eval.algorithms.half_life.hlr.Hlr"}}
    ensemble = Builder().build({"_target_": ENSEMBLE, "members": members}, Algorithm)
    assert [type(member) for member in ensemble.members.values()] == [Fsrs6, Hlr]
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
def _parts(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "their_parts", raising=False)
    for name, text in {**BAD_MODULES, "their_parts": PARTS}.items():
        (workplace / f"{name}.py").write_text(text, encoding="utf-8")


@pytest.mark.usefixtures("_parts")
def test_parts_of_plug_ins_are_checked_by_their_annotations() -> None:
    options = {"_target_": "their_parts.Smooth", "kernel": FLAT, "bases": [DERIVED], "size": 2}
    smooth = Builder().build(options, Algorithm)
    assert smooth.size == 2
    assert type(smooth.kernel).__name__ == "Flat"
    assert type(smooth.bases[0]).__name__ == "Derived"
    options = {"_target_": "their_parts.Plain", "kernel": [1], "a": {"b": 2}}
    plain = Builder().build(options, Algorithm)
    assert (plain.kernel, plain.others) == ([1], {"a": {"b": 2}})


FLAT, DERIVED = ({"_target_": f"their_parts.{name}"} for name in ("Flat", "Derived"))
PROCESSES = "srs_eval.compute.processes.Processes"
TABLE, COLUMNS = "srs_eval.data.table.ReviewTable", "srs_eval.data.table_options.Columns"
REFUSED: list[tuple[object, dict[str, object]]] = [
    *((target, {}) for target in ("", "x", ".", "..x.Y", "x..Y", "a b.C", 3, None, ["a.B"])),
    *((target, {}) for target in ("os.", ".os", "srs_eval.__main__.X", "os.system", "os.Nothing")),
    *((f"{module}.X", {}) for module in BAD_MODULES),
    *((FSRS6, {word: True}) for word in ("_partial_", "_args_", "_recursive_", "_convert_")),
    (BLEND, {"base": {"_target_": FSRS6, "_partial_": True}}),
    ("their_parts.Lacking", {}),
    ("their_parts.Breaks", {}),
    ("their_parts.Smooth", {"kernell": None}),
    ("their_parts.Smooth", {"kernel": DERIVED}),
    ("their_parts.Smooth", {"kernel": None, "bases": [FLAT]}),
    ("their_parts.Plain", {"kernel": FLAT}),
    *((PROCESSES, {"workers": workers}) for workers in (1.0, 1.5, True)),
    *((COLUMNS, {"card": card}) for card in (["a"], 7)),
    *((TABLE, {"path": path}) for path in ("", " ", "pickled/", 2026)),
    ("srs_eval.protocol.validation.Validation", {"base": 2026}),
    ("srs_eval.algorithms.baselines.Constant", {"p": "0.9"}),
    (FSRS6, {"binary": 1}),
]


@pytest.mark.usefixtures("_parts")
def test_what_is_refused_is_told(golden_text: Callable[[str, str], None]) -> None:
    lines = []
    for target, arguments in REFUSED:
        plain = target in (PROCESSES, TABLE, COLUMNS) or "Validation" in str(target)
        with pytest.raises(ConfigError) as refused:
            Builder().build({"_target_": target, **arguments}, object if plain else Algorithm)
        lines.append(f"{target!r} {arguments}\n  {refused.value}")
    golden_text("refused_targets", "\n".join([*lines, ""]))


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
