"""How fast this machine can do arithmetic, as a measure for kernels that have to do some.

Eight independent chains of one operation each run through the processor as fast as it goes.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable

import numpy as np

from srs_eval.engine.expressions import LEAVES, Expression, Graph, needed
from srs_eval.engine.kernels import Frame, Kernel
from srs_eval.engine.packing import FACTS, LANES, Packed, aligned
from srs_eval.engine.parameters import ParameterSpace
from srs_eval.engine.tracing import Traced, trace
from srs_eval.engine.writer import WHOLE

_CHAINS = 8
_ROUNDS = 20_000
# One of everything else counts as a fused multiply and add: it takes no longer.
_MEASURED = ("exp", "log", "divide", "multiply")


def nanoseconds_of_operations() -> dict[str, float]:
    """Measure each operation, per lane."""
    return {operation: _nanoseconds(operation) for operation in _MEASURED}


def floor(outputs: Iterable[Expression], costs: dict[str, float]) -> float:
    """Add up what the operations behind some expressions cost, in nanoseconds per review."""
    counted = Counter(
        expression.operation
        for expression in needed(outputs)
        if expression.operation not in LEAVES and expression.kind == "varying"
    )
    return sum(count * costs.get(name, costs["multiply"]) for name, count in counted.items())


class _Nothing:
    """Equations that ask for no work of their own."""

    state_names = ()
    parameters = ParameterSpace((), (), ())

    def init(self, m: object, w: object, rating: object) -> tuple[()]:
        return ()

    def curve(self, m: object, w: object, state: object, elapsed: object) -> float:
        return 0.5

    def step(self, *_: object) -> tuple[()]:
        return ()


def _nanoseconds(operation: str) -> float:
    traced = trace(_Nothing())
    kernel = _kernel(traced, operation)
    reviews = aligned(FACTS * LANES, "float32").reshape(1, FACTS, LANES)
    reviews[:] = 0.5
    one = np.array([_ROUNDS])
    packed = Packed(reviews, np.array([0]), one, np.array([0]))
    out = aligned(_CHAINS * LANES, "float32")
    least = np.inf
    for _ in range(20):
        began = time.perf_counter()
        kernel(np.zeros(0), packed, out)
        least = min(least, time.perf_counter() - began)
    return least / (_ROUNDS * _CHAINS * LANES) * 1e9


def _kernel(traced: Traced, operation: str) -> Kernel:
    frame = Frame(traced, (), "float32")
    code = frame.code
    chains = code.memory(_CHAINS)
    code.store_all([code.load(frame.reviews)] * _CHAINS, chains)
    graph = Graph()
    x = graph.leaf("state", 0)
    made = {
        "exp": lambda: graph.exp(x),
        "log": lambda: graph.log(x),
        "divide": lambda: 1.0 / x,
        "multiply": lambda: x * 0.5 + 0.25,
    }[operation]()
    rounds = code.load(frame.extent[1], 0, WHOLE)
    with code.loop(0, rounds):
        for chain in range(_CHAINS):
            values = code.compute([made], {x.number: code.load(chains, chain)})
            code.store(values[made.number], chains, chain)
    code.store_all([code.load(chains, chain) for chain in range(_CHAINS)], frame.out)
    return frame.finish(_CHAINS)
