"""`python -m srs_eval.new`: what it writes is clean, honest, found, and runs."""

import re
import sys
from pathlib import Path

import pytest
from commands import QUIET, SMALL, apart, process

from srs_eval.commands import new

LONGEST = "abcdefghijklmnopqrstuvwxyz_abc"


def package(folder, kind, name):
    """Write a package, and say of it what pip would."""
    assert new.command([kind, name, str(folder)]) == 0
    about = folder / f"srs_{name}-0.1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: srs-{name}\nVersion: 0.1.0\n")
    (about / "entry_points.txt").write_text(f"[srs_eval.conf]\n{name} = srs_{name}\n")
    return folder


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    return package(tmp_path_factory.mktemp("new") / "srs-half-day", "algo", "half_day")


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


@pytest.mark.slow
def test_its_option_runs_beside_ours(written, tmp_path):
    words = ["-m", "algo=half_day,avg", *SMALL, *QUIET]
    done = apart(tmp_path, *words, env={"PYTHONPATH": str(written)})
    assert done.status == 0, done.text
    assert "half_day" in done.out


NAMES = ["Half-Day", "HalfDay", "half day", "half__day", "../half", "9", "", "größe", "srs_mine"]
NAMES += ["class", "null", "fitted", "fsrs6", "eval", LONGEST + "d"]


def test_a_bad_name_or_folder_is_refused_with_a_better_one(here, capsys, golden_text):
    text = "".join(f"{name}\n  {' '.join(new.name_problems(name))}\n" for name in NAMES)
    (here.folder / "file").write_text("")
    (here.folder / "full").mkdir()
    (here.folder / "full" / "work.py").write_text("work of days")
    for folder in ("full", "file", "file/below"):
        status = new.command(["algo", "half_day", folder])
        text += f"\n$ new algo half_day {folder}\n{capsys.readouterr().err}status {status}\n"
    assert [path.name for path in (here.folder / "full").iterdir()] == ["work.py"]
    golden_text("new_packages", text)


def test_its_page_names_files_that_are_there_and_the_page_on_plug_ins_says_the_same(written):
    named = re.findall(r"^\| `(.*?)`", (written / "README.md").read_text(), re.M)
    assert [(written / name).is_file() for name in named] == [True] * 4
    page = (Path(__file__).parents[1] / "docs" / "plugins.md").read_text(encoding="utf-8")
    block = page.split("## As a package")[1].split("```text\n")[1].split("```")[0]
    typed = [line.partition("  #")[0].strip() for line in block.splitlines()]
    assert typed[0] == "python -m srs_eval.new algo half_day"
    readme = new.files("half_day")["README.md"]
    assert all(line in readme for line in typed[2:])
    toml = page.split("```toml\n")[1].split("```")[0].strip().splitlines()
    assert set(toml) <= set(new.files("half_day")["pyproject.toml"].splitlines())
