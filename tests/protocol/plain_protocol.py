"""The public protocol once more, in loops and dictionaries and nothing else.

It follows the published description step by step (docs/method.md), shares no line with the
package, and is far too slow to be of any other use.
"""

from collections import Counter, defaultdict


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
    """Rows the protocol scores, each with what metrics and models are told about it.

    Returns dictionaries with `review_th` (from 1), `i`, `lapses` and the `history` of
    (interval, grade) pairs, in time order.
    """
    by_card = defaultdict(list)
    columns = (log.card, log.rating, log.elapsed_days)
    values = zip(*(column.tolist() for column in columns), strict=True)
    for review_th, (card, rating, elapsed_days) in enumerate(values, 1):
        last = by_card[card][-1]["rating"] if by_card[card] else 0
        row = {"review_th": review_th, "rating": rating, "elapsed": elapsed_days, "last": last}
        row["recalls"] = sum(past["rating"] > 1 for past in by_card[card])
        by_card[card].append(row)
    targets = {}
    for card, rows in by_card.items():
        rows = [row for row in rows if row["rating"] in (1, 2, 3, 4)][:128]
        if not short:
            rows = [row for row in rows if row["elapsed"] != 0]
        history, lapses = [], 0
        for row in rows:
            interval = max(0, row["elapsed"])
            row |= {"interval": interval, "history": list(history), "lapses": lapses}
            history.append((interval, row["rating"]))
            lapses += row["rating"] == 1 and str(interval) != "0"
        first_rating = rows[0]["rating"]
        rows = [row for row in rows if row["interval"] != 0 or row["elapsed"] == -1]
        i = 1
        for row in rows:
            i += row["elapsed"] > 0
            row |= {"i": i, "first_rating": first_rating, "card": card}
        targets[card] = rows
    return _without_outliers(targets)


def timed_rows(log, *, answer_time):
    """Rows that are scored on the clock of fractional days, told about as by `scored_rows`.

    With `answer_time`, this is the published description; without, each interval ends when
    the card is asked for, to the second, and is not shorter than one.
    """
    by_card, rows = defaultdict(list), []
    columns = (log.card, log.rating, log.elapsed_days, log.elapsed_seconds, log.duration_ms)
    values = zip(*(column.tolist() for column in columns), strict=True)
    for review_th, (card, rating, elapsed_days, seconds, took) in enumerate(values, 1):
        earlier = by_card[card]
        if rating not in (1, 2, 3, 4) or len(earlier) == 128:
            continue
        asked = seconds if answer_time else max(1, round(seconds - took / 1000))
        row = {
            "review_th": review_th,
            "rating": rating,
            "last": earlier[-1]["rating"] if earlier else 0,
            "recalls": sum(past["rating"] > 1 for past in earlier),
            "elapsed": elapsed_days,
            "interval": asked / 86400 if seconds > 0 else 0,
            "history": [(past["interval"], past["rating"]) for past in earlier],
            "lapses": sum(past["rating"] == 1 for past in earlier),
            "i": 1 + sum(past["elapsed"] > 0 for past in earlier) + (elapsed_days > 0),
        }
        earlier.append(row)
        rows += [row] if row["interval"] > 0 else []
    return rows


def equalised_folds(log, *, answer_time):
    """Pairs of training and test rows: tested as in whole days, with all that came before."""
    timed = {row["review_th"]: row for row in timed_rows(log, answer_time=answer_time)}
    for _, test in folds(scored_rows(log, short=True)):
        begin = test[0]["review_th"]
        train = [row for row in timed.values() if row["review_th"] < begin]
        yield train, [timed[row["review_th"]] | {"lapses": row["lapses"]} for row in test]


def _without_outliers(targets):
    second = defaultdict(list)
    for rows in targets.values():
        for row in rows:
            if row["i"] == 2:
                second[row["first_rating"]].append(row["interval"])
    gone = {rating: outlier_intervals(found, rating) for rating, found in second.items()}
    kept = []
    for rows in targets.values():
        expected = 1
        for row in rows:
            if row["i"] == 2 and row["interval"] in gone[row["first_rating"]]:
                continue
            if row["i"] != expected:
                break
            expected += 1
            kept.append(row)
    kept = [row for row in kept if row["interval"] > 0]
    return sorted(kept, key=lambda row: row["review_th"])


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
        for found, expected in ((fold.train, train), (fold.test, test)):
            for name, column in columns.items():
                assert column[found].tolist() == [row[name] for row in expected], name
            histories |= {row["review_th"] - 1: row["history"] for row in expected}
        assert task.lapses[fold.test].tolist() == [row["lapses"] for row in test]
    earlier = defaultdict(list)
    of_reviews = (task.log_row, reviews.card, reviews.elapsed, reviews.rating)
    for row, card, elapsed, rating in zip(*(c.tolist() for c in of_reviews), strict=True):
        assert earlier[card] == histories.pop(row, earlier[card])
        earlier[card].append((elapsed, rating))
    assert not histories
