"""From the words of a command to the objects of a job, and what is said of mistakes."""

from functools import cache
from pathlib import Path

import pytest
from cases import rest_nightly
from omegaconf import OmegaConf

from srs_eval.algorithms.combined.blend import Blend
from srs_eval.algorithms.combined.ensemble import Ensemble
from srs_eval.algorithms.combined.per_group import PerGroup
from srs_eval.algorithms.fsrs.current import DEFAULTS, CurrentParameters
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.algorithms.fsrs.fsrs7 import Fsrs7
from srs_eval.config import building, option_files, settings
from srs_eval.errors import ConfigError
from srs_eval.experiment.description import described
from srs_eval.experiment.plan import make_plan

CHOICES = {
    "algo": "fsrs6",
    "data": "synthetic",
    "protocol": "srs_benchmark",
    "panel": "default",
    "tracking": "none",
    "compute": "serial",
}


def words_of(choices):
    return [f"{group}={name}" for group, name in choices.items()]


@pytest.fixture(scope="module")
def plan_of():
    """Plan a job from the words of a command, as the command does."""

    @cache
    def build(*words, folder=Path("out"), sweep_folder=None):
        named = dict(word.split("=") for word in words if word.split("=")[0] in CHOICES)
        choices = CHOICES | named
        others = [word for word in words if word.split("=")[0] not in CHOICES]
        cfg = settings.composed([*words_of(choices), *others])
        content = building.resolved(cfg, choices)
        built = building.build(cfg, choices)
        usual = option_files.values("algo", choices["algo"])
        return make_plan(
            built, content, choices, usual=usual, folder=folder, sweep_folder=sweep_folder
        )

    return build


def config_hash(plan):
    return plan.about.tags["config_hash"]


def test_a_plan_holds_what_was_chosen(plan_of):
    plan = plan_of("algo=avg", "data.users=3", "seed=5", "curves_per_user=7", "notes=hello")
    assert (plan.about.algo, plan.about.data, plan.about.label) == ("avg", "synthetic", "avg")
    assert plan.about.name == "avg on synthetic"
    assert plan.experiment.source.count == 3
    assert (plan.experiment.seed, plan.experiment.curves_per_user) == (5, 7)
    assert plan.about.notes == "hello"
    assert plan.options.figures
    assert not plan.options.resume
    assert "sweep_id" not in plan.about.tags


@pytest.mark.parametrize(
    ("words", "label"),
    rest_nightly(
        [
            (["algo=moving_avg", "algo.rate=0.1", "algo.start=0"], "moving_avg(start=0, rate=0.1)"),
            (["algo=hlr", "algo.fit=newton"], "hlr"),
            (["algo=fsrs45_default"], "fsrs45_default"),
            (["algo=fsrs6"], "fsrs6"),
            (["algo=hlr", "algo.fit=default"], "hlr(fit=default)"),
            (["algo=fsrs45_default", "algo.fit=s0"], "fsrs45_default(fit=s0)"),
            (["algo=moving_avg", "algo.rate=0.1"], "moving_avg(rate=0.1)"),
            (["algo=constant", "algo.p=0.8"], "constant(p=0.8)"),
        ],
        2,
    ),
)
def test_a_label_names_the_arguments_that_are_not_at_their_defaults(plan_of, words, label):
    plan = plan_of(*words)
    assert plan.about.label == label
    assert plan.about.name == f"{label} on synthetic"
    assert plan_of(*words, "name=mine").about.name == "mine"


def test_parameters_are_flat_and_name_the_options(plan_of):
    params = plan_of("algo=moving_avg", "algo.rate=0.1").about.params
    assert params["algo"] == "moving_avg"
    assert params["algo.rate"] == 0.1
    assert params["data"] == "synthetic"
    assert params["data.users"] == 8
    assert params["panel.metrics.confusion.thresholds"] == "[0.7, 0.8, 0.9, 0.95]"
    assert params["seed"] == 2026
    assert not any("_target_" in name for name in params)
    assert all(isinstance(v, str | int | float | bool | None) for v in params.values())


