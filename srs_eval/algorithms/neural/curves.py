"""Forgetting curves of networks: that of FSRS-4.5, and mixtures of power functions."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from srs_eval.algorithms.neural.network import Network

# Recall is 0.9 one stability after the review.
_SCALE = 0.9**-2 - 1
# Keeps times between a microsecond and 200 million years: only non-numbers are excluded.
_LARGEST = 25.0
_TINY = 1e-7


class PowerCurveNetwork(Network):
    """A network whose state is the logarithm of the stability."""

    def decay(self, states: Tensor, elapsed: Tensor) -> Tensor:
        """Minus the logarithm of (1 + 19/81 t/S)**-0.5."""
        stability = torch.exp(states[..., 0].clamp(-_LARGEST, _LARGEST))
        return 0.5 * torch.log1p(_SCALE * elapsed / stability)


class CurveHeads(nn.Module):
    """Three linear layers: logits of the weights, and logarithms of scales and exponents."""

    def __init__(self, width: int, curves: int) -> None:
        super().__init__()
        self.w_fc = nn.Linear(width, curves)
        self.s_fc = nn.Linear(width, curves)
        self.d_fc = nn.Linear(width, curves)

    def forward(self, inputs: Tensor) -> Tensor:
        """Compute all three side by side, [..., 3 * curves]."""
        return torch.cat([self.w_fc(inputs), self.s_fc(inputs), self.d_fc(inputs)], dim=-1)


class CurveMixtureNetwork(Network):
    """A network whose state is what `CurveHeads` computes."""

    def decay(self, states: Tensor, elapsed: Tensor) -> Tensor:
        """Minus the logarithm of (1 - 1e-7) sum of weight * (1 + t/(1e-7 + scale))**-exponent."""
        logits, log_scale, log_exponent = states.chunk(3, dim=-1)
        scale = _TINY + torch.exp(log_scale.clamp(-_LARGEST, _LARGEST))
        exponent = torch.exp(log_exponent.clamp(-_LARGEST, _LARGEST))
        each = logits.log_softmax(-1) - exponent * torch.log1p(elapsed[..., None] / scale)
        return -math.log1p(-_TINY) - torch.logsumexp(each, dim=-1)
