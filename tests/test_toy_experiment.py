"""The toy experiment: its formulas are right, and its page is what the program makes."""

from __future__ import annotations

import importlib.util
import itertools
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from metric_functions import brier, log_loss

ROOT = Path(__file__).parents[1]
STUDY = ROOT / "experiments" / "toy_experiment"
CASES = ROOT / "tests" / "golden" / "metric_cases.json"

spec = importlib.util.spec_from_file_location("toy", STUDY / "toy.py")
assert spec is not None
assert spec.loader is not None
toy = importlib.util.module_from_spec(spec)
spec.loader.exec_module(toy)

NAMES = {"log": "log_loss", "brier": "brier"}
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


@pytest.mark.parametrize("score", NAMES)
def test_golden_means_and_standard_deviations(score):
    case = json.loads(CASES.read_text(encoding="utf-8"))["C26"]
    inputs, expected = case["inputs"], case["expected"][score]
    assert (inputs["p_easy"], inputs["p_hard"], inputs["q"]) == (toy.EASY, toy.HARD, toy.KNOWN)
    found = toy.closed_form(NAMES[score], inputs["N"], inputs["hard_fraction"])
    for model, exact in found.items():
        assert [exact.mean, exact.sd] == pytest.approx(expected[model], abs=1e-9, rel=1e-9)
    for model, ratio in expected["snr_unpaired"].items():
        assert found[model].unpaired == pytest.approx(ratio, rel=1e-9)
    if score == "log":
        # That one was simulated, with an error of a few percent.
        simulated = case["expected"]["simulated_paired_snr_M1_log"]
        assert found["M1"].paired == pytest.approx(simulated, rel=0.05)


def every_dataset(n, hard, known):
    """All outcomes of n reviews, and all hard reviews a model may know, with probabilities."""
    truth = np.where(np.arange(n) < hard, toy.HARD, toy.EASY)
    for outcome in itertools.product([False, True], repeat=n):
        recalled = np.array(outcome)
        likely = np.prod(np.where(recalled, truth, 1 - truth))
        for knows in itertools.product([False, True], repeat=hard):
            p = np.full(n, toy.EASY)
            p[:hard][np.array(knows, bool)] = toy.HARD
            chance = math.prod(known if one else 1 - known for one in knows)
            yield recalled, p, likely * chance


@pytest.mark.parametrize("name", toy.SCORES)
def test_the_formulas_are_those_of_every_dataset_there_is(name):
    score = {"log_loss": log_loss, "brier": brier}[name]
    rows = [
        (score(np.full(6, recalled.mean()), recalled), score(p, recalled), chance)
        for recalled, p, chance in every_dataset(6, 2, toy.KNOWN["M1"])
    ]
    base, own, chance = np.array(rows).T
    assert chance.sum() == pytest.approx(1)
    found = toy.closed_form(name, 6, 2 / 6)

    def spread(values):
        return math.sqrt(chance @ (values - chance @ values) ** 2)

    assert found["M0"][:2] == pytest.approx((chance @ base, spread(base)))
    assert found["M1"][:2] == pytest.approx((chance @ own, spread(own)))
    signal = chance @ (base - own)
    assert found["M1"].unpaired == pytest.approx(signal / math.hypot(spread(base), spread(own)))
    assert found["M1"].paired == pytest.approx(signal / spread(base - own))


@pytest.mark.slow
def test_the_page_shows_what_the_program_prints(tmp_path, capsys):
    toy.main(tmp_path)
    printed = capsys.readouterr().out.strip().splitlines()
    page = (STUDY / "README.md").read_text(encoding="utf-8")
    shown = re.search(r"<!-- table -->\n```text\n(.*?)\n```\n<!-- /table -->", page, re.S)
    assert shown is not None
    for line, again in zip(shown[1].splitlines(), printed, strict=True):
        assert NUMBER.sub("", line) == NUMBER.sub("", again)
        numbers, others = (
            [float(x.replace(",", "")) for x in NUMBER.findall(y)] for y in (line, again)
        )
        # The last digit may be rounded otherwise on other processors.
        assert others == pytest.approx(numbers, abs=1e-6, rel=0.01)
    assert (tmp_path / "toy_experiment.png").stat().st_size > 10_000
    assert (STUDY / "toy_experiment.png").is_file()


def test_pairing_saves_reviews():
    for name in toy.SCORES:
        alone = toy.reviews_needed(name, "M1", paired=False)
        assert alone > 40 * toy.reviews_needed(name, "M1", paired=True)
