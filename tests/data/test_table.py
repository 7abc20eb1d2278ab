from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from srs_eval.data.names import read_names
from srs_eval.data.ratings import read_ratings
from srs_eval.data.table import ReviewTable
from srs_eval.data.table_options import Columns
from srs_eval.errors import ReviewLogError

DAYS = Columns(day="day")
START = datetime(2004, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def log(tmp_path):
    """Write a table; return its path."""

    def write(text, name="log.csv"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    return write


def read(path, columns=None, **options):
    source = ReviewTable(path, columns, **options)
    (user,) = source.users()
    return source.read(user)


def refusal(path, columns=None, **options):
    """Return the error of a log with one violation; it names the source."""
    with pytest.raises(ReviewLogError) as caught:
        read(path, columns, **options)
    assert str(path) in caught.value.source
    assert len(caught.value.violations) == 1
    return caught.value


def test_the_py_fsrs_log_equals_its_converted_form(build_option, real_logs):
    folder = real_logs / "py-fsrs-josh"
    original = build_option(
        "py_fsrs", path=str(folder / "review_logs_josh.csv"), day_start_hour=10
    ).read("review_logs_josh")
    converted = build_option("revlogs_10k", path=str(folder / "revlogs_benchmark_schema.csv")).read(
        "revlogs_benchmark_schema"
    )
    assert len(original) == 12_580
    for name in ("day", "rating", "elapsed_days", "elapsed", "elapsed_seconds", "duration_ms"):
        np.testing.assert_array_equal(getattr(original, name), getattr(converted, name), name)
    np.testing.assert_array_equal(pd.factorize(original.card)[0], converted.card)


@pytest.mark.slow
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None
)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "na", "007", "7", "ü,;\"'"]),
            st.integers(1, 4),
            st.integers(1, 10**9),
            st.integers(0, 60_000),
        ),
        min_size=1,
    ),
    st.sampled_from(["iso", "ms", "parquet"]),
    st.randoms(use_true_random=False),
)
def test_a_log_written_and_read_again_keeps_every_review(tmp_path, reviews, form, random):
    table = pd.DataFrame(reviews, columns=["card", "rating", "gap", "took"])
    since = pd.to_timedelta(table["gap"].cumsum(), unit="ms")
    table["time"] = (pd.Timestamp(START) + since).dt.as_unit("ms")
    shuffled = random.sample(range(len(table)), len(table))
    stored = table.iloc[shuffled]
    path = tmp_path / ("log.parquet" if form == "parquet" else "log.csv")
    if form == "parquet":
        stored.to_parquet(path)
    else:
        written = {"iso": lambda time: time.isoformat(), "ms": lambda time: time.value // 10**6}
        stored.assign(time=stored["time"].map(written[form])).to_csv(path, index=False)
    got = read(path, Columns(duration_ms="took"))
    assert got.rating.tolist() == table["rating"].tolist()
    assert got.duration_ms.tolist() == table["took"].tolist()
    assert pd.factorize(got.card)[0].tolist() == pd.factorize(table["card"])[0].tolist()
    seconds = [int(moment.timestamp()) for moment in table["time"]]
    last = {}
    expected = []
    for card, second in zip(table["card"], seconds, strict=True):
        expected.append(second - last[card] if card in last else -1)
        last[card] = second
    assert got.elapsed_seconds.tolist() == expected


def test_rows_are_sorted_by_time_and_those_of_one_time_keep_their_order(log):
    path = log("card,rating,time\n1,1,2024-01-03\n2,2,2024-01-01\n3,3,2024-01-01\n")
    got = read(path)
    assert got.card.tolist() == [2, 3, 1]
    assert got.rating.tolist() == [2, 3, 1]
    assert got.day.tolist() == [0, 0, 2]


def test_recalled_reviews_become_good_and_forgotten_ones_again(log):
    for true, false in [("true", "FALSE"), ("1", "0"), ("1.0", "0.0")]:
        path = log(f"card,ok,day\n1,{true},0\n1,{false},1\n")
        assert read(path, {"recalled": "ok", "day": "day"}).rating.tolist() == [3, 1]
    path = log("card,ok,day\n1,yes,0\n1,,1\n1,1,2\n")
    (found,) = refusal(path, {"recalled": "ok", "day": "day"}).violations
    assert (found.kind, found.column, found.rows) == ("wrong_type", "ok", ("row 1", "row 2"))


def test_ratings_may_be_words_which_are_known_or_mapped(log):
    words = ["Again", "HARD", " good", "easy", "pass", "Fail"]
    words += ["correct", "wrong", "True", "false", "4", "2.0"]
    path = log("card,rating,day\n" + "".join(f"{n},{word},0\n" for n, word in enumerate(words)))
    assert read(path, DAYS).rating.tolist() == [1, 2, 3, 4, 3, 1, 3, 1, 3, 1, 4, 2]
    path = log("card,rating,day\n1,gut,0\n2,Schlecht,0\n3,gut,1\n")
    error = refusal(path, DAYS)
    assert error.violations[0].rows == ("row 1", "row 2", "row 3")
    assert "data.ratings={gut: N, Schlecht: N}" in error.hint
    assert read(path, DAYS, ratings={"gut": 4, "schlecht": 2}).rating.tolist() == [4, 2, 4]
    (unmapped,) = refusal(path, DAYS, ratings={"gut": 4}).violations
    assert unmapped.rows == ("row 2",)


def test_a_mapping_replaces_the_meaning_of_numbers(log):
    ratings = {0: 1, 3: 2, 5: 4}
    path = log("card,grade,day\n1,0,0\n2,3,0\n3,5,1\n4,,1\n")
    (empty,) = refusal(path, Columns(rating="grade", day="day"), ratings=ratings).violations
    assert (empty.kind, empty.rows) == ("missing", ("row 4",))
    path = log("card,grade,day\n1,0,0\n2,3,0\n3,5,1\n")
    for columns in (Columns(rating="grade", day="day"), Columns(recalled="grade", day="day")):
        assert read(path, columns, ratings=ratings).rating.tolist() == [1, 2, 4]


def test_wrong_columns_are_found_before_any_user_is_read(log):
    path = log("who,card,rating,day\nben,1,3,0\nann,1,3,0\n")
    with pytest.raises(ReviewLogError) as caught:
        ReviewTable(path, Columns(card="crad", rating="grade", day="day", user="hwo")).users()
    assert len(caught.value.violations) == 3
    folder = log("card,rating,day\n1,3,0\n", "logs/ben.csv").parent
    log("item,rating,day\n1,3,0\n", "logs/ann.csv")
    assert len(ReviewTable(folder, DAYS).users()) == 2  # one of the files has the columns
    with pytest.raises(ReviewLogError, match=r"ann\.csv"):
        ReviewTable(folder, Columns(card="crad", day="day")).users()


def test_offsets_of_times_are_read_and_the_zone_of_days_is_reported(log):
    # 23:30 in Berlin is 22:30 in UTC; days begin at 4 in both zones.
    path = log(
        "card,rating,time\n1,3,2024-01-01T04:30+01:00\n2,3,2024-01-01T23:30+01:00\n"
        "1,3,2024-01-02T03:30Z\n"
    )
    assert read(path).day.tolist() == [0, 1, 1]
    assert read(path, time_zone="Europe/Berlin").day.tolist() == [0, 0, 1]
    (remark,) = ReviewTable(path, time_zone="Europe/Berlin", day_start_hour=4.5).remarks()
    assert "04:30" in remark
    assert "Europe/Berlin" in remark
    assert ReviewTable(log("card,rating,day\n1,3,0\n"), DAYS).remarks() == ()


def test_intervals_may_be_empty_at_first_reviews_only(log):
    columns = Columns(day="day", elapsed_days="gap", elapsed_seconds="seconds")
    got = read(log("card,rating,day,gap,seconds\n1,3,0,,\n2,3,0,-1,-1\n1,3,2,2,172000\n"), columns)
    assert got.elapsed_days.tolist() == [-1, -1, 2]
    assert got.elapsed_seconds.tolist() == [-1, -1, 172_000]


def test_a_file_can_hold_several_users(log):
    path = log("who,card,rating,day\nben,1,3,0\n7,1,4,0\nben,1,1,2\n")
    source = ReviewTable(path, Columns(day="day", user="who"))
    assert source.users() == ("ben", 7)
    assert source.read("ben").day.tolist() == [0, 2]
    assert source.read(7).rating.tolist() == [4]
    assert ReviewTable(path, source.columns, users="7").users() == (7,)
    with pytest.raises(ReviewLogError):
        source.read("anna")


@pytest.mark.parametrize("name", ["user", "user_id", "User ID", "userId"])
def test_a_column_of_users_is_named_or_the_file_is_refused(log, name):
    path = log(f"{name},card,rating,day\nben,1,3,0\nann,1,4,0\n")
    (unnamed,) = refusal(path, DAYS).violations
    assert (unnamed.kind, unnamed.column) == ("unknown", name)
    assert ReviewTable(path, Columns(day="day", user=name)).users() == ("ben", "ann")
    folder = log("user,card,rating,day\n1,1,3,0\n", "logs/ben.csv").parent
    log("user,card,rating,day\n1,1,3,0\n", "logs/ann.csv")
    assert ReviewTable(folder, DAYS).users() == ("ann", "ben")


def test_a_folder_or_pattern_holds_one_file_per_user(log):
    folder = log("card,rating,day\n1,3,0\n", "logs/ben.csv").parent
    log("card,rating,day\n1,4,0\n", "logs/8.csv")
    log("", "logs/.hidden.csv")
    log("", "logs/readme.txt")
    for path in (folder, folder / "*.csv"):
        source = ReviewTable(path, DAYS)
        assert source.users() == ("8", "ben")
        assert source.read("ben").rating.tolist() == [3]
        assert ReviewTable(path, DAYS, users=[8]).users() == ("8",)
        assert source.location == str(path)
    assert ReviewTable(folder).name == "logs"


def test_folders_without_usable_files_are_refused(tmp_path, log):
    for path in (tmp_path, tmp_path / "*.csv", tmp_path / "log.csv"):
        with pytest.raises(ReviewLogError):
            ReviewTable(path).users()
    log("x\n", "a.csv")
    log("x\n", "a.tsv")
    with pytest.raises(ReviewLogError, match="both of user a"):
        ReviewTable(tmp_path).users()
    with pytest.raises(ReviewLogError, match=r"one user's, and data.columns.user at once"):
        ReviewTable(tmp_path, Columns(user="who")).users()


def test_duplicates_can_be_dropped_and_counted(log):
    path = log("card,rating,time\n1,3,2024-01-02\n1,4,2024-01-01\n1,1,2024-01-02T00:00Z\n")
    assert refusal(path).violations[0].rows == ("row 3",)
    got = read(path, duplicates="drop")
    assert got.rating.tolist() == [4, 3]
    assert got.left_out == {"card and time of an earlier row": 1}


def test_durations_may_be_missing_altogether(log):
    columns = Columns(day="day", duration_ms="took")
    assert read(log("card,rating,day,took\n1,3,0,\n"), columns).duration_ms is None


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA])
def test_a_mapping_of_ratings_is_advised_only_where_there_are_values_to_map(missing):
    assert "data.ratings" not in read_ratings(pd.Series([3, missing, 1])).hint
    for values in ([3, 7], [3, 7, missing]):
        assert "data.ratings={3: N, 7: N}" in read_ratings(pd.Series(values)).hint


def test_the_same_file_is_parsed_again_after_it_changed(log):
    path = log("card,rating,day\n1,3,0\n")
    assert len(read(path, DAYS)) == 1
    log("card,rating,day\n1,3,0\n1,3,1\n")
    assert len(read(path, DAYS)) == 2


def test_names_of_cards_that_have_lost_digits_are_refused():
    names = read_names(pd.Series([-(2.0**53), -(2.0**53) + 1, 2.0**53 - 1, 2.0**53, 0.5]))
    assert names.bad.tolist() == [True, False, False, True, True]
