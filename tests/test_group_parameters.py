"""Fits of several groups are handed over one by one."""

import json

import fsrs
import pytest
from invented import of_presets

import srs_eval as se
from srs_eval.data.synthetic import SyntheticUsers

PRESETS = ("hard words", "easy words")


def test_every_form_of_export_has_the_parameters_of_each_preset():
    """Of one learner with two presets, each of them the cards of another simulated user."""
    source = SyntheticUsers(users=2, size_scale=0.05, max_reviews=1500)
    logs = dict(zip(PRESETS, map(source.read, source.users()), strict=True))
    names = {name: name for name in ("day", "elapsed_days", "preset")}
    fitted = se.fit("per_group", of_presets(logs), fewest=150, progress=False, **names)
    (fit,) = (user.fit for user in fitted.by_user.values())
    assert fit.parameters == ()  # no reader can take the fit of all reviews for the model
    titles = {"all": "every other preset", "preset 0": PRESETS[0], "preset 1": PRESETS[1]}
    assert {part.name: part.title for part in fit.parts} == titles
    printed = {form: str(fitted.export(form)) for form in ("anki", "py_fsrs", "json")}
    schedulers, content = json.loads(printed["py_fsrs"]), json.loads(printed["json"])
    assert (content["algorithm"], content["parameters"]) == ("per_group", [])
    blocks = printed["anki"].strip().split("\n\n")
    for block, own, part in zip(blocks, content["parts"], fit.parts, strict=True):
        heading, numbers = block.splitlines()
        assert heading.startswith(f"# {part.name} ({part.title})")
        assert f"{part.n_train:,}" in heading
        weights = [float(number) for number in numbers.split(",")]
        assert weights == pytest.approx(part.parameters, abs=5.1e-5)
        scheduler = fsrs.Scheduler.from_json(json.dumps(schedulers[part.name]))
        assert tuple(scheduler.parameters) == part.parameters == tuple(own["parameters"])
        assert (own["name"], own["version"]) == (part.name, "FSRS-6")
