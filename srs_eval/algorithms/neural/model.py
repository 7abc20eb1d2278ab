"""What every trained network is: a memory model with a forgetting curve."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from srs_eval.algorithms.curve_only import CurveOnly
from srs_eval.algorithms.neural.network import Device, Network, Sizes, built, feature_table
from srs_eval.algorithms.neural.sequences import batch_of, groups_of_entries, histories_before
from srs_eval.algorithms.neural.training import one_thread
from srs_eval.nouns import FloatArray, IntArray, Reviews

_ENTRIES_AT_A_TIME = 2**17
_SMALLEST_P = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True)
class NetworkModel(CurveOnly):
    """A trained network. It predicts in double precision, so that batches do not matter."""

    network: type[Network]
    sizes: Sizes  # What it is built with
    # Tensors in the order of the network's definition, matrices row by row
    parameters: tuple[float, ...]
    scaling: tuple[float, ...] = ()  # As in `Network.set_scaling`; none if empty
    device: Device = "cpu"  # Where to compute

    def predict_at(self, reviews: Reviews, rows: IntArray, elapsed: FloatArray) -> FloatArray:
        """Predict recall at other elapsed times, the history staying as it is."""
        network = _built(self)
        days = torch.as_tensor(np.asarray(elapsed, np.float64), device=self.device)
        with torch.no_grad(), one_thread():
            decay = network.decay(self._states(network, reviews, rows)[:, None], days)
        p: FloatArray = np.exp(-decay.cpu().numpy())
        return np.clip(p, _SMALLEST_P, 1 - _SMALLEST_P)

    def states(self, reviews: Reviews, rows: IntArray) -> FloatArray:
        """Return the state of the network just before each of `rows`.

        Where a card has no earlier review, it is that of a network that has read nothing.
        """
        with torch.no_grad(), one_thread():
            states: FloatArray = self._states(_built(self), reviews, rows).cpu().numpy()
        return states

    def _states(self, network: Network, reviews: Reviews, rows: IntArray) -> Tensor:
        features = feature_table(network, reviews, self.device, precision=torch.float64)
        histories = histories_before(reviews, rows)
        states = network.unread().repeat(len(rows), 1)
        for cards in groups_of_entries(histories, per_group=_ENTRIES_AT_A_TIME):
            batch = batch_of(histories, cards)
            inputs = features[torch.from_numpy(batch.review)]
            entry = torch.from_numpy(batch.entry).to(self.device)
            states[torch.from_numpy(batch.target)] = network.read(inputs, entry)
        return states


@lru_cache(maxsize=2)
def _built(model: NetworkModel) -> Network:
    """Build the network of a model, for predictions; one model is asked again and again."""
    network = built(model.network, model.sizes, model.scaling)
    network = network.double().to(model.device).eval()
    network.load(np.array(model.parameters))
    return network
