import inspect
from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from omegaconf import MissingMandatoryValue

from srs_eval.data.table import ReviewTable
from srs_eval.data.table_options import Columns
from srs_eval.errors import ConfigError, ReviewLogError

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
    with pytest.raises(ReviewLogError) as caught:
        read(path, columns, **options)
    assert str(path) in str(caught.value)
    return str(caught.value)


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


@pytest.mark.parametrize("option", ["csv", "py_fsrs"])
def test_the_options_need_nothing_but_a_path(build_option, option):
    with pytest.raises(MissingMandatoryValue, match="path"):
        build_option(option)
    source = build_option(option, path="log.csv")
    assert isinstance(source, ReviewTable)


def test_the_csv_option_has_the_defaults_of_the_class(build_option):
    assert build_option("csv", path="log.csv") == ReviewTable("log.csv")
    names = set(inspect.signature(ReviewTable).parameters)
    assert names == {
        "path",
        "columns",
        "users",
        "sample",
        "first",
        "time_unit",
        "time_zone",
        "day_start_hour",
        "duplicates",
        "ratings",
        "invalid_times",
    }


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
    moments = START + np.cumsum([gap for _, _, gap, _ in reviews]) * timedelta(milliseconds=1)
    table = pd.DataFrame(
        {
            "card": [card for card, _, _, _ in reviews],
            "rating": [rating for _, rating, _, _ in reviews],
            "time": pd.DatetimeIndex(moments).as_unit("ms"),
            "took": [duration for _, _, _, duration in reviews],
        }
    )
    shuffled = list(range(len(table)))
    random.shuffle(shuffled)
    stored = table.iloc[shuffled]
    path = tmp_path / ("log.parquet" if form == "parquet" else "log.csv")
    if form == "parquet":
        stored.to_parquet(path)
    elif form == "iso":
        stored.assign(time=[moment.isoformat() for moment in stored["time"]]).to_csv(
            path, index=False
        )
    else:
        stored.assign(time=stored["time"].astype("int64")).to_csv(path, index=False)
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
    assert "ok: row 1 has 'yes', row 2 has nan; expected true or false" in refusal(
        path, {"recalled": "ok", "day": "day"}
    )


def test_ratings_may_be_words_which_are_known_or_mapped(log):
    words = ["Again", "HARD", " good", "easy", "pass", "Fail"]
    words += ["correct", "wrong", "True", "false", "4", "2.0"]
    path = log("card,rating,day\n" + "".join(f"{n},{word},0\n" for n, word in enumerate(words)))
    assert read(path, DAYS).rating.tolist() == [1, 2, 3, 4, 3, 1, 3, 1, 3, 1, 4, 2]
    path = log("card,rating,day\n1,gut,0\n2,Schlecht,0\n3,gut,1\n")
    with pytest.raises(ReviewLogError) as caught:
        read(path, DAYS)
    (violation,) = caught.value.violations
    assert "row 1 has 'gut', row 2 has 'Schlecht'" in violation
    assert "data.ratings={gut: N, Schlecht: N}" in caught.value.hint
    assert read(path, DAYS, ratings={"gut": 4, "schlecht": 2}).rating.tolist() == [4, 2, 4]
    with pytest.raises(ReviewLogError) as caught:
        read(path, DAYS, ratings={"gut": 4})
    assert "data.ratings" in caught.value.violations[0]
    with pytest.raises(ConfigError, match="gut: 5"):
        read(path, DAYS, ratings={"gut": 5})


def test_a_mapping_replaces_the_meaning_of_numbers(log):
    ratings = {0: 1, 3: 2, 5: 4}
    path = log("card,grade,day\n1,0,0\n2,3,0\n3,5,1\n4,,1\n")
    with pytest.raises(ReviewLogError) as caught:
        read(path, Columns(rating="grade", day="day"), ratings=ratings)
    assert caught.value.violations[0].startswith("grade: row 4 has nan;")
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
    path = log("card,rating,day,gap,seconds\n1,3,0,,\n1,3,2,,\n")
    assert "gap: row 2 has nan; expected a whole number" in refusal(path, columns)


def test_a_file_can_hold_several_users(log):
    path = log("who,card,rating,day\nben,1,3,0\n7,1,4,0\nben,1,1,2\n")
    source = ReviewTable(path, Columns(day="day", user="who"))
    assert source.users() == ("ben", 7)
    assert source.read("ben").day.tolist() == [0, 2]
    assert source.read(7).rating.tolist() == [4]
    assert ReviewTable(path, source.columns, users="7").users() == (7,)
    with pytest.raises(ReviewLogError, match="there is no user anna"):
        source.read("anna")


def test_rows_of_one_of_several_users_are_named_by_their_place_in_the_file(log):
    path = log("who,card,rating,day\nben,1,3,0\nanna,1,4,0\nben,1,9,2\n")
    source = ReviewTable(path, Columns(day="day", user="who"))
    with pytest.raises(ReviewLogError, match=r"log\.csv, user ben: rating: row 3 has 9"):
        source.read("ben")


