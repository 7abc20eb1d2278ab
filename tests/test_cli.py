"""What a person at the command line meets when all is well, and when a job is not."""

import contextlib
import io
import math
import os
import re
import shlex
import struct
import sys
from pathlib import Path

import pytest
from commands import (
    QUIET,
    SMALL,
    apart,
    columns_of,
    outcome_of,
    process,
    run_here,
    summary_of,
    write,
)

from srs_eval.metrics.headline import HEADLINE

WORDS = (*SMALL, *QUIET)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Run a command in a folder of its own; return the folder and what was said."""
    folder = tmp_path_factory.mktemp("run") / "out"
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert run_here(["algo=hlr", *WORDS, f"hydra.run.dir={folder}"]) == 0
    return folder, out.getvalue()


# What is done in turn in one process, and what is not imported by then.
STEPS = {
    "import srs_eval": "numpy pyarrow pandas scipy hydra omegaconf srs_eval.nouns",
    "import srs_eval.commands.cli, srs_eval.export": "numpy pyarrow hydra pydantic",
    "from srs_eval.commands.run import command": "numpy pyarrow scipy pandas numba",
    "command(['--help'])": "numpy pyarrow scipy pandas numba",
    "command(['--cfg', 'job'])": "numpy pyarrow scipy pandas numba",
    "command(['algo=?'])": "numpy pyarrow scipy pandas numba",
    "command(['algo=lsmt'])": "numpy pyarrow scipy pandas numba",
    "import srs_eval.commands.compare": "scipy pandas numba",
    f"assert command({['algo=hlr', *SMALL, *QUIET]}) == 0": "",
}
IN_PYTHON = {
    "import srs_eval as se; data = {'data': 'synthetic', 'users': 2, 'size_scale': 0.05}": "hydra",
    "se.compare([se.evaluate('constant', panel='quick', **data).save('out')])": "hydra",
    "se.load('out').summary; se.fit('avg', **data).export('json', user=1)": "hydra",
    "from srs_eval.commands import compare, export, score": "hydra",
    "import srs_eval.compare; assert se.compare is srs_eval.api.comparing.compare": "hydra",
}
NEVER = "torch mlflow matplotlib optuna sqlalchemy"


@pytest.mark.parametrize("steps", [STEPS, IN_PYTHON], ids=["commands", "python"])
def test_nothing_is_imported_before_it_is_used(tmp_path, steps):
    driver = ["import sys"]
    for step, later in steps.items():
        heavy = {*NEVER.split(), *later.split()}
        driver += [step, f"assert not {heavy} & {{*sys.modules}}, {heavy} & {{*sys.modules}}"]
    words = [sys.executable, "-W", "error", "-c", "\n".join(driver)]
    done = process(words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not set("\x1b\r") & set(done.stdout)  # plain, for a pipe
    assert steps is STEPS or (done.stdout, done.stderr) == ("", "")


@pytest.mark.slow
def test_flags_of_hydra_still_work(here):
    assert "size_scale: 0.02" in here("--cfg", "job", *SMALL).out
    assert here("--info", "searchpath").status == 0
    assert here("--hydra-help").status == 0
    assert here("--version").out.startswith("srs_eval ")
    assert "parameters: null" in here("algo=fsrs6", "--cfg", "job", "--package", "algo").out
    line = "srs-eval algo=f"
    env = {"COMP_LINE": line, "COMP_POINT": str(len(line))}
    assert "algo=fsrs6" in apart(here.folder, "-sc", "query=bash", env=env).out.split()
    assert apart(here.folder, "--shell-completion", "install=bash").status == 0


def test_a_run_leaves_everything_the_contract_names(here):
    done = here("algo=fsrs6", *SMALL, "tracking=none", "hydra.run.dir=out")
    out = here.folder / "out"
    assert done.status == 0, done.err
    tables = {f"{name}.parquet" for name in ("scores", "predictions", "fits")}
    assert {"summary.json", *tables} <= {path.name for path in out.iterdir()}
    assert len(list((out / ".hydra").glob("*.yaml"))) == 3
    names = ("calibration", "roc", "bins", "users", "forgetting")
    figures = {f"{name}.{ending}" for name in names for ending in ("png", "svg")}
    assert {path.name for path in (out / "figures").iterdir()} == figures
    summary = summary_of(out)
    assert {"algo", "data", "protocol", "users", "reviews", "failed", "metrics"} <= set(summary)
    assert (summary["algo"], summary["data"], summary["users"]) == ("fsrs6", "synthetic", 2)
    columns = "mean_users mean_reviews pooled lo hi n_users n_effective pooled_lo pooled_hi"
    assert {frozenset(metric) for metric in summary["metrics"].values()} == {
        frozenset(columns.split())
    }
    assert not [*out.rglob("*.partial"), *out.glob("parts")]
    (following,) = (line for line in done.out.splitlines() if line.startswith("next "))
    assert set(SMALL) <= set(shlex.split(following, comments=True))


def test_a_run_says_what_it_does_and_prints_the_numbers_it_saved(run):
    outcome, summary = outcome_of(run[0]), summary_of(run[0])
    told = (outcome["label"], outcome["status"], outcome["exit_status"])
    assert (told, outcome["seconds"] > 0) == (("hlr", "ok", 0), True)
    assert all(text in run[1] for text in (f"{run[0] / 'summary.json'}", f"{summary['reviews']:,}"))
    metrics = summary["metrics"]
    rows = {line.split()[0]: line for line in run[1].splitlines() if line.strip()}
    for name in (*HEADLINE, "threshold_bias_at_0_9"):
        row = metrics[name]
        numbers = re.sub(r"\[.*?\]| - ", " ", rows[name]).split()
        floor = metrics.get(f"{name}_floor")
        means = [f"{one['mean_users']:z.4f}" for one in (row, floor) if one is not None]
        assert numbers[-len(means) - 1 :] == [*means, str(row["n_users"])]
        assert row["lo"] is None or f"[{row['lo']:z.4f}, {row['hi']:z.4f}]" in rows[name]
        assert len(rows[name]) <= 100
    others = {name for name in metrics if name.startswith("confusion") or "temporal" in name}
    assert others
    assert others.isdisjoint(rows)


@pytest.mark.slow
def test_on_a_terminal_one_line_shows_the_progress(here, monkeypatch):
    fcntl, termios = map(pytest.importorskip, ("fcntl", "termios"))
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    with os.fdopen(theirs, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        assert run_here(["algo=avg", *WORDS, "hydra.run.dir=out"]) == 0
        shown = os.read(ours, 100_000).decode()
    os.close(ours)
    assert "fits:   0%" in shown
    assert "/10 [" in shown
    assert "\n" not in shown


@pytest.mark.slow
def test_the_run_goes_on_when_nobody_reads_what_it_says(tmp_path):
    words = " ".join(["algo=avg", *SMALL, *QUIET, "hydra.run.dir=out"])
    shell = f"set -o pipefail; {sys.executable} -m srs_eval {words} | head -n 1"
    done = process(["bash", "-c", shell], cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert outcome_of(tmp_path / "out")["status"] == "ok"


def test_the_same_seed_gives_the_same_files_and_another_run_keeps_nothing(here, run):
    before = list(sys.argv)
    assert here("algo=hlr", *WORDS, "hydra.run.dir=out").status == 0
    assert sys.argv == before
    for name in ("scores.parquet", "predictions.parquet", "curves.parquet"):
        assert (run[0] / name).read_bytes() == Path("out", name).read_bytes(), name
    assert here("algo=moving_avg", *WORDS, "hydra.run.dir=out").status == 0
    assert not Path("out/curves.parquet").exists()
    assert summary_of(Path("out"))["algo"] == "moving_avg"


@pytest.mark.slow
def test_a_failing_fit_is_reported_and_takes_no_other_user_or_job_with_it(here):
    write(here.folder, {"own/algo/breaks.yaml": "_target_: invented.Breaks\nuser: 2\n"})
    done = here("-m", "algo=breaks,avg", *WORDS, "hydra.sweep.dir=out", "--config-dir=own")
    statuses = re.findall(r"^\d +(\w+)\S* +(ok|failed|skipped) ", done.out, re.M)
    assert (done.status, statuses) == (1, [("breaks", "failed"), ("avg", "ok")])
    assert "a fit that breaks" in done.out
    assert "Traceback" not in done.text
    broken = here.folder / "out" / "0_breaks"
    fits, scores = (columns_of(broken / f"{name}.parquet") for name in ("fits", "scores"))
    assert fits["status"] == ["ok"] * 5 + ["failed"] * 5
    assert any("a fit that breaks" in trace for trace in fits["traceback"])
    summary = summary_of(broken)
    assert (summary["users"], summary["failed"], scores["user"]) == (1, 5, [1, 2])
    assert math.isnan(scores["log_loss"][1])  # never replaced
