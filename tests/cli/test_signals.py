"""What a signal sets is set at any moment, also while the thread that it meets waits for it."""

import signal

import pytest

from btcpay.cli.context import Stop


@pytest.fixture
def every():
    before = signal.getsignal(signal.SIGALRM)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_a_signal_never_waits_for_the_thread_that_it_interrupts(every):
    stop = Stop(signal.SIGALRM)
    assert not stop.wait()
    every(0.0001)
    while not stop.wait(0.00001):
        pass
    assert all(stop.wait(30) for _ in range(2000))


def test_what_is_set_often_is_set():
    stop = Stop()
    for _ in range(100_000):
        stop.set()
    assert stop.wait(30)
