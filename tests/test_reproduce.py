"""`python -m srs_eval.reproduce`: what is altered is found, and what is equal is called so."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
from commands import run_here as run_command

from srs_eval.commands.export import command as export
from srs_eval.commands.reproduce import command as reproduce
from srs_eval.comparison.reproduction import Reproduction, UserScore, summary_table, users_table
from srs_eval.results.run import Run

QUIET = ("tracking=none", "figures=false", "curves_per_user=0")
MODELS = {
    "FSRS-6-short": ["algo=fsrs6", "algo.fit=reference"],
    "DASH": ["algo=dash", "algo.fit=reference"],
    "AVG-short-secs": [
        *("algo=avg", "protocol=srs_benchmark_secs", "protocol.answer_time=true"),
    ],
    "MOVING-AVG": ["algo=moving_avg"],
}
# What is altered: an entry of a line, and by how much.
ALTERED = {
    ("FSRS-6-short", 8): {"LogLoss": 1e-5},
    ("DASH", 36): {"size": 1},
    ("AVG-short-secs", 8): {"AUC": -1e-4, "RMSE(bins)": 0.01},
}
# Names that are not made again.
OTHERS = ("LSTM-short-secs", "RWKV-P", "HLR-short", "mine", "FSRS-6-short-deck")


@pytest.fixture(scope="module")
def published(tmp_path_factory, real_logs):
    """Results of two real users, written as the public benchmark does; some are altered."""
    folder = tmp_path_factory.mktemp("published")
    logs = ["data=revlogs_10k", f"data.path={real_logs / 'anki-mit'}"]
    for number, words in enumerate(MODELS.values()):
        run = folder / "runs" / str(number)
        assert run_command([*words, *logs, *QUIET, f"hydra.run.dir={run}"]) == 0
    assert export([str(folder / "runs"), "to=srs_benchmark", f"out={folder}/result/"]) == 0
    assert {path.stem for path in (folder / "result").iterdir()} == {*MODELS}
    for name in MODELS:
        file = folder / "result" / f"{name}.jsonl"
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        for row in rows:
            for key, more in ALTERED.get((name, row["user"]), {}).items():
                place = row if key == "size" else row["metrics"]
                place[key] = round(place[key] + more, 6)
        rows.append({**rows[0], "user": 99})
        file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    for name in OTHERS:
        (folder / "result" / f"{name}.jsonl").write_text(file.read_text())
    return folder / "result"


@pytest.mark.slow
def test_altered_rows_are_found_and_equal_ones_are_called_equal(
    published, real_logs, tmp_path, monkeypatch, capsys, golden_text
):
    monkeypatch.chdir(tmp_path)
    words = [
        f"data.path={real_logs / 'anki-mit'}",
        f"published={published}",
        "workers=1",
        "out=made",
    ]
    capsys.readouterr()
    assert reproduce(words) == 0
    printed = capsys.readouterr().out
    with Path("made/reproduce.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * len(MODELS)
    found = {}
    for row in rows:
        for name in row:
            here, there = row[name], row.get(f"{name} published")
            if there and abs(float(here) - float(there)) > 2e-6:
                found.setdefault((row["result"], int(row["user"])), {})[name] = there
    assert {place: {*names} for place, names in found.items()} == {
        place: {*names} for place, names in ALTERED.items()
    }
    told = re.sub(r" +[0-9.]+$", "", printed.replace(f"{tmp_path}/", ""), flags=re.M)
    golden_text("reproduced", told)
    page = Path("made/reproduce.md").read_text()
    assert printed.partition("\n\n")[2].partition("\n\nfiles")[0] in page
    assert str(tmp_path) not in page


def test_what_cannot_be_made_again_is_refused_or_told(published, real_logs, tmp_path, capsys):
    logs = f"data.path={real_logs / 'anki-mit'}"
    only = [logs, f"published={published}", f"out={tmp_path}/made"]
    assert reproduce([*only, "published.models=mine"]) == 0
    said = capsys.readouterr().out
    assert "mine" in said
    assert re.findall(r"(\d+) with .*? alone", said) == ["1", "0"]
    (tmp_path / "A.jsonl").write_text('{"metrics": {"LogLoss": 0.1}, "user": 1, "size": 9}\n')
    for words in (only[1:], [logs, f"published={tmp_path / 'A.jsonl'}"], [*only, "first=0"]):
        assert reproduce(words) == 2


def made_again(name, *differences, sizes=0):
    """Score users again: the first on other reviews too, and one on none."""
    users = range(len(differences))
    scores = {"log_loss": np.array([0.3] * len(differences))}
    run = Run(name, Path(), dict.fromkeys(users, ""), dict.fromkeys(users, 10), scores)
    found = {
        user: UserScore(10 + sizes * (user == 0), {"log_loss": 0.3 + more}, 0.1)
        for user, more in enumerate(differences)
    }
    return Reproduction(run, {**found, 99: UserScore(0, {}, 0.0, "skipped: too short")})


def test_the_verdict_follows_from_sizes_and_the_interval(golden_text):
    made = [
        made_again("rounded", 0.0, 1e-6, -1e-6),
        made_again("near", 1e-5, -1e-5, 5e-6),
        made_again("worse", 0.01, 0.0101, 0.0099),
        made_again("better", -0.01, -0.0101, -0.0099),
        made_again("scattered", 0.01, -0.01, 0.0),
        made_again("of other reviews", 0.0, 0.0, 0.0, sizes=1),
        made_again("of nobody"),
        made_again("of one", 0.01),
    ]
    assert all(one.without == {"skipped: too short": 1} for one in made)
    tables = (summary_table(made), users_table(made))
    golden_text("reproduction", "\n\n".join(table.write() for table in tables))
