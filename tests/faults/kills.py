"""Commands that are killed or stopped at any moment: repeated, they end as undisturbed ones."""

import signal
import time

from judging import Found
from sessions import (
    NO_STORE,
    Command,
    assert_one_run_each,
    assert_same,
    jobs,
    run,
    store_of,
    to,
    undisturbed,
)
from test_kills import WORDS

LONGEST = 15  # seconds until a command is killed


def killed(random, folder):
    """Kill a run, a sweep or a search up to three times, and repeat it to its end."""
    plain = WORDS[random.choice(("serial", "processes", "sweep", "search"))]
    words = (*plain, *to("out", plain), *random.choice(((), (NO_STORE,))))
    try:
        for _ in range(random.randint(1, 3)):
            command = Command(folder, *words, seconds=random.choice((0, 0.1)))
            until = time.time() + random.uniform(0, LONGEST)
            while command.poll() is None and time.time() < until:
                time.sleep(0.01)
            if random.random() < 0.5:
                command.kill(random.choice(("group", "parent")))
            elif command.poll() is None:
                command.stop(random.choice((signal.SIGINT, signal.SIGTERM)))
            command.gone()
        run(folder, *words)
        assert_same(folder / "out", undisturbed(*plain))
        if NO_STORE not in words:
            assert_one_run_each(store_of(folder), len(jobs(folder / "out")))
    except AssertionError as error:
        raise Found("lost", str(error)) from error
    return "recorded"
