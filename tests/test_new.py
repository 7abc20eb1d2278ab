"""`srs_eval.new`: what it writes is clean, found, and runs; workflows as GitHub runs them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from cases import rest_nightly
from commands import QUIET, SMALL, process, run_here, say_installed, write

from srs_eval.commands import new
from srs_eval.submit.command import command as submit
from srs_eval.submit.reading import read_leaderboard
from srs_eval.submit.record import read_record

SEED = Path(__file__).parents[1] / "experiments" / "arena" / "seed.py"
ALGORITHMS = ["avg", "constant", "fsrs6", "hlr", "sm2"]
WORKFLOWS = Path(".github") / "workflows"


@pytest.fixture(scope="module")
def submission(tmp_path_factory):
    """Write a submission of two simulated users."""
    folder = tmp_path_factory.mktemp("submission")
    words = ["algo=avg", *SMALL, *QUIET, f"hydra.run.dir={folder / 'run'}"]
    assert run_here(words) == 0
    given = ["authors=A. Author", "licence=MIT", "tuned_on=none", "description=The mean."]
    assert submit([str(folder / "run"), f"out={folder / 'mine'}", *given]) == 0
    return folder / "mine"


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """Write a leaderboard, with its branch main and a branch of an author."""
    folder = tmp_path / "board"
    assert new.command(["leaderboard", "board", str(folder)]) == 0
    (tmp_path / "temp").mkdir()
    shadow = tmp_path / "bin" / "python"  # the commands say python
    shadow.parent.mkdir()
    shadow.symlink_to(sys.executable)
    monkeypatch.setenv("PATH", f"{shadow.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    git(folder, "init", "-q", "-b", "main")
    commit(folder)
    git(folder, "checkout", "-q", "-b", "author")
    return folder


def git(folder, *words):
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def commit(folder):
    git(folder, "add", "--all", "--force")
    git(folder, "commit", "-q", "-m", "x")


def workflow(name):
    return yaml.safe_load(new.files("board", new.LEADERBOARD)[str(WORKFLOWS / name)])


def run_step(folder, name):
    """Run the commands of a step of the check, in the shell that GitHub uses."""
    (job,) = workflow("check.yml")["jobs"].values()
    (step,) = [step for step in job["steps"] if step.get("name") == name]
    return process(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=folder,
        env={**os.environ, "BASE": "main", "RUNNER_TEMP": str(folder.parent / "temp")},
    )


def passes(folder, name):
    done = run_step(folder, name)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def test_the_workflows_ask_for_no_more_than_they_need():
    check, publish = (workflow(name) for name in ("check.yml", "publish.yml"))
    assert check["permissions"] == {"contents": "read"}
    assert check[True] == {"pull_request": None}  # YAML reads "on" as true
    assert publish["permissions"] == {"contents": "read", "pages": "write", "id-token": "write"}
    ours = Path(new.__file__).parents[2] / WORKFLOWS
    pinned = "".join(file.read_text("utf-8") for file in ours.glob("*.yml"))
    (job,) = check["jobs"].values()
    (files,) = [step for step in job["steps"] if "if" in step]  # maintainers accept
    assert (files["name"], "author_association" in files["if"]) == ("files", True)
    for content in (check, publish):
        (job,) = content["jobs"].values()
        for step in job["steps"]:
            assert "uses" not in step or step["uses"] in pinned
            assert "${{" not in step.get("run", ""), "what others write is no part of a command"


# What authors may not do, by the files that it writes: a text, the target of a link, or nothing.
FORBIDDEN = {
    "write the record": {"leaderboard/accepted.yaml": "boards: {}"},
    "change a workflow": {".github/workflows/check.yml": "name: check"},
    "remove": {"leaderboard/theirs/submission.yaml": None},
    "link": {"leaderboard/x/results.parquet": Path("/etc/passwd")},
    "add a program": {"leaderboard/theirs/results.parquet": "#!/bin/sh"},
    "add another file": {"leaderboard/theirs/model.py": ""},
    "name a folder oddly": {"leaderboard/a b/submission.yaml": ""},
    "change a registration": {"leaderboard/prereg/submission.yaml": "hypothesis: another"},
    "register beside results": {
        "leaderboard/prereg/mine.yaml": "hypothesis: mine",
        "leaderboard/theirs/results.parquet": "after",
    },
}


def put(folder, files):
    for file, content in ((folder / name, content) for name, content in files.items()):
        file.parent.mkdir(exist_ok=True)
        if content is None:
            file.unlink()
        elif isinstance(content, Path):
            file.symlink_to(content)
        else:
            file.write_text(content)
            file.chmod(0o755 if content.startswith("#!") else 0o644)
    commit(folder)


@pytest.mark.parametrize("change", rest_nightly(FORBIDDEN))
def test_authors_change_submissions_only(repository, change):
    git(repository, "checkout", "-q", "main")
    before = "theirs/submission.yaml", "theirs/results.parquet", "prereg/submission.yaml"
    put(repository, {f"leaderboard/{name}": "before" for name in before})
    git(repository, "checkout", "-q", "-B", "author")
    put(repository, FORBIDDEN[change])
    done = run_step(repository, "files")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "::error::" in done.stdout


@pytest.mark.nightly
def test_submissions_of_others_are_checked_accepted_and_published(repository, submission):
    mine = repository / "leaderboard" / "mine"
    shutil.copytree(submission, mine)
    commit(repository)
    for name in ("files", "check"):
        done = passes(repository, name)
    assert "mine: no problems" in done.stdout

    git(repository, "checkout", "-q", "-B", "maintainer", "author")
    assert submit(["accept", str(mine), "mark=reported"]) == 0
    commit(repository)
    passes(repository, "check")
    assert run_step(repository, "files").returncode == 1  # not run for maintainers
    git(repository, "checkout", "-q", "main")
    git(repository, "merge", "-q", "--no-ff", "-m", "x", "maintainer")
    git(repository, "merge-base", "--is-ancestor", "author", "main")  # closes it as merged
    git(repository, "checkout", "-q", "-b", "copy")
    shutil.copytree(submission, repository / "leaderboard" / "copy")
    commit(repository)
    done = run_step(repository, "check")
    assert (done.returncode, "mine has this title" in done.stderr) == (1, True)
    git(repository, "checkout", "-q", "main")
    (job,) = workflow("publish.yml")["jobs"].values()
    for step in job["steps"]:
        if "run" in step and not step["run"].startswith("pip"):
            subprocess.run(["bash", "-ec", step["run"]], cwd=repository, check=True)
    assert (repository / "site" / "index.html").is_file()


@pytest.mark.slow
def test_five_algorithms_become_a_site(tmp_path):
    words = ["out=arena", f"algo={','.join(ALGORITHMS)}", "users=3", "max_reviews=400"]
    seed = [sys.executable, str(SEED), *words]
    subprocess.run(seed, cwd=tmp_path, check=True)
    leaderboard = tmp_path / "arena" / "leaderboard"
    (board,) = read_leaderboard(leaderboard)
    assert [one.name for one in board.submissions] == ALGORITHMS
    assert {one.mark for one in board.submissions} == {"reported"}
    assert len(list((tmp_path / "arena" / "site").rglob("*.html"))) > 5
    record = read_record(leaderboard)
    again = subprocess.run(seed, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert "fsrs6 was finished before" in again.stdout
    assert read_record(leaderboard) == record


LONGEST = "abcdefghijklmnopqrstuvwxyz_abc"


def package(folder, kind, name):
    """Write a package, and say of it what pip would."""
    assert new.command([kind, name, str(folder)]) == 0
    say_installed(folder, f"srs-{name}", "0.1.0", f"srs_{name}")
    return folder


def test_it_says_what_there_is_and_what_to_type(here, capsys, golden_text):
    for words in (["algo", "half_day"], ["leaderboard", "board"]):
        assert new.command(words) == 0
    said = capsys.readouterr().out
    held = {line.strip() for line in said.splitlines() if line.startswith("  ")}
    for folder in ("srs-half-day", "board"):
        files = [path for path in (here.folder / folder).rglob("*") if path.is_file()]
        assert {path.relative_to(here.folder / folder).as_posix() for path in files} <= held
    golden_text("new_written", said)


@pytest.mark.parametrize("kind", new.KINDS)
def test_what_is_written_is_clean(here, kind):
    (here.folder / "made").mkdir()  # an empty folder is taken
    for folder, name in {"made": "x_y", "short": "a", "long": LONGEST}.items():
        assert new.command([kind, name, folder]) == 0
    for words in (["check"], ["format", "--check"]):
        ruff = [sys.executable, "-m", "ruff", *words, "--no-cache", *["made", "short", "long"]]
        done = process(ruff, cwd=here.folder)
        assert done.returncode == 0, done.stdout
    assert not [
        path for path in here.folder.rglob("*") if path.is_file() and "$" in path.read_text()
    ]


@pytest.mark.nightly
def test_its_types_are_right_and_complete(tmp_path):
    """All kinds at once: mypy reads srs_eval, and what that imports, each time anew."""
    for kind in new.KINDS:
        folder = package(tmp_path / kind, kind, f"half_{kind}")
        (folder / f"srs_half_{kind}").rename(tmp_path / f"srs_half_{kind}")
    packages = [word for kind in new.KINDS for word in ("-p", f"srs_half_{kind}")]
    mypy = [sys.executable, "-m", "mypy", "--strict", *packages]
    done = process(mypy, cwd=tmp_path)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "tests"), [("algo", 5), ("estimator", 3), ("metric", 2), ("data", 3)]
)
def test_it_passes_its_own_tests(tmp_path, kind, tests):
    folder = package(tmp_path / "made", kind, "half_day")
    pytest_ = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider"]
    done = process(pytest_, cwd=folder)
    assert done.returncode == 0, done.stdout
    assert f"{tests} passed" in done.stdout


NAMES = ["Half-Day", "HalfDay", "half day", "half__day", "../half", "9", "", "größe", "srs_mine"]
NAMES += ["class", "null", "fitted", "fsrs6", "eval", LONGEST + "d"]
NOT_OF_REPOSITORIES = ("", ".git", "-x", "a b", "x" * 61, "../up", "größe", "a/b", "$(id)")


def test_a_bad_name_or_folder_is_refused_with_a_better_one(here, capsys, golden_text):
    text = "".join(f"{name}\n  {' '.join(new.name_problems(name))}\n" for name in NAMES)
    assert all(new.name_problems(name, new.LEADERBOARD) for name in NOT_OF_REPOSITORIES)
    write(here.folder, {"file": "", "full/work.py": "work of days"})
    for folder in ("full", "file", "file/below"):
        status = new.command(["algo", "half_day", folder])
        text += f"\n$ new algo half_day {folder}\n{capsys.readouterr().err}status {status}\n"
    assert [path.name for path in (here.folder / "full").iterdir()] == ["work.py"]
    golden_text("new_packages", text)
