"""The forgetting curve of FSRS-4.5, of a stability of which the network gives the logarithm."""

from __future__ import annotations

import torch
from torch import Tensor

from srs_eval.algorithms.neural.network import Network

# Recall is 0.9 one stability after the review.
_SCALE = 0.9**-2 - 1
# Keeps stabilities between a microsecond and 200 million years: only non-numbers are excluded.
_LARGEST_LOG_STABILITY = 25.0


class PowerCurveNetwork(Network):
    """A network whose state is the logarithm of the stability."""

    def decay(self, states: Tensor, elapsed: Tensor) -> Tensor:
        """Minus the logarithm of (1 + 19/81 t/S)**-0.5."""
        limit = _LARGEST_LOG_STABILITY
        stability = torch.exp(states[..., 0].clamp(-limit, limit))
        return 0.5 * torch.log1p(_SCALE * elapsed / stability)
