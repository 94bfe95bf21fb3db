"""At whatever moment a process dies: the next one ends as if it had not.

The processes are real and so is their death, by SIGKILL. As a script this file is what they come
from (see forge.py); the explorer lives with the tests.
"""

import contextlib
import itertools
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest

from app import create_app
from btcpay.settings import settings
from tests.support.builders import Clock
from tests.support.databases import raw
from tests.support.dying import die_before
from tests.support.fake_esplora import Terminal
from tests.support.forge import Forge, fork_for_each_order, load_commands, program
from tests.support.scenes import (
    NOISE,
    NOTICED,
    SCENES,
    Rows,
    Scene,
    World,
    assert_nothing_else,
    assert_sound,
    differences,
    open_scene,
    state,
)

pytestmark = pytest.mark.both_databases

CREATED = 2  # the first digit of 201
PROCESSES = 2  # that die at the same time, each in a world of its own


def live(order):
    """Does what is ordered, until it is killed."""
    signal.alarm(60)  # one that hangs fails the test and does not hold it up
    die_before(order.get("moment"))
    if order["words"][0] == "POST":
        sys.exit(_post(*order["words"][1:]))
    program(order)


def _post(path, key, at, body):
    """Writes the answer to standard output; the exit status is the HTTP status's first digit."""
    clock = Clock()
    clock.at = datetime.fromisoformat(at)
    app = create_app(settings.read(os.environ), clock)
    headers = {"Authorization": f"Bearer {key}", "Idempotency-Key": "order 1"}
    answer = app.test_client().post(
        path, data=body, headers=headers, content_type="application/json"
    )
    os.write(1, answer.data)
    return answer.status_code // 100


@pytest.fixture(scope="module")
def forges():
    with contextlib.ExitStack() as stack:
        made = [Forge(__file__) for _ in range(PROCESSES)]
        for forge in made:
            stack.callback(forge.close)
        yield made


@dataclass
class Deaths:
    """One process after another, each killed one commit later, until one survives."""

    scene: Scene
    after_death: Callable[[Forge, World], None]
    after_life: Callable[[Forge, World], None]
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _over: threading.Event = field(default_factory=threading.Event)

    def all(self, forges, words, status=0):
        """The number of deaths; `status` is the exit status of the process that survives."""
        with ThreadPoolExecutor(len(forges)) as pool:
            each = [pool.submit(self._go_on, forge, words, status) for forge in forges]
            return sum(future.result() for future in each)

    def _go_on(self, forge, words, status):
        deaths = 0
        try:
            while not self._over.is_set():
                deaths += self._dies(forge, words, next(self._numbers), status)
        finally:
            self._over.set()
        return deaths

    def _dies(self, forge, words, number, status):
        with self.scene.world() as world:
            ended = forge.run(world.environ, words, moment=number)
            try:
                if ended.status == -signal.SIGKILL:
                    self.after_death(forge, world)
                    return True
                self._over.set()
                assert ended.status == status
                self.after_life(forge, world)
                return False
            except AssertionError as error:
                raise AssertionError(
                    f"moment {number}, {ended.errors}: {error}"
                ) from error


def settled(world):
    """The end of a world, but for the moments at which something was noticed."""
    return state(world.url, NOISE | NOTICED)


def pass_a_minute(url):
    """For what the dead process was sending: so long nobody else sends it."""
    with raw(url) as connection:
        connection.execute("UPDATE delivery SET held_until = held_until - 60000")


class Trial:
    """A command that dies, and is given again: it ends as where it was given once."""

    def __init__(self, scene, forge, words, times=1):
        self.words = words
        self._times = times
        self._before = state(scene.before)
        self._ends: dict[str, Rows] = {}
        with scene.world() as world:
            assert forge.run(world.environ, words).status == 0
            assert state(world.url) != self._before
            self._again(forge, world, times - 1)
            self._end = settled(world)
        self.deaths = Deaths(scene, self.after_death, self.after_life)

    def after_death(self, forge, world):
        """The dead process has left nothing half done, and its successor does the rest."""
        assert_sound(world.url)
        assert_nothing_else(state(world.url), self._before, self._end)
        # Many deaths leave the same: each state is taken to its end once.
        reached = repr(state(world.url, NOISE | NOTICED))
        if reached not in self._ends:
            self._again(forge, world, self._times)
            assert_sound(world.url)
            self._ends[reached] = settled(world)
        assert differences(self._ends[reached], self._end) == []

    def after_life(self, forge, world):
        self._again(forge, world, self._times - 1)
        assert differences(settled(world), self._end) == []

    def _again(self, forge, world, times):
        for _ in range(times):
            pass_a_minute(world.url)
            ended = forge.run(world.environ, self.words)
            # for the server, the dead one is
            while "another check is running" in ended.output:
                ended = forge.run(world.environ, self.words)
            # A command that was given and done before says so.
            done = any(
                refusal in ended.errors for refusal in ("already", "only an open one")
            )
            assert ended.status == 0 or done, ended.errors


