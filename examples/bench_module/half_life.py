"""A model in the interface of srs-benchmark's models, to copy and change."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class HalfLife(nn.Module):
    """A half-life that grows with passes and shrinks with failures, 3 parameters."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config = config  # `algo.config`, among others
        self.w = nn.Parameter(torch.tensor([2.5, 2.5, -1.0]))

    def batch_process(
        self, sequences: Tensor, delta_ts: Tensor, seq_lens: Tensor, real_batch_size: int
    ) -> dict[str, Tensor]:
        """Predict reviews from the days and the rating of each review before, [T, n, 2]."""
        rating = sequences[..., 1]  # 0 where a history is over
        passes = (rating > 1).sum(dim=0).float().sqrt()
        failures = (rating == 1).sum(dim=0).float().sqrt()
        doublings = self.w[0] + self.w[1] * passes + self.w[2] * failures
        half_life = 2 ** doublings.clamp(-6.0, 15.0)  # days; clipped before it overflows
        return {"retentions": 0.5 ** (delta_ts / half_life)}
