"""The equations of published models, by name and clock."""

from srs_eval.algorithms.fsrs.early import (
    Fsrs1Equations,
    Fsrs2Equations,
    Fsrs3Equations,
    Fsrs4Equations,
    Fsrs45Equations,
)
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs5Equations, Fsrs6Equations
from srs_eval.algorithms.fsrs.fsrs7 import Fsrs7Equations
from srs_eval.algorithms.half_life import HlrEquations
from srs_eval.algorithms.schedulers import (
    AnkiSm2Equations,
    SbdEquations,
    Sm2Equations,
    Sm2TrainableEquations,
)

# By the names and clocks of `golden/predictions.json`.
EQUATIONS = {
    ("SM-2", "days"): Sm2Equations(),
    ("SM-2-trainable", "days"): Sm2TrainableEquations(),
    ("Anki-SM-2", "days"): AnkiSm2Equations(),
    ("Anki-SM-2-swapped", "days"): AnkiSm2Equations(published_order=True),
    ("HLR", "days"): HlrEquations(),
    ("HLR", "secs"): HlrEquations(),
    ("FSRSv1", "days"): Fsrs1Equations(),
    ("FSRSv2", "days"): Fsrs2Equations(),
    ("FSRSv3", "days"): Fsrs3Equations(),
    ("FSRSv4", "days"): Fsrs4Equations(),
    ("FSRS-4.5", "days"): Fsrs45Equations(),
    ("FSRS-4.5", "secs"): Fsrs45Equations(shortest_stability=0.0001),
    ("FSRS-5", "days"): Fsrs5Equations(),
    ("FSRS-5", "secs"): Fsrs5Equations(shortest_stability=0.0001),
    ("FSRS-6", "days"): Fsrs6Equations(),
    ("FSRS-6", "secs"): Fsrs6Equations(),
    ("FSRS-7", "days"): Fsrs7Equations(),
    ("FSRS-7", "secs"): Fsrs7Equations(),
    ("SBD", "days"): SbdEquations(),
    ("SBD", "secs"): SbdEquations(),
}
# What the engine is tried on: one of each family, and what differs among the versions of FSRS.
_TRIED = ("FSRSv1", "FSRSv2", "FSRSv3", "FSRSv4", "FSRS-4.5", "FSRS-5", "FSRS-6", "FSRS-7")
PUBLISHED = {name: EQUATIONS[name, "days"] for name in (*_TRIED, "HLR", "SBD")}
