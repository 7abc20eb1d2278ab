"""The equations of published models, by name and clock."""

from srs_eval.algorithms.fsrs.early import Fsrs1, Fsrs2, Fsrs3, Fsrs4, Fsrs45
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs5, Fsrs6
from srs_eval.algorithms.fsrs.fsrs7 import Fsrs7
from srs_eval.algorithms.half_life import Hlr
from srs_eval.algorithms.schedulers import AnkiSm2, Sbd, Sm2Equations, Sm2Trainable

FSRS = ("FSRSv1", "FSRSv2", "FSRSv3", "FSRSv4", "FSRS-4.5", "FSRS-5", "FSRS-6", "FSRS-7")
VERSIONS = (Fsrs1(), Fsrs2(), Fsrs3(), Fsrs4(), Fsrs45(), Fsrs5(), Fsrs6(), Fsrs7())
ALGORITHMS = {
    **dict(zip(FSRS, VERSIONS, strict=True)),
    **{"SM-2-trainable": Sm2Trainable(), "Anki-SM-2": AnkiSm2(), "HLR": Hlr(), "SBD": Sbd()},
    "Anki-SM-2-swapped": AnkiSm2(published_order=True),
}
# By the names and clocks of `golden/predictions.json`.
EQUATIONS = {
    (name, clock): algorithm.equations(whole_days=clock == "days")
    for name, algorithm in ALGORITHMS.items()
    for clock in ("days", "secs")
} | {("SM-2", "days"): Sm2Equations()}
# What the engine is tried on: one of each family, and what differs among the versions of FSRS.
PUBLISHED = {name: EQUATIONS[name, "days"] for name in (*FSRS, "HLR", "SBD")}
