"""What work takes of the processor, without what happens beside it."""

import time
from collections.abc import Callable


def least_cpu_s(work: Callable[[], object], rounds: int = 3) -> float:
    """The least of several rounds, in seconds of this thread.

    A collection of garbage in one of them, which may take longer than the work, does not
    count.
    """
    return min(_cpu_s(work) for _ in range(rounds))


def _cpu_s(work: Callable[[], object]) -> float:
    before_s = time.thread_time()
    work()
    return time.thread_time() - before_s