MOVES_NUMBERS = (
    *("algo=avg", "data.users=9", "panel.metrics.ece.bins=11", "seed=1", "data.seed=1"),
    *("data.size_scale=0.05", "panel=full", "~panel.metrics.ece", "curves_per_user=0"),
    "algo.recency=mild",
)
MOVES_NONE = (
    *("compute=processes", "notes=other", "tracking=mlflow", "+tags.paper=1", "name=mine"),
    *("figures=false", "resume=true"),
)


@pytest.mark.parametrize("word", rest_nightly(MOVES_NUMBERS[::-1] + MOVES_NONE, 12))
def test_the_digest_changes_with_every_setting_that_can_move_a_number_alone(plan_of, word):
    assert (config_hash(plan_of(word)) != config_hash(plan_of())) == (word in MOVES_NUMBERS)


@pytest.mark.slow
def test_runs_of_a_sweep_share_a_name_that_other_sweeps_do_not_have(plan_of):
    places = [Path("/a/today/10-00_sweep")] * 2 + [Path("/a/yesterday/10-00_sweep")]
    plans = [plan_of(sweep_folder=place) for place in places]
    first, same, other = (plan.about.tags["sweep_id"] for plan in plans)
    assert first == same != other
    assert first.startswith("10-00_sweep-")


@pytest.mark.parametrize(
    ("word", "is_sweep", "taken"),
    [
        ("data.path=a b.csv", False, True),
        ("data.path=C:[1].csv", False, True),
        ("data.path=log.csv", False, False),
        ("data.path=a.csv,b.csv", True, False),
        ("algo=a,b", True, False),
    ],
)
def test_a_path_is_taken_as_it_was_typed(word, is_sweep, taken):
    key, _, value = word.partition("=")
    quoted = settings.literally(word, is_sweep=is_sweep)
    cfg_words = [*words_of(CHOICES | {"data": "csv"}), quoted]
    if taken or not is_sweep:
        assert OmegaConf.select(settings.composed(cfg_words), key) == value
    else:
        assert quoted == word


@pytest.mark.slow
def test_parameters_that_were_read_from_the_data_are_settings_of_a_run():
    cfg = settings.composed(words_of(CHOICES))
    content, built = building.resolved(cfg, CHOICES), building.build(cfg, CHOICES)

    def stamp(algorithm):
        return described(
            {**built, "algo": algorithm}, content, CHOICES, usual={}, further_tags={}
        ).stamp

    now = CurrentParameters({1: DEFAULTS})
    assert stamp(now) == stamp(CurrentParameters({1: DEFAULTS}))
    assert stamp(now) != stamp(CurrentParameters({1: (1.0, *DEFAULTS[1:])}))


@pytest.mark.parametrize("seconds", ["inf", "nan", "0", "1e20"])
def test_a_time_limit_is_a_time_that_a_timer_has(plan_of, seconds):
    with pytest.raises(ConfigError, match="fit_timeout"):
        plan_of(f"fit_timeout={seconds}")


def test_what_is_made_of_fsrs_was_made_for_whole_days_too():
    members = {"fsrs6": Fsrs6(), "fsrs7": Fsrs7()}
    for made in (CurrentParameters(), PerGroup(Fsrs6()), Blend(Fsrs6()), Ensemble(members)):
        assert made.for_whole_days
    assert not Blend(Fsrs7()).for_whole_days


def test_arguments_of_a_fit_are_refused_where_nothing_is_fitted():
    choices = CHOICES | {"data": "anki"}
    given = ["algo.parameters=current", "algo.fit=lbfgs", "algo.recency=mild"]
    cfg = settings.composed([*words_of(choices), *given, "data.path=none.colpkg"])
    with pytest.raises(ConfigError) as refused:
        building.build(cfg, choices)
    assert [problem.partition(" ")[0] for problem in refused.value.problems] == given[1:]
