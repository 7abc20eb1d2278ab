"""How fast this machine can do arithmetic, as a measure for kernels that have to do some.

Eight independent chains of one operation each run through the processor as fast as it goes.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable

import numpy as np

from srs_eval.engine.assembly import Assembly
from srs_eval.engine.expressions import LEAVES, Expression, Graph, needed
from srs_eval.engine.kernel_writer import KernelCode, KernelWriter
from srs_eval.engine.layout import FACTS, LANES, Packed, aligned
from srs_eval.engine.machine import CompiledKernel
from srs_eval.engine.parameters import ParameterSpace
from srs_eval.engine.tracing import Traced, trace

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
    kernel = CompiledKernel(_kernel(traced, operation))
    reviews = aligned(FACTS * LANES, np.float32).reshape(1, FACTS, LANES)
    reviews[:] = 0.5
    one = np.array([_ROUNDS])
    packed = Packed(reviews, np.array([0]), one, np.array([0]))
    out = aligned(_CHAINS * LANES, np.float32)
    least = np.inf
    for _ in range(20):
        began = time.perf_counter()
        kernel(np.zeros(0), packed, out)
        least = min(least, time.perf_counter() - began)
    return least / (_ROUNDS * _CHAINS * LANES) * 1e9


def _kernel(traced: Traced, operation: str) -> KernelCode:
    writer = KernelWriter(traced, (), "float")
    code: Assembly = writer.code
    chains = code.memory(_CHAINS)
    code.store_all([code.load("%reviews", 0)] * _CHAINS, chains)
    graph = Graph()
    x = graph.leaf("state", 0)
    made = {
        "exp": lambda: graph.make("exp", x),
        "log": lambda: graph.make("log", x),
        "divide": lambda: graph.make("divide", 1.0, x),
        "multiply": lambda: x * 0.5 + 0.25,
    }[operation]()
    length = code.load("%lengths", "0", kind="i64")
    with code.loop("round", "0", length):
        for chain in range(_CHAINS):
            found = code.compute([made], {x.number: code.load(chains, chain)})
            code.store(found[made.number], chains, chain)
    code.store_all([code.load(chains, chain) for chain in range(_CHAINS)], "%out")
    return KernelCode(writer.finish(saturating=True), "float", outputs=_CHAINS)
