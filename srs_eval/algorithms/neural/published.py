"""Networks of the public benchmark that read a card's days and ratings as they are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from srs_eval.algorithms.neural.curves import PowerCurveNetwork
from srs_eval.algorithms.neural.network import Network, Sizes
from srs_eval.algorithms.neural.training import NetworkAlgorithm
from srs_eval.algorithms.options import Count


class GruNetwork(PowerCurveNetwork):
    """One GRU layer and a linear one that gives the logarithm of the stability."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.rnn = nn.GRU(2, hidden)
        self.fc = nn.Linear(hidden, 1)

    def draw(self, generator: torch.Generator) -> None:
        """Draw orthogonal weights of the GRU, whose biases are 0, and the last layer as usual."""
        super().draw(generator)
        for parameter in self.rnn.parameters():
            if parameter.dim() > 1:
                nn.init.orthogonal_(parameter, generator=generator)
            else:
                nn.init.zeros_(parameter)

    def forward(self, inputs: Tensor) -> Tensor:
        """Logarithm of the stability after each review, [n_steps, n_cards, 1]."""
        states, _ = self.rnn(inputs)
        log_stability: Tensor = self.fc(states)
        return log_stability


@dataclass(frozen=True)
class Gru(NetworkAlgorithm):
    r"""A gated recurrent unit that reads a card's history and gives its stability.

    Cho et al. (2014), *Learning phrase representations using RNN encoder-decoder for statistical
    machine translation*, EMNLP, https://doi.org/10.3115/v1/D14-1179. For each earlier review of the
    card the network reads the days since the review before it and the rating, 1 to 4, both as they
    are. From its state after the last of them, :math:`h`, it predicts recall after :math:`t` days
    as

    .. math:: p = (1 + \tfrac{19}{81} t / S)^{-1/2}, \qquad S = \exp(w \cdot h + b).

    With 2 hidden units it has 39 parameters: 3·2·(2 + 2) weights and two bias vectors of 3·2 in
    the GRU, 2 weights and a bias in the last layer. It does not read same-day reviews.

    Published row (January 2025; pretrained on users 1 to 100, who are scored too): log loss
    0.375, RMSE(bins) 0.086, AUC 0.668.

    It is here to compare with the public number. On the log of the command at ``algo=lstm`` it
    has a log loss of 0.458, where the LSTM has 0.432 and FSRS-6 0.434: use these.

    Parameters
    ----------
    hidden : int
        Number of hidden units.

    Other options: see `NetworkAlgorithm`.
    """

    hidden: Count = 2
    name: ClassVar[str] = "gru"
    network: ClassVar[type[Network]] = GruNetwork


class _GruPNetwork(GruNetwork):
    """One GRU layer over pairs of a rating and the days that follow it.

    Its state after a review is what it had read up to the review's rating, and that rating:
    the days that follow are asked for.
    """

    def forward(self, inputs: Tensor) -> Tensor:
        """Hidden state before the rating of each review, and the rating, [..., hidden + 1]."""
        days, rating = inputs[..., :1], inputs[..., 1:]
        start = inputs.new_zeros(1, inputs.shape[1], self.rnn.hidden_size)
        hidden = start
        if len(inputs) > 1:
            read, _ = self.rnn(torch.cat([days[1:], rating[:-1]], dim=-1))
            hidden = torch.cat([start, read])
        return torch.cat([hidden, rating], dim=-1)

    def decay(self, states: Tensor, elapsed: Tensor) -> Tensor:
        """Return minus the logarithm of the probability after reading the days."""
        shape = np.broadcast_shapes(states.shape[:-1], elapsed.shape)
        states = states.expand(*shape, states.shape[-1]).reshape(-1, states.shape[-1])
        last = torch.stack([elapsed.expand(shape).reshape(-1), states[:, -1]], dim=-1)
        _, hidden = self.rnn(last[None], states[None, :, :-1].contiguous())
        return nn.functional.softplus(-self.fc(hidden[0])[:, 0]).reshape(shape)


@dataclass(frozen=True)
class GruP(Gru):
    r"""A gated recurrent unit that gives the probability of recall, without a stability.

    The network reads each earlier review of the card as its rating, 1 to 4, and the days from it
    to the review after it, so that the last one it reads has the days until now. From its state
    after that, :math:`h`,

    .. math:: p = \sigma(w \cdot h + b).

    Nothing makes its forgetting curve fall. With 8 hidden units it has 297 parameters: 3·8·(2 +
    8) weights and two bias vectors of 3·8 in the GRU, 8 weights and a bias in the last layer. It
    does not read same-day reviews.

    Published row (January 2025; pretrained on users 1 to 100, who are scored too): log loss
    0.352, RMSE(bins) 0.063, AUC 0.687; 0.346 where it reads same-day reviews.

    Parameters
    ----------
    hidden : int
        Number of hidden units.

    Other options: see `NetworkAlgorithm`.
    """

    hidden: Count = 8
    name: ClassVar[str] = "gru_p"
    network: ClassVar[type[Network]] = _GruPNetwork


