"""Pre-registrations: what is refused, and the verdicts that follow from intervals."""

import os
from datetime import UTC, datetime

import pytest
import yaml
from cases import values_in
from commands import QUIET, SMALL, write
from submissions import read_submission

from srs_eval.commands.compare import command
from srs_eval.comparison.judging import judge, verdicts_of
from srs_eval.comparison.prereg import read_prereg
from srs_eval.comparison.report.sweep import compare_groups
from srs_eval.results.files import SUMMARY
from srs_eval.results.run import load_run
from srs_eval.submit.command import command as submit

REGISTERED = {
    "hypothesis": "Knowing more helps.",
    "model": "good",
    "baseline": "blurred",
    "metric": "log_loss",
    "smallest_difference": 0.01,
    "users": 12,
    "data": "invented",
    "protocol": "srs_benchmark",
    "stopping_rule": "twelve users",
    "fingerprint": "e256d343",
}
ON = {"data_fingerprint": "e256d343"}


@pytest.fixture
def register(tmp_path):
    """Write a pre-registration."""

    def write(**changed):
        file = tmp_path / "registered" / "hypothesis.yaml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(yaml.safe_dump({**REGISTERED, **changed}), encoding="utf-8")
        return file

    return write


@pytest.fixture
def runs_of(make_run):
    """Write a good model and a blurred one, which may have further options of its own."""

    def made(*, blur=1.0, label="blurred", second=None, tags=None, **further):
        first = make_run("good", tags=tags or {}, **ON)
        tags = (tags or {}) if second is None else second
        other = make_run(label, blur=blur, tags=tags, **further, **ON)
        for folder in (first, other):
            write(folder, {".hydra/config.yaml": "{data: {seed: 3, path: null}, seed: 1}"})
        return [load_run(first), load_run(other)]

    return made


@pytest.fixture
def judged(runs_of, register):
    """Judge a blurred model against a better one, registered as given."""

    def found(*, blur=1.0, label="blurred", **changed):
        prereg = read_prereg(register(**changed))
        return judge(prereg, runs_of(blur=blur, label=label, tags={"prereg": prereg.digest}))

    return found


def test_numbers_and_days_are_read_however_yaml_reads_them(register):
    given = {"smallest_difference": "1e-3", "date": "2026-01-31", "authors": "Ada", "users": 1}
    found = read_prereg(register(**given))
    assert (found.smallest_difference, found.users) == (0.001, 1)
    assert (found.date, found.authors) == ("2026-01-31", ("Ada",))


def test_the_decision_follows_from_the_interval(judged, transcript):
    """Runs that are not those that were registered have no verdict, other deviations are told."""

    def told_by(*changed):
        found = judged(**values_in(changed))
        assert found.lo <= found.advantage.mean <= found.hi
        words = found.prereg.in_words
        lines = [words["claim"], words["users"], words["options"], *found.lines]
        return "\n".join([*lines, ""]).replace(f"{datetime.now(UTC):%Y-%m-%d}", "TODAY")

    transcript("prereg_judgements", told_by)


def test_an_interval_that_ends_at_the_registered_difference_keeps_and_does_not_refute(judged):
    for direction, end in (("better", judged().lo), ("equivalent", judged().hi)):
        assert judged(direction=direction, smallest_difference=end).decision == "kept"
    worst = {"model": "blurred", "baseline": "good", "direction": "not_worse"}
    at_end = judged(**{**worst, "smallest_difference": -judged(**worst).hi})
    assert at_end.decision == "undecided"


def test_data_are_fixed_by_their_seed_place_or_digest_alone(register, transcript):
    def told_by(*registered):
        found = read_prereg(register(**{"fingerprint": None, **values_in(registered)}))
        return "fixed\n" if found.fixes_data else "not fixed\n"

    transcript("prereg_data", told_by)