@pytest.mark.parametrize("name", ["user", "user_id", "User ID", "userId"])
def test_a_column_of_users_is_named_or_the_file_is_refused(log, name):
    path = log(f"{name},card,rating,day\nben,1,3,0\nann,1,4,0\n")
    assert f"data.columns.user={name}" in refusal(path, DAYS)
    assert ReviewTable(path, Columns(day="day", user=name)).users() == ("ben", "ann")
    folder = log("user,card,rating,day\n1,1,3,0\n", "logs/ben.csv").parent
    log("user,card,rating,day\n1,1,3,0\n", "logs/ann.csv")
    assert ReviewTable(folder, DAYS).users() == ("ann", "ben")


def test_a_row_without_a_user_is_refused(log):
    path = log("who,card,rating,day\nben,1,3,0\n,1,4,0\n")
    assert "who: row 2 has nan; expected a user" in refusal(path, Columns(day="day", user="who"))


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
    with pytest.raises(ReviewLogError, match="there are no tables here"):
        ReviewTable(tmp_path).users()
    with pytest.raises(ReviewLogError, match="there are no tables here"):
        ReviewTable(tmp_path / "*.csv").users()
    log("x\n", "a.csv")
    log("x\n", "a.tsv")
    with pytest.raises(ReviewLogError, match="both of user a"):
        ReviewTable(tmp_path).users()
    with pytest.raises(ReviewLogError, match=r"one user's, and data.columns.user at once"):
        ReviewTable(tmp_path, Columns(user="who")).users()


def test_duplicates_are_refused_unless_they_are_to_be_dropped(log):
    path = log("card,rating,time\n1,3,2024-01-02\n1,4,2024-01-01\n1,1,2024-01-02T00:00Z\n")
    message = refusal(path)
    assert "row 3 has the card and time of an earlier row" in message
    assert "data.duplicates=drop" in message
    got = read(path, duplicates="drop")
    assert got.rating.tolist() == [4, 3]
    assert got.left_out == {"card and time of an earlier row": 1}


def test_everything_wrong_with_a_table_is_named_at_once_by_its_rows_in_the_file(log):
    path = log("c,grade,time\n1,3,2024-01-02\n1,9,2024-01-01\n,1,2024-01-01\n1,x,2024-01-02\n")
    message = refusal(path, {"card": "c", "rating": "grade"})
    assert "row 4 has the card and time" in message
    assert "c: row 3 has nan" in message
    assert "grade: row 2 has '9', row 4 has 'x'" in message
    path = log("card,rating,time\n1,9,soon\n")
    message = refusal(path)
    assert "time: row 1 has 'soon'; expected an ISO-8601 time" in message
    assert "rating: row 1 has 9" in message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("card,rating,day\n", "there are no reviews in it"),
        ("card,rating,day\n1,3,\n", "day: row 1 has nan"),
        ("card,rating,day\n1,5,0\n", "rating: row 1 has 5"),
        ("card,rating,day\n1,3,5\n1,3,4\n", "day: row 2 has 4"),
        ("card,grade,day\n1,5,0\n", "no column 'rating', needed for data.columns.rating"),
    ],
)
def test_bad_tables_are_refused(log, text, expected):
    assert expected in refusal(log(text), DAYS)


def test_a_header_without_rows_is_refused_with_times_too(log):
    assert "there are no reviews in it" in refusal(log("card,rating,time\n"))


def test_one_row_is_a_log(log):
    assert len(read(log("card,rating,time\n1,3,1711744352\n"))) == 1


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(ReviewLogError, match="no such file"):
        ReviewTable(tmp_path / "log.csv").users()


def test_durations_may_be_missing_altogether_but_not_here_and_there(log):
    columns = Columns(day="day", duration_ms="took")
    assert read(log("card,rating,day,took\n1,3,0,\n"), columns).duration_ms is None
    path = log("card,rating,day,took\n1,3,0,\n1,3,0,4\n")
    assert "took: row 1 has nan" in refusal(path, columns)


def test_wrong_options_are_all_named_at_once():
    with pytest.raises(ConfigError) as caught:
        ReviewTable(
            "log.csv", time_unit="h", time_zone="Europe/Wien", day_start_hour=24, duplicates="no"
        )
    for expected in ("time_unit=h", "duplicates=no", "day_start_hour=24", "time_zone=Europe/Wien"):
        assert expected in str(caught.value)
    with pytest.raises(ConfigError, match=r"data.columns has no grade; there are card"):
        ReviewTable("log.csv", {"grade": "grade"})
    with pytest.raises(ConfigError, match=r"go with data.columns.day"):
        Columns(elapsed_days="gap")
    with pytest.raises(ConfigError, match=r"needs data.columns.card, and .*time or data.*day"):
        ReviewTable("log.csv", {"card": None, "time": None})


def test_the_same_file_is_parsed_again_after_it_changed(log):
    path = log("card,rating,day\n1,3,0\n")
    assert len(read(path, DAYS)) == 1
    log("card,rating,day\n1,3,0\n1,3,1\n")
    assert len(read(path, DAYS)) == 2
