"""Kinds of numbers that options take: where options are built, their annotations are checked."""

from __future__ import annotations

import math
from typing import Annotated

from annotated_types import Ge, Gt, Le, Lt
from pydantic import Strict

Count = Annotated[int, Strict(), Ge(1)]
Finite = Annotated[float, Strict(), Gt(-math.inf), Lt(math.inf)]
Positive = Annotated[float, Strict(), Gt(0), Lt(math.inf)]
NotNegative = Annotated[float, Strict(), Ge(0), Lt(math.inf)]
# Above 0 and up to 1, and below 1.
Share = Annotated[float, Strict(), Gt(0), Le(1)]
Probability = Annotated[float, Strict(), Gt(0), Lt(1)]
Switch = Annotated[bool, Strict()]
