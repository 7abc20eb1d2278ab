"""What a review costs in the engine's kernels, next to the arithmetic that it needs.

    python benchmarks/engine.py

The floor is what the operations of the loss and its gradient would take if nothing had to
wait for anything, nothing were read from memory, and no lane were filler; see `floor.py`.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import ModuleType

import numpy as np
from floor import floor, nanoseconds_of_operations
from tabulate import tabulate
from workloads import synthetic_workload

from srs_eval.algorithms.fsrs.fsrs6 import Fsrs5Equations, Fsrs6Equations
from srs_eval.algorithms.fsrs.fsrs7 import Fsrs7Equations
from srs_eval.algorithms.fsrs.fsrs45 import Fsrs45Equations
from srs_eval.algorithms.half_life.hlr import HlrEquations
from srs_eval.algorithms.schedulers.sbd import SbdEquations
from srs_eval.engine.compiled import CompiledModel
from srs_eval.engine.equations import Equations
from srs_eval.engine.gradient_kernel import GradientFormulas
from srs_eval.engine.packing import Packed, pack
from srs_eval.engine.tracing import trace

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


def main() -> None:
    """Print the table."""
    workload = synthetic_workload(30_000)
    weight = np.ones(len(workload.train))
    packed = pack(workload.reviews, workload.train, weight=weight, dtype=np.float32)
    reviews = int(np.count_nonzero(packed.where >= 0))
    costs = nanoseconds_of_operations()
    print(f"{reviews:,} reviews of one simulated user, {_REPEATS} repeats, the least of each")
    print("ns per lane: " + ", ".join(f"{name} {cost:.3f}" for name, cost in costs.items()))
    rows = [_row(name, equations, packed, costs) for name, equations in _MODELS.items()]
    headers = [
        "model",
        "parameters",
        "compiling, s",
        "loss + gradient, ns",
        "floor, ns",
        "times the floor",
        "per parameter, ns",
        "with Fisher, ns",
        "per parameter, ns",
    ]
    formats = ("", "d", ".2f", ".2f", ".2f", ".2f", ".3f", ".2f", ".3f")
    print(tabulate(rows, headers, tablefmt="github", floatfmt=formats))


def _row(
    name: str, equations: Equations, packed: Packed, costs: dict[str, float]
) -> tuple[object, ...]:
    model = CompiledModel(equations)
    w = np.asarray(equations.parameters.defaults)
    began = time.perf_counter()
    model.gradient(w, packed)
    model.fisher(w, packed)
    compiling = time.perf_counter() - began
    gradient = fisher = np.inf
    for _ in range(_REPEATS):  # in turn, so that both meet the same disturbances
        gradient = min(gradient, _seconds(lambda: model.gradient(w, packed)))
        fisher = min(fisher, _seconds(lambda: model.fisher(w, packed)))
    formulas = GradientFormulas(trace(equations))
    least = floor((*formulas.forward, *formulas.backward), costs)
    per_review = 1e9 / int(np.count_nonzero(packed.where >= 0))
    return (
        name,
        len(w),
        compiling,
        gradient * per_review,
        least,
        gradient * per_review / least,
        gradient * per_review / len(w),
        fisher * per_review,
        fisher * per_review / len(w),
    )


def _seconds(work: object) -> float:
    began = time.perf_counter()
    work()  # type: ignore[operator]
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
