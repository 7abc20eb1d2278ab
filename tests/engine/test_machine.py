"""Kernels of each processor: equal numbers, the widest registers, exact functions."""

import os
import platform
import subprocess
import sys

import llvmlite.binding as llvm
import numpy as np
import pytest
from invented import Logs
from saved import setup_of
from trial import FOLD, REVIEWS, fitted

from srs_eval.algorithms.baselines import Average
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6, Fsrs6Equations
from srs_eval.engine import cpu, machine
from srs_eval.errors import ConfigError
from srs_eval.metrics.panel import default_panel

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="levels are of x86-64")


def predictions_by_kernels_compiled_now():
    """Fit FSRS-6 to a simulated user, and predict the test rows."""
    # Kernels are kept for equal equations of one class.
    afresh = type("Afresh", (Fsrs6,), {"mathematics": type("Equations", (Fsrs6Equations,), {})})
    return fitted(afresh()).predict(REVIEWS, FOLD.test)


@pytest.mark.parametrize("processor", ["haswell", "x86-64"])
def test_older_processors_predict_the_same(monkeypatch, processor):
    if processor == "haswell" and not llvm.get_host_cpu_features().get("avx2"):
        pytest.skip("this processor has no AVX2")
    here = predictions_by_kernels_compiled_now()
    target = llvm.Target.from_default_triple()
    older = target.create_target_machine(cpu=processor, features="", opt=3, jit=True)
    monkeypatch.setattr(machine, "_machine", lambda: older)
    there = predictions_by_kernels_compiled_now()
    np.testing.assert_allclose(there, here, atol=5e-7)


PROGRAM = """
import srs_eval, llvmlite.binding as llvm
from srs_eval.engine import cpu, machine
text = "define <16 x float> @f(<16 x float> %a) {\\n %s = fadd <16 x float> %a, %a\\n"
code = machine._machine().emit_assembly(machine._optimised(text + " ret <16 x float> %s\\n}"))
from numba.core.registry import cpu_target
numba = cpu_target.target_context.codegen()
from numpy._core._multiarray_umath import __cpu_dispatch__ as groups, __cpu_features__ as on
newer = [name for name in groups if on.get(name) and ("512" in name or "V4" in name)]
print(machine.target_cpu(), "zmm" in code, "ymm" in code, numba._get_host_cpu_name(),
      repr(numba._tm_features), newer)
"""


def test_kernels_and_libraries_are_of_the_level():
    level = "x86-64-v3"
    environment = {**os.environ, "SRS_EVAL_CPU": level}
    printed = subprocess.check_output([sys.executable, "-c", PROGRAM], env=environment, text=True)
    assert printed.split() == [level, "False", "True", level, "''", "[]"]


def test_levels_that_cannot_be_had_are_refused(monkeypatch):
    # Unknown; set after kernels may have been compiled; above this processor.
    for at_start, now in (("i386", "i386"), ("", "x86-64-v3")):
        monkeypatch.setattr(cpu, "_WANTED", at_start)
        monkeypatch.setenv("SRS_EVAL_CPU", now)
        with pytest.raises(ConfigError, match=cpu.VARIABLE):
            machine.target_cpu()
    monkeypatch.setattr(machine, "common_level", lambda: "x86-64-v4")
    monkeypatch.setattr(machine, "_features", lambda: "+avx2,-avx512bw")
    with pytest.raises(ConfigError, match="avx512bw"):
        machine.target_cpu()


def test_runs_of_different_levels_are_not_resumed_by_each_other(monkeypatch):
    setup, hashes = setup_of(Average(), Logs({}), default_panel()), set()
    for name in ("", "x86-64-v3"):
        monkeypatch.setattr("srs_eval.runs.config.common_level", lambda name=name: name)
        hashes.add(setup.config_hash)
    assert len(hashes) == 2
