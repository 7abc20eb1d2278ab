"""From the words of a command to the objects of a job, and what is said of mistakes."""

from functools import cache
from pathlib import Path

import pytest
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

USUAL = ["algo=fsrs6", "data=synthetic", "protocol=srs_benchmark", "panel=default", "tracking=none"]


@cache
def plan_of(*words, sweep_folder=None):
    """Plan a job from the words of a command, as the command does."""
    words = [*USUAL, "compute=serial", *words]
    choices = dict(word.split("=") for word in words if word.split("=")[0] in settings.BUILT_GROUPS)
    cfg = settings.composed(words)
    usual = option_files.values("algo", choices["algo"])
    return make_plan(
        building.build(cfg, choices),
        building.resolved(cfg, choices),
        choices,
        usual=usual,
        folder=Path("out"),
        sweep_folder=sweep_folder,
    )


def test_a_plan_holds_what_was_chosen():
    words = ["algo=moving_avg", "algo.rate=0.1", "data.users=3", "seed=5", "curves_per_user=7"]
    plan = plan_of(*words, "notes=hello")
    about, experiment = plan.about, plan.experiment
    assert (about.algo, about.data, about.notes) == ("moving_avg", "synthetic", "hello")
    assert (experiment.source.count, experiment.seed, experiment.curves_per_user) == (3, 5, 7)
    assert (plan.options.figures, plan.options.resume) == (True, False)
    assert "sweep_id" not in about.tags
    flat = {
        **{"algo": "moving_avg", "algo.rate": 0.1, "data": "synthetic", "data.users": 3, "seed": 5},
        "panel.metrics.confusion.thresholds": "[0.7, 0.8, 0.9, 0.95]",
    }
    assert {name: about.params[name] for name in flat} == flat
    assert not any("_target_" in name for name in about.params)
    assert all(isinstance(v, str | int | float | bool | None) for v in about.params.values())


LABELS = {
    "moving_avg(start=0, rate=0.1)": "algo=moving_avg algo.rate=0.1 algo.start=0",
    "hlr": "algo=hlr algo.fit=newton",
    "fsrs45_default(fit=s0)": "algo=fsrs45_default algo.fit=s0",
}


@pytest.mark.parametrize("label", LABELS)
def test_a_label_names_the_arguments_that_are_not_at_their_defaults(label):
    words = LABELS[label].split()
    about = plan_of(*words).about
    assert (about.label, about.name) == (label, f"{label} on synthetic")
    assert plan_of(*words, "name=mine").about.name == "mine"


MOVES_NUMBERS = (
    *("algo.recency=mild", "curves_per_user=0", "~panel.metrics.ece", "panel=full"),
    *("data.size_scale=0.05", "data.seed=1", "seed=1", "panel.metrics.ece.bins=11", "algo=avg"),
)
MOVES_NONE = (
    *("compute=processes", "notes=other", "tracking=mlflow", "+tags.paper=1", "name=mine"),
    *("figures=false", "resume=true"),
)


@pytest.mark.parametrize("word", MOVES_NUMBERS + MOVES_NONE)
def test_the_digest_changes_with_every_setting_that_can_move_a_number_alone(word):
    changed, usual = (plan.about.tags["config_hash"] for plan in (plan_of(word), plan_of()))
    assert (changed != usual) == (word in MOVES_NUMBERS)


def test_runs_of_a_sweep_share_a_name_that_other_sweeps_do_not_have():
    places = [Path("/a/today/10-00_sweep")] * 2 + [Path("/a/yesterday/10-00_sweep")]
    plans = [plan_of("algo=avg", sweep_folder=place) for place in places]
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
    if taken or not is_sweep:
        cfg = settings.composed([*USUAL, "data=csv", quoted])
        assert OmegaConf.select(cfg, key) == value
    else:
        assert quoted == word


def test_parameters_that_were_read_from_the_data_are_settings_of_a_run():
    choices = dict(word.split("=") for word in [*USUAL, "compute=serial"])
    cfg = settings.composed(USUAL)
    content, built = building.resolved(cfg, choices), building.build(cfg, choices)
    one, same, other = (
        described({**built, "algo": algorithm}, content, choices, usual={}, further_tags={}).stamp
        for algorithm in (
            *(CurrentParameters({1: DEFAULTS}), CurrentParameters({1: DEFAULTS})),
            CurrentParameters({1: (1.0, *DEFAULTS[1:])}),
        )
    )
    assert one == same != other


@pytest.mark.parametrize("seconds", ["inf", "nan", "0", "1e20"])
def test_a_time_limit_is_a_time_that_a_timer_has(seconds):
    with pytest.raises(ConfigError, match="fit_timeout"):
        plan_of(f"fit_timeout={seconds}")


def test_what_is_made_of_fsrs_was_made_for_whole_days_too():
    members = {"fsrs6": Fsrs6(), "fsrs7": Fsrs7()}
    for made in (CurrentParameters(), PerGroup(Fsrs6()), Blend(Fsrs6()), Ensemble(members)):
        assert made.for_whole_days
    assert not Blend(Fsrs7()).for_whole_days


def test_arguments_of_a_fit_are_refused_where_nothing_is_fitted():
    given = ["algo.parameters=current", "algo.fit=lbfgs", "algo.recency=mild"]
    with pytest.raises(ConfigError) as refused:
        plan_of("data=anki", *given, "data.path=none.colpkg")
    assert [problem.partition(" ")[0] for problem in refused.value.problems] == given[1:]
