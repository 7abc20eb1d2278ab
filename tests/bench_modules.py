"""Models in the interface of srs-benchmark's models, most of them of equations of the engine."""

import numpy as np
import torch
from torch import nn

from srs_eval.algorithms.fsrs.family import initial_stabilities
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6Equations
from srs_eval.algorithms.half_life import HlrEquations
from srs_eval.algorithms.schedulers import Sm2TrainableEquations


class TorchMaths:
    """The mathematics namespace of `srs_eval.engine.equations`, on tensors."""

    def __getattr__(self, name):
        """Return a function of `torch` that takes numbers, too."""
        function = getattr(torch, {"rint": "round"}.get(name, name))
        return lambda *values: function(*map(torch.as_tensor, values))


class Base(nn.Module):
    """What their modules share: options of training, and methods that do nothing."""

    lr, wd, n_epoch = 0.04, 1e-5, 5
    equations = None

    def __init__(self, config):
        super().__init__()
        self.config, self.space = config, self.equations.parameters
        self.w = nn.Parameter(torch.tensor(self.space.defaults))

    def get_optimizer(self, lr, wd):
        return torch.optim.Adam(self.parameters(), lr=lr)

    def state_dict(self):
        return [round(value, 4) for value in self.w.tolist()]

    def apply_parameter_clipper(self):
        low, high = (torch.tensor(bounds) for bounds in (self.space.lower, self.space.upper))
        self.w.data = self.w.data.clamp(low, high)

    def batch_process(self, sequences, delta_ts, seq_lens, real_batch_size):
        m, w, states = TorchMaths(), self.w, []
        for elapsed, rating in (each.unbind(1) for each in sequences):
            if states:
                before = states[-1].unbind(1)
                p = self.equations.curve(m, w, before, elapsed)
                after = self.equations.step(m, w, before, elapsed, rating, p)
            else:
                after = self.equations.init(m, w, rating)
            states.append(torch.stack([value + 0 * rating for value in after], 1))
        last = torch.stack(states)[seq_lens - 1, torch.arange(real_batch_size)]
        return {"retentions": self.equations.curve(m, w, last.unbind(1), delta_ts)}


class Sm2(Base):
    """SM-2 with six constants that are learned."""

    equations = Sm2TrainableEquations()


class Fsrs6(Base):
    """FSRS-6, with first stabilities from second reviews and a penalty around the start."""

    equations = Fsrs6Equations()

    def initialize_parameters(self, train_set):
        second = train_set[train_set["i"] == 2]
        if not len(second):
            raise ValueError("Not enough data for pretraining! Training data is inadequate.")
        first = initial_stabilities(
            second["first_rating"].astype(int).to_numpy(),
            second["delta_t"].to_numpy(),
            second["y"].to_numpy(bool),
            mean_recall=float(train_set["y"].mean()),
            decay=0.1542,
            defaults=np.array(self.space.defaults[:4]),
            shortest=self.config.s_min,
        )
        self.w.data[:4] = torch.tensor(first)
        self.anchor = self.w.detach().clone()

    def batch_process(self, sequences, delta_ts, seq_lens, real_batch_size):
        found = super().batch_process(sequences, delta_ts, seq_lens, real_batch_size)
        if hasattr(self, "anchor"):
            pull = (((self.w - self.anchor) / torch.tensor(self.space.spread)) ** 2).sum()
            found["penalty"] = pull * real_batch_size
        return found


class Hlr(Base):
    """Half-life regression with a fit of its own."""

    equations = HlrEquations()

    def fit(self, train_df):
        lengths = torch.tensor([len(each) for each in train_df["tensor"]])
        sequences = nn.utils.rnn.pad_sequence(list(train_df["tensor"])).double()
        t, y = (torch.tensor(train_df[name].to_numpy(float)) for name in ("delta_t", "y"))
        solver = torch.optim.LBFGS([self.w], max_iter=200, line_search_fn="strong_wolfe")

        def closure():
            solver.zero_grad()
            p = self.batch_process(sequences, t, lengths, len(t))["retentions"]
            loss = nn.functional.binary_cross_entropy(p.double().clamp(1e-9, 1 - 1e-9), y)
            loss.backward()
            return loss

        solver.step(closure)
