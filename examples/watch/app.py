"""A simulated app of 300 users over 120 days, watched every night.

    python examples/watch/app.py            simulate, predict, watch, look
    python examples/watch/app.py nights=no  only the log, as app.parquet

The app schedules with FSRS-6 and its published parameters, and stores before each answer what
these predict (`champion`) and what a fit of the night before to the user's own reviews predicts
(`challenger`). On day 90 recall drifts: a fault of the app shows the answer too early to be recalled
without it, so that one answer in twelve turns from recalled to forgotten.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd

import srs_eval as se
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.evaluation.evaluate import EvaluateUser
from srs_eval.nouns import Fold, Reviews, Task
