"""What work takes of the processor, without what happens beside it."""

import time
from collections.abc import Callable


def takes_less_than(most_s: float, work: Callable[[], object]) -> bool:
    """True if one of at most three rounds takes fewer seconds of this thread.

    A collection of garbage in one of them, which may take longer than the work, does not
    count.
    """
    return any(_cpu_s(work) < most_s for _ in range(3))


def _cpu_s(work: Callable[[], object]) -> float:
    before_s = time.thread_time()
    work()
    return time.thread_time() - before_s
