"""Numbers do not depend on how wide the registers are that kernels use."""

import platform

import llvmlite.binding as llvm
import numpy as np
import pytest
from cases import rest_nightly

from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6Equations
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.engine import machine
from srs_eval.engine.compiled import CompiledModel
from srs_eval.engine.newton import newton
from srs_eval.engine.objective import Objective, penalty_matrix
from srs_eval.engine.packing import pack
from srs_eval.protocol.srs_benchmark import SrsBenchmark


def fitted_predictions():
    """Fit FSRS-6 to a simulated user with kernels compiled now; predict the test rows."""
    source = SyntheticUsers(users=1, seed=4)
    task = SrsBenchmark()(source.read(source.users()[0]), same_day=True)
    fold, space = task.folds[-1], Fsrs6Equations.parameters
    model = CompiledModel(Fsrs6Equations())
    weight = np.ones(len(fold.train))
    packed = pack(task.reviews, fold.train, weight=weight, dtype=np.float32)
    start = np.array(space.defaults)
    end = newton(Objective(model, packed, start, penalty_matrix(space, 1.0)), start, space)
    tested = pack(task.reviews, fold.test)
    p, _ = model.walk(end.parameters, tested)
    return p.ravel()[tested.where[fold.test]]


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="names x86 processors")
@pytest.mark.parametrize("processor", rest_nightly(["haswell", "x86-64"]))
def test_older_processors_predict_the_same(monkeypatch, processor):
    here = fitted_predictions()

    def older():
        if processor == "haswell" and not llvm.get_host_cpu_features().get("avx2"):
            pytest.skip("this processor has no AVX2")
        target = llvm.Target.from_default_triple()
        return target.create_target_machine(cpu=processor, features="", opt=3, jit=True)

    machine._machine.cache_clear()
    monkeypatch.setattr(machine, "_new_machine", older)
    try:
        there = fitted_predictions()
    finally:
        machine._machine.cache_clear()
    np.testing.assert_allclose(there, here, atol=5e-7)
