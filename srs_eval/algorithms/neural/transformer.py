"""The transformer of the public benchmark, which reads histories anew for each review."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from srs_eval.algorithms.neural.curves import PowerCurveNetwork
from srs_eval.algorithms.neural.network import Network
from srs_eval.algorithms.neural.pretraining import PooledPretraining
from srs_eval.algorithms.neural.training import Recipe

_WIDTH, _HEADS, _DROPOUT = 2, 2, 0.1
# What attention keeps grows with the square of the length.
_PAIRS_AT_A_TIME = 2**21


class TransformerNetwork(PowerCurveNetwork):
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
        Network.draw(self, generator)
        with torch.no_grad():
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
            some = shortest_first[begin : begin + at_a_time]
            length = int(last[some[-1]]) + 1
            histories = inputs[:length, entry[some] % n_cards].transpose(0, 1)
            after = torch.arange(length, device=inputs.device) > last[some, None]
            token = inputs.new_zeros(len(some), 1, _WIDTH)
            output = self.transformer(
                histories, token, src_key_padding_mask=after, memory_key_padding_mask=after
            )
            parts.append(self.fc(output[:, 0]))
        return torch.cat(parts)[torch.argsort(shortest_first)]


@dataclass(frozen=True)
class Transformer(PooledPretraining):
    r"""An encoder-decoder transformer that reads a card's history and gives its stability.

    Encoder and decoder have one layer each, of width 2 with 2 heads and a feed-forward width of
    2. The encoder reads, of each earlier review of the card, the days since the review before it
    and the rating, 1 to 4; there are no positions, so their order is not read. The decoder is
    given one token of zeros; from its output :math:`h`, recall after :math:`t` days is

    .. math:: p = (1 + \tfrac{19}{81} t / S)^{-1/2}, \qquad S = \exp(w \cdot h + b).

    127 parameters. It does not read same-day reviews. All other networks read
    a card once; this one cannot, and reads the history before each review anew, at a cost that
    grows with the cube of a card's length. Padding is masked here: in the original it is
    attended to, so that a prediction depends on the batch it is made in.

    Published row (January 2025; pretrained on users 1 to 100, who are scored too, and "likely
    bugged" as its authors say): log loss 0.468, RMSE(bins) 0.167, AUC 0.531. There, a fit of 5
    epochs starts at the pretrained weights: with `weights`, that is what `epochs` is. Without,
    weights are drawn and trained for 20 epochs.

    Options: see `PooledPretraining`.

    References
    ----------
    Vaswani, A., et al. (2017). Attention is all you need. NeurIPS.
    https://doi.org/10.48550/arXiv.1706.03762
    """

    name: ClassVar[str] = "transformer"
    network: ClassVar[type[Network]] = TransformerNetwork
    recipe: ClassVar[Recipe] = Recipe(
        epochs=20, batch_size=512, learning_rate=0.04, weight_decay=1e-5
    )
