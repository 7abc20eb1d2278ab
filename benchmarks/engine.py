"""What a review costs in the engine's kernels.

python benchmarks/engine.py
"""

from __future__ import annotations

import numpy as np
from benchmark import benchmark, table
from measure import clocked
from peers import synthetic_workload

from srs_eval.algorithms.fsrs.early import Fsrs45Equations
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs5Equations, Fsrs6Equations
from srs_eval.algorithms.fsrs.fsrs7 import Fsrs7Equations
from srs_eval.algorithms.half_life import HlrEquations
from srs_eval.algorithms.schedulers import SbdEquations
from srs_eval.engine.compiled import CompiledModel
from srs_eval.engine.equations import Equations
from srs_eval.engine.packing import Packed, pack

_MODELS: dict[str, Equations] = {
    "FSRS-4.5": Fsrs45Equations(),
    "FSRS-5": Fsrs5Equations(),
    "FSRS-6": Fsrs6Equations(),
    "FSRS-7": Fsrs7Equations(),
    "SBD": SbdEquations(),
    "HLR": HlrEquations(),
}
_REPEATS = 30


def _row(name: str, equations: Equations, packed: Packed) -> tuple[object, ...]:
    model = CompiledModel(equations)
    w = np.asarray(equations.parameters.defaults)
    compiling = clocked(lambda: (model.gradient(w, packed), model.fisher(w, packed))).wall
    gradient = clocked(lambda: model.gradient(w, packed), _REPEATS).cpu
    fisher = clocked(lambda: model.fisher(w, packed), _REPEATS).cpu
    per_review = 1e9 / int(np.count_nonzero(packed.where >= 0))
    gradient, fisher = gradient * per_review, fisher * per_review
    texts = [f"{value:.2f}" for value in (compiling, gradient, fisher)]
    return name, len(w), *texts, f"{fisher / len(w):.3f}"


@benchmark("engine")
def main() -> str:
    """Return what a review costs with each model."""
    workload = synthetic_workload(30_000)
    weight = np.ones(len(workload.train))
    packed = pack(workload.reviews, workload.train, weight=weight, dtype=np.float32)
    reviews = int(np.count_nonzero(packed.where >= 0))
    print(f"{reviews:,} reviews of one simulated user, {_REPEATS} repeats, the least of each")
    headers = ["model", "parameters", "compiling, s", "loss + gradient, ns", "with Fisher, ns"]
    headers += ["per parameter, ns"]
    return table(headers, [_row(name, each, packed) for name, each in _MODELS.items()])
