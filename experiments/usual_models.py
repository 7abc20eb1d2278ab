"""The models that several studies compare, by the names that their pages give them."""

from __future__ import annotations

from collections.abc import Mapping

from srs_eval.algorithms.baselines import Average
from srs_eval.algorithms.features.act_r import ActR
from srs_eval.algorithms.features.boosted_trees import BoostedTrees
from srs_eval.algorithms.features.dash import Dash
from srs_eval.algorithms.features.logistic import Logistic
from srs_eval.algorithms.fsrs.early import Fsrs3
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.algorithms.fsrs.fsrs7 import Fsrs7
from srs_eval.algorithms.fsrs.fsrs45 import Fsrs45
from srs_eval.algorithms.half_life.hlr import Hlr
from srs_eval.algorithms.recurrent.lstm import Lstm
from srs_eval.algorithms.schedulers.sm2 import Sm2Trainable
from srs_eval.nouns import Algorithm

PUBLISHED = "FSRS-6, published"
MODELS: Mapping[str, Algorithm] = {
    "FSRS-6": Fsrs6(),
    "FSRS-7": Fsrs7(),
    "FSRS-4.5": Fsrs45(),
    "FSRS-3": Fsrs3(),
    "LSTM": Lstm(),
    "DASH": Dash(),
    "ACT-R": ActR(),
    "logistic regression": Logistic(),
    "boosted trees": BoostedTrees(),
    "boosted trees, falling": BoostedTrees(monotone=True),
    "SM-2, trainable": Sm2Trainable(),
    "HLR": Hlr(),
    "share of recalls": Average(),
    PUBLISHED: Fsrs6(fit="default"),
}