def notified(till):
    """Events wait for a command, and the check makes more of them."""
    Terminal(till).run("webhook", "add", "shop", "--exec", "true")
    till.clock.move(hours=2)
    till.pay(till.shop.invoice())
    till.mine()


@pytest.mark.parametrize(
    "prepare",
    [*SCENES, notified],
    ids=lambda prepare: prepare.__name__.replace("_", " "),
)
def test_a_check_killed_at_any_moment_is_finished_by_the_next(
    prepare, tmp_path, ticker, clock, forges
):
    with open_scene(prepare, tmp_path, ticker, clock) as scene:
        # Two checks: the look that misses waiting money does not expire the invoice as well.
        trial = Trial(scene, forges[0], ["check"], times=2)
        assert trial.deaths.all(forges, trial.words) >= 7


def paid_too_late(till):
    """An expired invoice with money in two transactions, and one that is still open."""
    late = till.shop.invoice(25, expires_in_hours=1)
    till.clock.move(hours=2)
    till.shop.invoice(40)
    till.pay(late, 10_000), till.pay(late, late["amount_sats"] - 10_000)
    till.mine()
    assert till.check().new_statuses == {late["id"]: "expired"}


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("expired", ["invoice", "settle", "ID", "--reason", "good enough"]),
        ("open", ["invoice", "cancel", "ID"]),
    ],
    ids=["invoice settle", "invoice cancel"],
)
def test_an_owners_command_killed_at_any_moment_is_done_by_giving_it_again(
    status, words, tmp_path, ticker, clock, forges
):
    with open_scene(paid_too_late, tmp_path, ticker, clock) as scene:
        (invoice,) = scene.till.shop.get(
            "/invoices", query_string={"status": status}
        ).json["data"]
        trial = Trial(
            scene, forges[0], [invoice["id"] if w == "ID" else w for w in words]
        )
        assert trial.deaths.all(forges, trial.words) >= 1


def test_an_order_killed_at_any_moment_makes_one_invoice_when_it_is_sent_again(
    tmp_path, ticker, clock, forges
):
    """With its Idempotency-Key: at once, and when the dead one's claim is over after a minute."""
    with open_scene(paid_too_late, tmp_path, ticker, clock) as scene:
        order = json.dumps({"amount_usd": 30, "description": "one"})

        def words(seconds):
            at = scene.till.clock() + timedelta(seconds=seconds)
            key = scene.till.shop.write_key
            return ["POST", "/api/v1/invoices", key, at.isoformat(), order]

        def again(forge, world):
            assert_sound(world.url)
            at_once = forge.run(world.environ, words(0))
            assert (
                at_once.status == CREATED or "still being processed" in at_once.output
            )
            later, replay = (forge.run(world.environ, words(60)) for _ in range(2))
            assert later.status == CREATED and replay.output == later.output
            assert at_once.status != CREATED or at_once.output == later.output
            rows = state(world.url)
            made = [row for row in rows["invoice"] if row["description"] == "one"]
            assert [row["id"] for row in made] == [json.loads(later.output)["id"]]
            assert [f"{row['response']}\n" for row in rows["idempotency_key"]] == [
                later.output
            ]
            # Every index was given to one invoice, and the last to this.
            assert sorted(row["address_index"] for row in rows["invoice"]) == [0, 1, 2]
            assert made[0]["address_index"] == 2
            assert [row["next_index"] for row in rows["merchant"]] == [3]

        assert Deaths(scene, again, again).all(forges, words(0), status=CREATED) >= 2


if __name__ == "__main__":
    load_commands()
    fork_for_each_order(live)
