"""Any single call to the explorer fails in a check: later checks end as if it had not.

The calls are enumerated, not chosen. The explorer counts them as they arrive, so that it does not
matter who asks in which order; and each world is compared with one that nothing disturbed.
"""

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.fake_esplora import Reply, dropped, say
from tests.support.scenes import (
    NOISE,
    NOTICED,
    SCENES,
    Rows,
    assert_nothing_else,
    assert_sound,
    differences,
    open_scene,
    state,
)

pytestmark = pytest.mark.both_databases

TIP = "/blocks/tip/hash"
# No check waits for long here: more than two at once would only contend for the interpreter.
WORKERS = 2
# A payment that an explorer seemed to take back and to show again leaves these traces.
SEEN = {"seen", "vanished", "seen again", "moved"}
SEEN |= {"invoice.payment_seen", "invoice.payment_vanished"}


def empty(truth):
    """Nothing where there was something: a list without entries, or no text."""
    return say("[]" if truth[:1] in (b"[", b"{") else "")


def half(truth):
    """Promises all of it."""
    promised = {"Content-Length": str(len(truth)), "Connection": "close"}
    return say(truth[: len(truth) // 2], 200, **promised)


Answer = Callable[[bytes], Reply]
NO_ANSWER: dict[str, Answer] = {
    "HTTP 500": lambda _: say("oops", 500),
    "a dropped connection": lambda _: dropped,
    "HTTP 429": lambda _: say("too many requests", 429),
    "half an answer": half,
}
WRONG_ANSWER: dict[str, Answer] = {
    "garbage": lambda _: say("<html>we are moving</html>"),
    "an empty answer": empty,
}
# These are no failures to answer but answers, which a check may believe for the moment.
LIES = ("an empty answer", "a stale tip")
STALE = 10  # blocks: more than any explorer may be behind


def faults_for(scene, calls):
    """For each call its number, what goes wrong, and the answer."""
    stale = scene.till.sandbox.chain.ledger.hashes[-1 - STALE]
    for number, path in enumerate(calls, 1):
        yield from (
            (number, kind, answer)
            for kind, answer in (NO_ANSWER | WRONG_ANSWER).items()
        )
        if path == TIP:
            yield number, "a stale tip", lambda _: say(stale)


@pytest.fixture(params=SCENES, ids=lambda prepare: prepare.__name__.replace("_", " "))
def scene(request, tmp_path, ticker, clock, caplog):
    # each fault is a line in the log, and there are hundreds
    caplog.set_level(logging.CRITICAL)
    with open_scene(request.param, tmp_path, ticker, clock) as opened:
        yield opened


def check_until_settled(world):
    """Clean checks: the second looks again for what waits, and the third ends what it misses.

    They take half an hour, so that a block's payments still have a price. Payers look at their
    pages: what an empty answer has taken away is not looked for otherwise until it is in a block.
    """
    for minutes in (14, 14, 1):
        world.till.clock.move(minutes=minutes)
        rows = state(world.url)["invoice"]
        world.till.open_page(*(row for row in rows if row["status"] == "open"))
        run = world.till.check()
        assert run.complete, run.failed
    return state(world.url, NOISE | NOTICED)


class Trial:
    """The check of a scene: once undisturbed, then with one fault after another."""

    def __init__(self, scene):
        self.scene = scene
        self.before = state(scene.before)
        with scene.world() as world:
            assert world.till.check().complete
            self.calls = list(scene.relay.calls(world.name))
            assert state(world.url) != self.before
            self.end = check_until_settled(world)
        self._ends: dict[str, Rows] = {}

    def disturb(self, what, fault, is_met):
        """One check with this fault, then clean ones; what is wrong is told with `what` failed."""
        __tracebackhide__ = True
        with self.scene.world(fault) as world:
            try:
                world.till.check()
                assert is_met(self.scene.relay.calls(world.name)), (
                    "the fault was never met"
                )
                assert_sound(world.url)
                assert_nothing_else(state(world.url), self.before, self.end)
                self.scene.heal(world)
                end = self._end_of(world)
                missing = differences(_told(end, what), _told(self.end, what))
                assert not missing, "\n".join(missing)
            except AssertionError as error:
                raise AssertionError(f"after {what}: {error}") from error

    def _end_of(self, world):
        """From equal states the same checks go on: each is taken to its end once."""
        reached = repr(
            state(world.url, NOISE - {"checked_ms", "failures", "failed_ms"})
        )
        if reached not in self._ends:
            self._ends[reached] = check_until_settled(world)
            assert_sound(world.url)
        return self._ends[reached]


def _told(rows, what):
    """The state that has to be the same; after a lie, without how often money was seen.

    Money that waits vanishes by an empty answer, and is seen again.
    """
    if not what.startswith(LIES):
        return rows
    return rows | {
        table: [row for row in rows[table] if row["kind"] not in SEEN]
        for table in ("event", "public_event")
    }


def all_of(trials):
    """Runs all of them, some at once; the first that fails fails the test."""
    with ThreadPoolExecutor(WORKERS) as pool:
        for future in [pool.submit(trial) for trial in trials]:
            future.result()


def nth(number, answer):
    return lambda count, _path, truth: answer(truth) if count == number else None


def every(path, answer):
    return lambda _count, asked, truth: answer(truth) if asked == path else None


def test_after_any_single_call_has_failed_the_end_is_the_same(scene):
    trial = Trial(scene)
    assert {TIP, "raw"} <= {
        *trial.calls,
        *(path.rpartition("/")[2] for path in trial.calls),
    }
    all_of(
        [
            lambda number=number, kind=kind, answer=answer: trial.disturb(
                f"{kind} to call {number}, {trial.calls[number - 1]}",
                nth(number, answer),
                lambda calls: len(calls) >= number,
            )
            for number, kind, answer in faults_for(scene, trial.calls)
        ]
    )


def test_after_a_question_that_was_never_answered_the_end_is_the_same(scene):
    trial = Trial(scene)
    all_of(
        [
            lambda path=path: trial.disturb(
                f"HTTP 500 to every {path}",
                every(path, NO_ANSWER["HTTP 500"]),
                lambda calls: path in calls,
            )
            for path in sorted(set(trial.calls))
        ]
    )
