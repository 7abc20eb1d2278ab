"""The public protocol once more, in loops and dictionaries and nothing else.

It follows the published description step by step (docs/method.md), shares no line with the
package, and is far too slow to be of any other use.
"""

from collections import Counter, defaultdict


def rows_by_card(log):
    """Each review, with what was before it on its card; `review_th` counts all from 1."""
    by_card = defaultdict(list)
    columns = (log.card, log.rating, log.elapsed_days)
    values = zip(*(column.tolist() for column in columns), strict=True)
    for review_th, (card, rating, elapsed) in enumerate(values, 1):
        past = by_card[card]
        row = {"review_th": review_th, "rating": rating, "elapsed": elapsed}
        row["last"] = past[-1]["rating"] if past else 0
        row["recalls"] = sum(each["rating"] > 1 for each in past)
        past.append(row)
    return [rows[:128] for rows in by_card.values()]


def in_time(rows):
    return sorted(rows, key=lambda row: row["review_th"])


def outlier_intervals(intervals, first_rating):
    """Intervals that go, of the second rows of the cards with one first rating."""
    sizes = Counter(intervals)
    n = len(intervals)
    removed, gone = 0, set()
    for interval in sorted(sizes, key=lambda interval: (sizes[interval], -interval)):
        c = sizes[interval]
        if removed + c < max(0.05 * n, 20):
            gone.add(interval)
            removed += c
            continue
        limit = 365 if first_rating == 4 else 100
        if c < 6 or interval > limit:
            gone.add(interval)
            removed += c
    return gone


def scored_rows(log, *, short):
    """Rows the protocol scores in time order, each with what metrics and models are told of it."""
    targets, second = [], defaultdict(list)
    for rows in rows_by_card(log):
        if not short:
            rows = [row for row in rows if row["elapsed"] != 0]
        history, lapses, i = [], 0, 1
        for row in rows:
            interval = max(0, row["elapsed"])
            i += interval > 0
            row |= {"interval": interval, "history": list(history), "lapses": lapses, "i": i}
            row["first_rating"] = rows[0]["rating"]
            history.append((interval, row["rating"]))
            lapses += row["rating"] == 1 and interval != 0
            if interval > 0 and i == 2:
                second[row["first_rating"]].append(interval)
        targets.append([row for row in rows if row["interval"] > 0])
    gone = {rating: outlier_intervals(intervals, rating) for rating, intervals in second.items()}
    return in_time(
        row
        for rows in targets
        for row in rows
        if rows[0]["interval"] not in gone[rows[0]["first_rating"]]
    )


def timed_rows(log, *, answer_time):
    """Rows that are scored in fractional days, as by `scored_rows`.

    Without `answer_time`, an interval ends, a second or more later, when the card is asked for.
    """
    scored = []
    for rows in rows_by_card(log):
        history, lapses, i = [], 0, 1
        for row in rows:
            nth = row["review_th"] - 1
            seconds, took = log.elapsed_seconds[nth].item(), log.duration_ms[nth].item()
            asked = seconds if answer_time else max(1, round(seconds - took / 1000))
            interval = asked / 86400 if seconds > 0 else 0
            i += row["elapsed"] > 0
            row |= {"interval": interval, "history": list(history), "lapses": lapses, "i": i}
            history.append((interval, row["rating"]))
            lapses += row["rating"] == 1
            scored += [row] if interval > 0 else []
    return in_time(scored)


def equalised_folds(log, *, answer_time):
    """Pairs of training and test rows: tested as in whole days, with all that came before."""
    timed = {row["review_th"]: row for row in timed_rows(log, answer_time=answer_time)}
    for _, test in folds(scored_rows(log, short=True)):
        begin = test[0]["review_th"]
        train = [row for row in timed.values() if row["review_th"] < begin]
        yield train, [timed[row["review_th"]] | {"lapses": row["lapses"]} for row in test]


def folds(rows):
    """Pairs of training and test rows."""
    n, m = len(rows), len(rows) // 6
    for k in range(5):
        begin = n - 5 * m + k * m
        yield rows[:begin], rows[begin : begin + m]


def assert_same(task, folds):
    """Compare a task with the folds that loops made of the same log."""
    reviews = task.reviews
    # Nothing finer than the clock is handed over, and no gaps where reviews were left out.
    assert reviews.elapsed_seconds is None
    assert reviews.row.tolist() == list(range(len(reviews)))
    columns = {"review_th": task.log_row + 1, "i": task.nth_review, "last": task.last_rating}
    columns |= {"elapsed": reviews.elapsed_days, "interval": reviews.elapsed}
    columns |= {"recalls": task.recalls}
    histories = {}
    for fold, (train, test) in zip(task.folds, folds, strict=True):
        for rows, expected in ((fold.train, train), (fold.test, test)):
            for name, column in columns.items():
                assert column[rows].tolist() == [row[name] for row in expected], name
            histories |= {row["review_th"] - 1: row["history"] for row in expected}
        assert task.lapses[fold.test].tolist() == [row["lapses"] for row in test]
    earlier = defaultdict(list)
    of_reviews = (task.log_row, reviews.card, reviews.elapsed, reviews.rating)
    for row, card, elapsed, rating in zip(*(c.tolist() for c in of_reviews), strict=True):
        assert earlier[card] == histories.pop(row, earlier[card])
        earlier[card].append((elapsed, rating))
    assert not histories