_WIDTH, _HEADS, _DROPOUT = 2, 2, 0.1
# What attention keeps grows with the square of the length.
_PAIRS_AT_A_TIME = 2**21


class _TransformerNetwork(PowerCurveNetwork):
    """One encoder and one decoder layer of width 2, and the logarithm of the stability.

    Every review read attends to every other, so that nothing is left of one history that the
    next longer one could reuse: `read` lays out a copy of the history for each entry.
    """

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(_WIDTH, _HEADS, _WIDTH, _DROPOUT, batch_first=True)
        encoder = nn.TransformerEncoder(layer, 1, nn.LayerNorm(_WIDTH), enable_nested_tensor=False)
        self.transformer = nn.Transformer(
            _WIDTH,
            _HEADS,
            num_decoder_layers=1,
            dim_feedforward=_WIDTH,
            dropout=_DROPOUT,
            custom_encoder=encoder,
            batch_first=True,
        )
        self.fc = nn.Linear(_WIDTH, 1)

    def draw(self, generator: torch.Generator) -> None:
        """Draw matrices of the layers after Glorot; what else there is, as PyTorch does."""
        super().draw(generator)
        for module in self.modules():
            if isinstance(module, nn.MultiheadAttention):
                nn.init.zeros_(module.in_proj_bias)
                nn.init.zeros_(module.out_proj.bias)
        for parameter in self.transformer.parameters():
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter, generator=generator)

    def read(self, inputs: Tensor, entry: Tensor) -> Tensor:
        """Logarithm of the stability after the review of each entry, [len(entry), 1]."""
        n_steps, n_cards = inputs.shape[:2]
        last = entry.div(n_cards, rounding_mode="floor")
        shortest_first = torch.argsort(last, stable=True)
        parts, at_a_time = [], max(1, _PAIRS_AT_A_TIME // n_steps**2)
        for begin in range(0, len(entry), at_a_time):
            part = shortest_first[begin : begin + at_a_time]
            length = int(last[part[-1]]) + 1
            histories = inputs[:length, entry[part] % n_cards].transpose(0, 1)
            after = torch.arange(length, device=inputs.device) > last[part, None]
            token = inputs.new_zeros(len(part), 1, _WIDTH)
            output = self.transformer(
                histories, token, src_key_padding_mask=after, memory_key_padding_mask=after
            )
            parts.append(self.fc(output[:, 0]))
        return torch.cat(parts)[torch.argsort(shortest_first)]


@dataclass(frozen=True)
class Transformer(NetworkAlgorithm):
    r"""An encoder-decoder transformer that reads a card's history and gives its stability.

    Vaswani et al. (2017), *Attention is all you need*, NeurIPS,
    https://doi.org/10.48550/arXiv.1706.03762. Encoder and decoder have one layer each, of width 2
    with 2 heads and a feed-forward width of 2. The encoder reads, of each earlier review of the
    card, the days since the review before it and the rating, 1 to 4; there are no positions, so
    their order is not read. The decoder is given one token of zeros; from its output :math:`h`,
    recall after :math:`t` days is

    .. math:: p = (1 + \tfrac{19}{81} t / S)^{-1/2}, \qquad S = \exp(w \cdot h + b).

    127 parameters. It does not read same-day reviews. All other networks read
    a card once; this one cannot, and reads the history before each review anew, at a cost that
    grows with the cube of a card's length. Padding is masked here: in the original it is
    attended to, so that a prediction depends on the batch it is made in.

    Published row (January 2025; pretrained on users 1 to 100, who are scored too, and "likely
    bugged" as its authors say): log loss 0.468, RMSE(bins) 0.167, AUC 0.531.
    """

    name: ClassVar[str] = "transformer"
    network: ClassVar[type[Network]] = _TransformerNetwork


_STABILITY = (1.0, 2.5, 4.5, 10.0)
_DIFFICULTY = (1.0, 0.72, 0.07, 0.05)
_INCREASE = (1.26, 0.0, 0.67)
_LONGEST_FIRST_STABILITY, _LONGEST_STABILITY = 100.0, 36500.0
_LOWEST, _HIGHEST = 1e-4, 0.9999
_FORGETTING_RATE = -math.log(0.9)


class _Nn17Network(Network):
    """Stability and difficulty, moved from review to review by five networks of one neuron."""

    def __init__(self, shortest_stability: float) -> None:
        super().__init__()
        self.shortest = shortest_stability
        self.first_stability = nn.Parameter(torch.tensor(_STABILITY))
        self.first_difficulty = nn.Parameter(torch.tensor(_DIFFICULTY))
        self.increase = nn.Parameter(torch.tensor(_INCREASE))
        self.retrievability = _neuron(3)
        self.difficulty = _neuron(3)
        self.post_lapse = _neuron(2)
        self.correction = _neuron(3)
        self.best_increase = _neuron(2)

    def clip(self) -> None:
        """Move the parameters outside of the networks back into their bounds."""
        with torch.no_grad():
            self.first_stability.clamp_(self.shortest, _LONGEST_FIRST_STABILITY)
            self.first_difficulty.clamp_(0.0, 1.0)
            lowest = self.increase.new_tensor([-5.0, 0.0, -5.0])
            self.increase.clamp_(lowest, self.increase.new_tensor([5.0, 1.0, 5.0]))

    def forward(self, inputs: Tensor) -> Tensor:
        """Stability and difficulty after each review, [n_steps, n_cards, 2]."""
        days, rating = inputs.unbind(-1)
        which = (rating[0].long() - 1).clamp(0, 3)
        failures = (rating == 1).to(inputs.dtype).cumsum(0)
        states = [(self.first_stability[which], self.first_difficulty[which])]
        for step in range(1, len(inputs)):
            states.append(self._step(*states[-1], days[step], rating[step], failures[step - 1]))
        return torch.stack([torch.stack(state, dim=-1) for state in states])

    def decay(self, states: Tensor, elapsed: Tensor) -> Tensor:
        """Minus the logarithm of what the first network says of recall."""
        stability, difficulty = states.unbind(-1)
        theory = torch.exp(-_FORGETTING_RATE * elapsed / stability)
        return self._decay(difficulty, stability, theory)

    def _decay(self, difficulty: Tensor, stability: Tensor, theory: Tensor) -> Tensor:
        read = softplus(_ask(self.retrievability, difficulty, stability, theory))
        return read.clamp(-math.log(_HIGHEST), -math.log(_LOWEST))

    def _step(
        self, stability: Tensor, difficulty: Tensor, days: Tensor, rating: Tensor, failures: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Stability and difficulty after a review `days` after the one before."""
        theory = torch.exp(-_FORGETTING_RATE * days / stability).clamp(_LOWEST, _HIGHEST)
        decay = self._decay(difficulty, stability, theory)
        recall = torch.exp(-decay)
        difficulty = torch.sigmoid(_ask(self.difficulty, difficulty, recall, rating))
        # The stability with which recall would be what the first network says.
        real = (_FORGETTING_RATE / decay * days).clamp(self.shortest, _LONGEST_STABILITY)
        a, b, c = self.increase
        easy, due = 5 * (1 - difficulty) + 1, torch.exp(-recall * c)
        theory_increase = 1 + torch.exp(a) * easy * real**-b * due
        corrected = 1 + softplus(_ask(self.correction, difficulty, real, recall))
        increase = 1 + softplus(_ask(self.best_increase, theory_increase, corrected))
        lapsed = softplus(_ask(self.post_lapse, recall, failures))
        stability = torch.where(rating > 1, real * increase, lapsed)
        return stability.clamp(self.shortest, _LONGEST_STABILITY), difficulty


def _neuron(inputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, 1), nn.Mish(), nn.Linear(1, 1))


def _ask(neuron: nn.Sequential, *inputs: Tensor) -> Tensor:
    shape = np.broadcast_shapes(*(value.shape for value in inputs))
    answer: Tensor = neuron(torch.stack([value.expand(shape) for value in inputs], dim=-1))
    return answer[..., 0]


@dataclass(frozen=True)
class Nn17(NetworkAlgorithm):
    """SM-17 with networks in place of its matrices.

    The state of a card is its stability and difficulty. Five networks of one hidden neuron each
    (Mish) say what recall really is, how difficulty moves, what stability is left after a lapse,
    and how much it grows otherwise. 39 parameters: 28 in the networks, 8 first stabilities and
    difficulties, 3 of the theoretical growth. Reads days between reviews, ratings and lapses;
    does not read same-day reviews. The public code takes cards for new while all cards
    of a batch have the state (1, 1), as after a first Again with untrained first states; here only
    a card's first review is new, so that no prediction depends on the batch (predictions of a card
    that begins with Again differ by up to 0.071 from those of the public code for that card alone).
    Source: the public benchmark (srs-benchmark,
    2024), after Woźniak's descriptions of SM-17 (https://supermemo.guru/wiki/Algorithm_SM-17).

    Published row (January 2025; pretrained on users 1 to 100, who are scored too): log loss
    0.398, RMSE(bins) 0.101, AUC 0.624.

    It is here to compare with the public number. On the log of the command at ``algo=lstm`` it
    has a log loss of 0.482, where the LSTM has 0.432.
    """

    name: ClassVar[str] = "nn17"
    network: ClassVar[type[Network]] = _Nn17Network

    def sizes(self, *, whole_days: bool) -> Sizes:
        """Shortest stability, in days."""
        return (0.01 if whole_days else 0.0001,)