@pytest.mark.parametrize(
    ("time", "is_before"),
    [("01-30T23:59:59", True), ("01-31T00:00:00", False), ("01-31T23:59:59", False)],
)
def test_a_run_may_be_made_on_the_day_of_its_registration(runs_of, register, time, is_before):
    prereg = read_prereg(register(date="2026-01-31"))
    runs = runs_of(tags={"prereg": prereg.digest})
    moment = datetime.fromisoformat(f"2026-{time}+00:00").timestamp()
    os.utime(runs[0].place / SUMMARY, (moment, moment))
    found = judge(prereg, runs).deviations
    assert len(found) == is_before
    assert all("run on 2026-01-30, before 2026-01-31" in line for line in found)


def test_a_file_changed_after_the_runs_and_runs_without_it_are_seen(runs_of, register):
    before = read_prereg(register()).digest
    runs = runs_of(second={}, tags={"prereg": before})
    found = judge(read_prereg(register(smallest_difference=0.001)), runs)
    assert (found.in_short, before[:12] in found.deviations[0]) == ("no verdict, 1 deviation", True)
    other_way = register(model="blurred", baseline="good")
    assert judge(read_prereg(other_way), runs).in_short == "refuted, 1 deviation"


def test_runs_on_other_reviews_count_by_their_common_users(runs_of, register):
    assert judge(read_prereg(register()), runs_of(other_reviews=(3, 4))).users == 10


def test_the_copies_in_the_folders_are_judged_unless_they_were_changed(runs_of, register):
    file = register()
    runs = runs_of(tags={"prereg": read_prereg(file).digest})
    for run in runs:
        (run.place / "prereg.yaml").write_bytes(file.read_bytes())
    (line,) = verdicts_of(runs)
    assert "kept." in line
    assert line in compare_groups(runs)[0].notes
    for run in runs:
        (run.place / "prereg.yaml").write_bytes(register(smallest_difference=0.0001).read_bytes())
    (line,) = verdicts_of(runs)
    assert line.startswith("No verdict")


def test_runs_have_the_digest_and_are_judged_compared_submitted_and_resumed_by_it(
    register, here, capsys, page_without_images
):
    about = {
        **{"model": "avg", "baseline": "constant", "data": "synthetic", "users": 2},
        **{"direction": "equivalent", "smallest_difference": 9, "fingerprint": None},
    }
    file = register(**about)
    assert command([f"prereg={file}"]) == 0
    assert read_prereg(file).digest in capsys.readouterr().out
    constant, avg = here.folder / "runs/constant", here.folder / "runs/avg"
    words = [*SMALL, *QUIET, f"experiment.prereg={file}"]
    assert here("algo=constant", *words, f"hydra.run.dir={constant}").status == 0
    words = ["algo=avg", f"hydra.run.dir={avg}", f"baseline={constant}", *words]
    said = "Pre-registered hypothesis: kept, 1 deviation. Knowing more helps."
    assert said in here(*words).out
    run = load_run(avg)
    assert run.facts.tags["prereg"] == read_prereg(file).digest
    assert (avg / "prereg.yaml").read_bytes() == file.read_bytes()
    for asked in ([f"prereg={file}"], []):
        assert command(["runs", "tracking=none", "out=found", *asked]) == 0
        assert said in capsys.readouterr().out
    for name in ("comparison.md", "comparison.json", "report.html"):
        assert "hypothesis: kept" in (here.folder / "found" / name).read_text(encoding="utf-8")
    given = ["authors=A", "licence=MIT", "tuned_on=none", "description=x"]
    assert submit(["runs", "out=board", *given]) == 0
    assert read_submission(here.folder / "board/constant").about.get("prereg") is None
    stated = read_submission(here.folder / "board/avg").about["prereg"]
    assert (stated["decision"], stated["content"]["model"]) == ("kept, 1 deviation", "avg")
    moved = file.rename(here.folder / "elsewhere.yaml")
    again = here(*words[:-1], f"experiment.prereg={moved}", "resume=true")
    assert (again.status, "was finished before" in again.out) == (0, True)
    register(**about | {"users": 3})
    assert here(*words, "resume=true").status == 2
    assert here(*words[:-1], "resume=true").status == 2
