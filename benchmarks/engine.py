"""What a review costs in the engine's kernels.

python benchmarks/engine.py
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import numpy as np
from benchmark import benchmark, table
from measure import clocked
from workloads import synthetic_workload

from srs_eval.algorithms.fsrs.fsrs6 import Fsrs5Equations, Fsrs6Equations
from srs_eval.algorithms.fsrs.fsrs7 import Fsrs7Equations
from srs_eval.algorithms.fsrs.fsrs45 import Fsrs45Equations
from srs_eval.algorithms.half_life.hlr import HlrEquations
from srs_eval.algorithms.schedulers.sbd import SbdEquations
from srs_eval.engine.compiled import CompiledModel
from srs_eval.engine.equations import Equations
from srs_eval.engine.packing import Packed, pack

_PAGE = Path(__file__).parents[1] / "docs" / "plugins.md"


def model_of_the_page() -> Equations:
    """Return the model that docs/plugins.md shows as an example."""
    text = _PAGE.read_text(encoding="utf-8")
    block = text[text.index("`doubling.py`") :].split("```python\n")[1].split("```")[0]
    module = ModuleType("doubling")
    sys.modules["doubling"] = module  # dataclasses look their module up
    exec(block, module.__dict__)
    equations: Equations = module.DoublingEquations()
    return equations


_MODELS: dict[str, Equations] = {
    "FSRS-4.5": Fsrs45Equations(),
    "FSRS-5": Fsrs5Equations(),
    "FSRS-6": Fsrs6Equations(),
    "FSRS-7": Fsrs7Equations(),
    "SBD": SbdEquations(),
    "HLR": HlrEquations(),
    "docs/plugins.md": model_of_the_page(),
}
_REPEATS = 30


def _row(name: str, equations: Equations, packed: Packed) -> tuple[object, ...]:
    model = CompiledModel(equations)
    w = np.asarray(equations.parameters.defaults)
    compiling = clocked(lambda: (model.gradient(w, packed), model.fisher(w, packed))).wall
    gradient = fisher = np.inf
    for _ in range(_REPEATS):  # in turn, so that both meet the same disturbances
        gradient = min(gradient, clocked(lambda: model.gradient(w, packed)).wall)
        fisher = min(fisher, clocked(lambda: model.fisher(w, packed)).wall)
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
