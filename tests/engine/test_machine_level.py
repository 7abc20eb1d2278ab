"""Kernels, and the libraries beside them, for one level of processors."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

from srs_eval import cpu
from srs_eval.engine import machine
from srs_eval.errors import ConfigError
from srs_eval.experiment.description import config_hash

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
on_x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="levels are of x86-64")


@pytest.mark.slow
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
def test_an_unknown_level_is_refused_with_the_choices(monkeypatch):
    monkeypatch.setattr(cpu, "_WANTED", "i386")
    monkeypatch.setenv("SRS_EVAL_CPU", "i386")
    with pytest.raises(ConfigError, match="x86-64-v3, x86-64-v4"):
        machine.target_cpu()


@on_x86
def test_one_process_compiles_for_one_level(monkeypatch):
    """The variable was set after kernels may have been compiled."""
    monkeypatch.setattr(cpu, "_WANTED", "")
    monkeypatch.setenv("SRS_EVAL_CPU", "x86-64-v3")
    with pytest.raises(ConfigError):
        machine.target_cpu()


@on_x86
def test_a_processor_below_the_level_is_refused(monkeypatch):
    monkeypatch.setattr(machine, "common_level", lambda: "x86-64-v4")
    monkeypatch.setattr(machine, "_features", lambda: "+avx2,-avx512bw")
    with pytest.raises(ConfigError, match="avx512bw"):
        machine.target_cpu()


def test_runs_of_different_levels_are_not_resumed_by_each_other(monkeypatch):
    monkeypatch.setattr("srs_eval.experiment.description.common_level", lambda: "")
    before = config_hash({"seed": 0})
    monkeypatch.setattr("srs_eval.experiment.description.common_level", lambda: "x86-64-v3")
    assert config_hash({"seed": 0}) != before
