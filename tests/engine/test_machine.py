"""Numbers do not depend on the processor that kernels and libraries are compiled for."""

import os
import platform
import subprocess
import sys

import llvmlite.binding as llvm
import numpy as np
import pytest

from srs_eval import cpu
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6Equations
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.engine import machine
from srs_eval.engine.compiled import CompiledModel
from srs_eval.engine.newton import newton
from srs_eval.engine.objective import Objective, penalty_matrix
from srs_eval.engine.packing import pack
from srs_eval.errors import ConfigError
from srs_eval.experiment.description import config_hash
from srs_eval.protocol.srs_benchmark import SrsBenchmark

on_x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="levels are of x86-64")


def fitted_predictions():
    """Fit FSRS-6 to a simulated user with kernels compiled now; predict the test rows."""
    source = SyntheticUsers(users=1, seed=4)
    task = SrsBenchmark()(source.read(source.users()[0]), same_day=True)
    fold, space = task.folds[-1], Fsrs6Equations.parameters
    model, start = CompiledModel(Fsrs6Equations()), np.array(space.defaults)
    packed = pack(task.reviews, fold.train, weight=np.ones(len(fold.train)), dtype=np.float32)
    end = newton(Objective(model, packed, start, penalty_matrix(space, 1.0)), start, space)
    tested = pack(task.reviews, fold.test)
    p, _ = model.walk(end.parameters, tested)
    return p.ravel()[tested.where[fold.test]]


@on_x86
@pytest.mark.parametrize("processor", ["haswell", "x86-64"])
def test_older_processors_predict_the_same(monkeypatch, processor):
    if processor == "haswell" and not llvm.get_host_cpu_features().get("avx2"):
        pytest.skip("this processor has no AVX2")
    here = fitted_predictions()

    def older():
        target = llvm.Target.from_default_triple()
        return target.create_target_machine(cpu=processor, features="", opt=3, jit=True)

    machine._machine.cache_clear()
    monkeypatch.setattr(machine, "_new_machine", older)
    try:
        there = fitted_predictions()
    finally:
        machine._machine.cache_clear()
    np.testing.assert_allclose(there, here, atol=5e-7)


PROGRAM = """
import srs_eval, llvmlite.binding as llvm
from srs_eval.engine import machine
text = "define <16 x float> @f(<16 x float> %a) {\\n %s = fadd <16 x float> %a, %a\\n"
code = machine._machine().emit_assembly(machine._optimised(text + " ret <16 x float> %s\\n}"))
from numba.core.registry import cpu_target
numba = cpu_target.target_context.codegen()
from numpy._core._multiarray_umath import __cpu_dispatch__ as groups, __cpu_features__ as on
newer = [name for name in groups if on.get(name) and ("512" in name or "V4" in name)]
print(machine.target_cpu(), "zmm" in code, "ymm" in code, numba._get_host_cpu_name(),
      repr(numba._tm_features), newer)
"""


@on_x86
def test_kernels_and_libraries_are_of_the_level():
    level = "x86-64-v3"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "SRS_EVAL_CPU": level},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [level, "False", "True", level, "''", "[]"]


@on_x86
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
    hashes = set()
    for level in ("", "x86-64-v3"):
        monkeypatch.setattr(
            "srs_eval.experiment.description.common_level", lambda level=level: level
        )
        hashes.add(config_hash({"seed": 0}))
    assert len(hashes) == 2
