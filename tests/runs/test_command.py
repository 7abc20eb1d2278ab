"""The command: what it leaves and says, and what it refuses in a line or two."""

import sys
from pathlib import Path

import pytest
from commands import QUIET, SMALL, outcome_of, process, summary_of, write
from sessions import Tracker

from srs_eval.metrics.panel import HEADLINE
from srs_eval.runs import report

WORDS = (*SMALL, *QUIET, "panel=quick")


# What is done in turn in one process, and what is not imported by then.
STEPS = {
    "import srs_eval": "numpy pyarrow pandas scipy hydra omegaconf srs_eval.data",
    "import srs_eval.runs.commands": "pandas scipy numba hydra",
    "from srs_eval.runs import cli": "numpy pyarrow scipy pandas numba pydantic",
}
NEVER = "torch mlflow matplotlib optuna sqlalchemy"


def test_nothing_is_imported_before_it_is_used(tmp_path):
    driver = ["import sys"]
    for step, later in STEPS.items():
        heavy = {*NEVER.split(), *later.split()}
        driver += [step, f"assert not {heavy} & {{*sys.modules}}, {heavy} & {{*sys.modules}}"]
    driver += [f"sys.argv = {['srs_eval', 'algo=hlr', *WORDS]}", "cli.main()"]
    driver += [f"assert not {{*sys.modules}} & {set(NEVER.split())}"]
    done = process([sys.executable, "-W", "error", "-c", "\n".join(driver)], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not set("\x1b\r") & set(done.stdout)  # plain, for a pipe


def test_a_run_leaves_everything_the_contract_names(here):
    done = here("algo=fsrs6", *SMALL, "tracking=none", "hydra.run.dir=out")
    out = here.folder / "out"
    assert done.status == 0, done.err
    tables = {f"{name}.parquet" for name in ("scores", "predictions", "fits", "curves")}
    assert {"summary.json", *tables} <= {path.name for path in out.iterdir()}
    assert len(list((out / ".hydra").glob("*.yaml"))) == 3
    names = ("calibration", "roc", "bins", "users", "forgetting")
    figures = {f"{name}.{ending}" for name in names for ending in ("png", "svg")}
    assert {path.name for path in (out / "figures").iterdir()} == figures
    summary = summary_of(out)
    counts = "users reviews fits failed skipped fallback not_converged"
    assert {"label", "metrics", "coverage", *counts.split()} <= set(summary)
    assert (summary["algo"], summary["data"], summary["users"]) == ("fsrs6", "synthetic", 2)
    names = {"mean_users", "mean_reviews", "pooled", "lo", "hi", "n_users"}
    assert all(names <= set(metric) for metric in summary["metrics"].values())
    for what in ("users", "reviews"):
        assert {"read", "scored", "skipped", "failed"} <= set(summary["coverage"][what])
    outcome = outcome_of(out)
    assert (outcome["label"], outcome["status"], outcome["seconds"] > 0) == ("fsrs6", "ok", True)
    first, *others = done.out.splitlines()
    assert len(others) < 15
    gain = 100 * (1 - summary["metrics"]["normalized_entropy"]["mean_users"])
    digits = 1 if abs(gain) < 10 else 0
    assert f"{abs(gain):.{digits}f} % {'below' if gain > 0 else 'above'}" in first
    rows = {line.split()[0]: line for line in done.out.splitlines() if line.strip()}
    for name in (*HEADLINE, "threshold_bias_at_0_9"):
        row = summary["metrics"][name]
        assert f"{row['mean_users']:.4f}" in rows[name]
        assert row["lo"] is None or f"[{row['lo']:.4f}, {row['hi']:.4f}]" in rows[name]


def test_the_same_seed_gives_the_same_files_and_another_run_keeps_nothing(here):
    for folder in ("one", "two"):
        assert here("algo=hlr", *WORDS, f"hydra.run.dir={folder}").status == 0
    for name in ("scores.parquet", "predictions.parquet", "curves.parquet"):
        assert Path("one", name).read_bytes() == Path("two", name).read_bytes(), name
    assert here("algo=moving_avg", *WORDS, "hydra.run.dir=one").status == 0
    assert not Path("one/curves.parquet").exists()
    assert summary_of(Path("one"))["algo"] == "moving_avg"


# What Hydra tells, and what it cannot know.
REFUSED = {
    "algo=nix": "Could not find 'algo/nix'",
    "+algo.nix=3": "unexpected keyword argument 'nix'",
    "algo.fit=nix": "fit=nix is not one of: newton",
    "algo.binary=maybe": "algo.binary='maybe'",
    "data.users=many": "data.users='many'",
    "seed=-1": "seed=-1",
    "data=csv": "data.path is missing",
    "data=csv data.path=nix.csv": "nix.csv: no such file",
    "shard=3/2": "shard=3/2",
    "fit_timeout=-1": "fit_timeout=-1",
    "compute=processes compute.workers=0": "compute.workers=0",
    "algo._target_=os.system": "os.system",
    "-m data=csv data.path=nix.csv": "nix.csv: no such file",
    "-m algo._target_=nix.Nix": "nix.Nix",
    "-m algo=hlr algo.prior_weight=interval(1,9)": "does not support",
    "hydra.run.dir=log.csv/out": "log.csv",  # which cannot be written
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_cannot_be_used_is_said_without_a_traceback(here, words):
    write(here.folder, {"log.csv": ""})
    small = [] if "data" in words else SMALL
    folders = [f"hydra.{kind}.dir=out" for kind in ("run", "sweep") if "hydra" not in words]
    done = here(*words.split(), *small, *QUIET, *folders)
    assert done.status == 1, done
    assert REFUSED[words] in done.text
    assert "Traceback" not in done.text
    assert not list(here.folder.rglob("summary.json"))


OPTION = "# @package _global_\ntracking: {uri: 'http://bob:hush@127.0.0.1:1'}\n"
SECRETS = {
    "tracking.uri": ("--config-dir=c", "experiment=x"),
    "data.url": (
        *("-m", "data=sql", "data.query=SELECT 1"),
        "data.url='mysql+pymysql://me:hush@host:3306/db?charset=utf8'",
    ),
    "notes": ("notes='see https://me:hush@host/'",),
}


@pytest.mark.parametrize("key", SECRETS)
def test_a_password_is_refused_before_it_is_saved(here, key):
    write(here.folder, {"c/experiment/x.yaml": OPTION})
    done = here(*SECRETS[key], "figures=false", "hydra.run.dir=out", "hydra.sweep.dir=out")
    assert done.status == 1
    assert f"{key}: the address has a password" in done.err
    assert "hush" not in done.text
    saved = [path for path in here.folder.glob("out/**/*") if path.is_file()]
    assert not any("hush" in path.read_text() for path in saved)


def test_a_password_in_the_environment_is_neither_printed_nor_saved(here, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://bob:a@hush@127.0.0.1:1")
    done = here("algo=avg", *SMALL, "figures=false", "panel=quick", "hydra.run.dir=out")
    assert done.status == 1
    assert "hush" not in done.text
    files = [path for path in Path("out").rglob("*") if path.is_file()]
    assert Path("out/summary.json") in files
    assert not [path for path in files if b"hush" in path.read_bytes()]


def test_an_algorithm_of_ones_own_is_found_and_refused_if_it_looks_ahead(here):
    write(here.folder, {"own/algo/peeks.yaml": "_target_: offenders.ReadsItsOwnRating\n"})
    words = ("--config-dir=own", "algo=peeks", *WORDS, "hydra.run.dir=out")
    done = here(*words)
    assert (done.status, "check_lookahead=false" in done.err) == (1, True)
    assert outcome_of(here.folder / "out")["status"] == "failed"
    assert here(*words, "check_lookahead=false").status == 0
    assert outcome_of(here.folder / "out")["status"] == "ok"


def test_a_log_of_one_day_per_card_is_told_which_protocol_scores_it(here):
    times = [(card, 1 + card // 9, hour) for card in range(200) for hour in range(8, 18, 2)]
    rows = [f"c{card},3,2024-01-{day:02}T{hour:02}:00" for card, day, hour in times]
    write(here.folder, {"log.csv": "\n".join(["card,rating,time", *rows])})
    words = ("data=csv", "data.path=log.csv", "panel=quick")
    done = here("algo=avg", *QUIET, *words)
    assert "0 of 1 users, 0 of 1,000" in done.out
    assert "protocol=srs_benchmark_secs" in (first := done.out.splitlines()[0])
    swept = here("-m", "algo=avg,constant", *QUIET, *words)
    told = swept.out.split("1_constant")  # by the first job alone
    assert [part.count("add protocol=") for part in told] == [1, 0]
    assert "report  " not in swept.out  # there is none
    scored = here("algo=avg", *QUIET, *words, "protocol=srs_benchmark_secs", "hydra.run.dir=out")
    share = summary_of(here.folder / "out")["coverage"]["reviews"]["scored"] / 1000
    assert f"scores {100 * share:.0f} % of the first user's" in first
    assert "add protocol=" not in scored.out


def test_jobs_that_are_refused_alike_say_why_once(here):
    for _ in range(2):
        done = here("-m", "algo=avg,constant", *QUIET, "data=csv", "data.path=nix.csv")
        assert done.err.count("nix.csv: no such") == 1
        assert "1_constant: the same" in done.err


def test_no_protocol_is_proposed_that_scores_as_little(here):
    rows = [f"{card},3,{1_700_000_000 + 600 * n + card}" for n in range(600) for card in (1, 2)]
    write(here.folder, {"log.csv": "\n".join(["card,rating,time", *rows])})
    words = ("data=csv", "data.path=log.csv", "panel=quick")
    for name in ("srs_benchmark", "srs_benchmark_secs"):  # at most 128 reviews of a card
        assert "add protocol=" not in here("algo=avg", *QUIET, *words, f"protocol={name}").out


def test_a_job_whose_figures_or_log_fail_fails_and_those_beside_it_are_whole(here, monkeypatch):
    """Jobs of a sweep are drawn and logged beside the fits of the next one."""

    def broken(run, setup):
        if setup.label == "avg":
            raise OSError("no space left on device")
        return []

    words = (*WORDS, "tracking._target_=sessions.Tracker", "hydra.sweep.dir=out")
    with monkeypatch.context() as patch:
        patch.setattr(report, "drawn", broken)
        done = here("-m", "algo=avg,constant", *words)
    assert (done.status, "no space left on device" in done.err) == (1, True)
    told = {folder: outcome_of(folder) for folder in sorted(Path("out").glob("[01]_*"))}
    assert [each["status"] for each in told.values()] == ["failed", "ok"]
    runs = {folder: each["run_id"] for folder, each in told.items()}
    assert [*runs.values()] == ["avg", "constant"]
    compared = ("out", "parent", {"best": "", "pictures": [], "jobs": runs})
    ends = [("avg", "failed"), ("constant", "finished"), compared]
    assert Tracker.told == [("parent", "out", None), *ends]
    # What the store lacks is sent when the command is repeated.
    again = here("-m", "algo=avg,constant", *words)
    assert Tracker.told[4:] == [("parent", "out", "parent"), ("avg", "finished"), compared]
    assert (again.status, again.out.count("nothing is fitted")) == (0, 1)
    *_, page, link = again.out.splitlines()
    assert (Path(page.split()[1]).is_file(), link) == (True, "where it is kept")
