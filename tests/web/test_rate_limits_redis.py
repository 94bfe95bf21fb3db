"""Windows in a real Redis: shared exactly by processes, and what happens while it is away."""

import logging
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from redis import Redis

from btcpay.web import rate_limits_redis
from btcpay.web.rate_limits import READS, WRITES, Limiter, link_invoices
from btcpay.web.rate_limits_redis import ANSWER_TIMEOUT_S, PAUSE_S
from btcpay.web.rate_windows import Bucket
from tests.support.builders import Live, Seconds, clean_environ, until
from tests.support.forge import forge
from tests.support.paths import PROJECT
from tests.support.redis_server import RedisServer, needs_redis

pytestmark = pytest.mark.slow

NOBODY = "sk_test_" + "0" * 43


@pytest.fixture
def redis(tmp_path):
    with RedisServer(tmp_path) as server:
        yield server


@pytest.fixture
def seconds():
    return Seconds()


@pytest.fixture
def patient(monkeypatch):
    """Where Redis answers, it may take its time: the machine may stand still."""
    monkeypatch.setattr(rate_limits_redis, "ANSWER_TIMEOUT_S", 60)


@pytest.fixture
def limiter(redis, seconds, patient):
    return Limiter(redis.url, time.time, seconds)


@pytest.fixture
def hasty_limiter(redis, seconds):
    """Waits as long as the product does. A test with it must not need that Redis answers."""
    return Limiter(redis.url, time.time, seconds)


def messages(caplog):
    return [
        record.getMessage()
        for record in caplog.records
        if "RATE_LIMIT" in record.getMessage()
    ]


@needs_redis
def test_two_limiters_on_one_redis_count_together(redis, patient):
    one, other = (Limiter(redis.url, time.time) for _ in range(2))
    remaining = [limiter.hit(WRITES, "key").remaining for limiter in (one, other) * 15]
    assert remaining == list(range(29, -1, -1))
    assert not one.hit(WRITES, "key").allowed and not other.hit(WRITES, "key").allowed
    assert one.hit(WRITES, "another key").remaining == 29


@needs_redis
def test_a_request_fits_again_when_the_oldest_has_left_and_not_before(limiter):
    brief = Bucket("brief", 2, period_s=15)
    before_s = time.time()
    windows = [limiter.hit(brief, "key")]
    assert (
        before_s + 14.99 < windows[0].exact_reset_s <= time.time() + 15
    )  # Lua keeps 14 digits
    time.sleep(0.3)
    assert {limiter.peek(brief, "key").remaining for _ in range(4)} == {
        1
    }  # which counts nothing
    windows += [limiter.hit(brief, "key"), limiter.hit(brief, "key")]
    assert [window.allowed for window in windows] == [True, True, False]
    until(
        lambda: windows.append(limiter.hit(brief, "key")) or windows[-1].allowed,
        "its end",
    )
    assert time.time() >= windows[0].exact_reset_s == windows[-2].exact_reset_s
    # Or the second has left too, if the machine has stood still meanwhile.
    assert (
        windows[-1].remaining == 0
        or time.time() > windows[-1].exact_reset_s - 15 + 0.29
    )
    assert windows[-1].exact_reset_s > windows[0].exact_reset_s + 0.29


@needs_redis
def test_hits_of_one_mark_are_one_in_redis_too(limiter, redis):
    hits = [
        limiter.hit(link_invoices(2), "key", mark=mark)
        for mark in ("a", "a", "b", "a", "c")
    ]
    assert [hit.remaining for hit in hits] == [1, 1, 0, 0, 0]
    assert [hit.allowed for hit in hits] == [True] * 4 + [False]
    with Redis.from_url(redis.url) as store:
        assert all(0 < store.ttl(key) <= 3601 for key in store.scan_iter())


@needs_redis
def test_a_limit_that_was_lowered_leaves_nothing(limiter):
    for _ in range(5):
        limiter.hit(link_invoices(5), "key")
    assert limiter.peek(link_invoices(3), "key")[:2] == (3, 0)
    assert limiter.hit(link_invoices(3), "key")[:2] == (3, 0)


@needs_redis
def test_a_window_that_has_ended_leaves_redis(redis, limiter):
    limiter.hit(Bucket("brief", 2, period_s=100), "key")
    with Redis.from_url(redis.url) as store:
        (key,) = store.keys()
        assert key == b"blocktill:brief:key" and 0 < store.ttl(key) <= 101


@needs_redis
def test_two_workers_share_each_window_exactly(redis, shop, tmp_path):
    """The windows are of a minute, and a worker waits a quarter of a second for Redis: a machine
    that stands still for longer shows nothing, so it is asked again.
    """
    two = {"GUNICORN_CMD_ARGS": "--workers 2", "BLOCKTILL_RATE_LIMIT_STORE": redis.url}
    with Live(shop, tmp_path, **two) as live, ThreadPoolExecutor(16) as pool:
        until(lambda: live.log().count("Booting worker") == 2, "the second worker")

        def write(_):
            return live.ask("POST", "/payment-links", shop.write_key).status_code

        def fail(_):
            return live.ask("GET", "/balance", NOBODY).status_code

        def in_one_window(ask, times):
            """The answers to so many, sent within one window that both workers shared."""
            for _ in range(100):
                with Redis.from_url(redis.url) as store:
                    store.flushall()
                losses = live.log().count("cannot be asked")
                began_s = time.monotonic()
                statuses = sorted(pool.map(ask, range(times)))
                was_shared = live.log().count("cannot be asked") == losses
                if (
                    was_shared
                    and shares(live)
                    and time.monotonic() - began_s < WINDOW_S
                ):
                    return statuses
            pytest.fail("the workers never shared a whole window")

        assert in_one_window(write, 50) == [201] * 30 + [429] * 20
        assert in_one_window(fail, 40) == [401] * 20 + [429] * 20


WINDOW_S = 59


def shares(live):
    """True where neither worker pauses, in which it counts for itself without a word."""
    log = live.log()
    return log.count("cannot be asked") == log.count("answers again")


@needs_redis
@pytest.mark.parametrize(
    "go_away", [RedisServer.stop, RedisServer.hang], ids=["gone", "hanging"]
)
def test_while_redis_is_away_a_process_counts_for_itself(redis, hasty_limiter, go_away):
    limiter = hasty_limiter
    for _ in range(10):
        limiter.hit(WRITES, "key")
    go_away(redis)
    before_s = time.time()
    windows = [limiter.hit(WRITES, "key") for _ in range(31)]
    assert [window.remaining for window in windows] == [*range(29, -1, -1), 0]
    assert [window.allowed for window in windows] == [True] * 30 + [False]
    assert {window.limit for window in windows} == {30}
    assert before_s + 60 <= windows[0].exact_reset_s <= time.time() + 60


@needs_redis
def test_a_hanging_redis_is_waited_for_once_in_a_pause(redis, hasty_limiter, seconds):
    limiter = hasty_limiter
    limiter.hit(READS, "key")
    redis.hang()
    for _ in range(3):
        started_s = time.monotonic()
        limiter.hit(READS, "key")
        waited_s = time.monotonic() - started_s
        assert ANSWER_TIMEOUT_S * 0.9 < waited_s < 20
        started_s = time.monotonic()
        for _ in range(120):
            limiter.hit(READS, "key")
        assert (
            time.monotonic() - started_s < 80 * ANSWER_TIMEOUT_S
        )  # each would take one
        seconds.at_s += PAUSE_S


@needs_redis
def test_the_loss_is_logged_once_and_so_is_the_return(redis, limiter, seconds, caplog):
    caplog.set_level(logging.INFO)
    limiter.hit(READS, "key")
    redis.stop()
    for _ in range(3):
        limiter.hit(READS, "key")
        seconds.at_s += PAUSE_S
    (warning,) = messages(caplog)
    assert "cannot be asked" in warning and "ConnectionError" in warning
    redis.start()
    for _ in range(5):
        limiter.hit(READS, "key")
    assert len(messages(caplog)) == 2 and "answers again" in messages(caplog)[-1]


@needs_redis
def test_when_redis_is_back_the_shared_window_goes_on(
    redis, hasty_limiter, seconds, patient
):
    """Ten are counted while Redis surely answers, by a limiter that waits for it."""
    limiter = hasty_limiter
    at_first = Limiter(redis.url, time.time, seconds)
    for _ in range(10):
        at_first.hit(WRITES, "key")
    redis.hang()
    for _ in range(10):
        limiter.hit(WRITES, "key")
    redis.go_on()
    seconds.at_s += PAUSE_S
    until(
        lambda: (
            limiter.is_complete()
            or not setattr(seconds, "at_s", seconds.at_s + PAUSE_S)
        ),
        "it",
    )
    # The process's own counts are not added; those in Redis are still there.
    assert at_first.hit(WRITES, "key").remaining in (18, 19)


@needs_redis
def test_redis_started_anew_is_used_with_the_connections_of_before(redis, limiter):
    limiter.hit(WRITES, "key")
    redis.stop()
    redis.start()
    assert limiter.hit(WRITES, "key").remaining == 29
    assert limiter.is_complete()


def test_the_shop_sells_without_redis(shop, tmp_path):
    nowhere = {"BLOCKTILL_RATE_LIMIT_STORE": "redis://:hunter2@127.0.0.1:9/0"}
    order = {"json": {"amount_usd": 5}}
    with Live(shop, tmp_path, **nowhere) as live:
        reads = [live.ask("GET", "/balance", shop.read_key) for _ in range(5)]
        writes = [
            live.ask("POST", "/invoices", shop.write_key, **order) for _ in range(5)
        ]
        log = live.log()
    for answers, status, limit in ((reads, 200, 120), (writes, 201, 30)):
        assert [answer.status_code for answer in answers] == [status] * 5
        left = [int(answer.headers["X-RateLimit-Remaining"]) for answer in answers]
        assert left == list(range(limit - 1, limit - 6, -1))
    assert log.count("BLOCKTILL_RATE_LIMIT_STORE") == 1 and "hunter2" not in log


def test_a_signal_for_one_worker_more_is_refused_too(shop, tmp_path):
    with Live(shop, tmp_path) as live:
        os.kill(live.pid, signal.SIGTTIN)
        until(
            lambda: "BLOCKTILL_RATE_LIMIT_STORE accepts memory://" in live.log(),
            "the refusal",
        )
        assert live.ask("GET", "/balance", shop.read_key).status_code == 200
        assert live.log().count("Booting worker") == 1


@pytest.mark.parametrize(
    ("program", "words", "environ"),
    [
        pytest.param(
            "blocktill",
            ["serve"],
            {"GUNICORN_CMD_ARGS": "--workers 2"},
            id="serve, by args",
        ),
        pytest.param(
            "blocktill",
            ["serve"],
            {"WEB_CONCURRENCY": "2"},
            id="serve, by WEB_CONCURRENCY",
        ),
        pytest.param(
            "gunicorn",
            ["-c", "deploy/gunicorn.conf.py", "wsgi:app"],
            {"WEB_CONCURRENCY": "3"},
            id="plain gunicorn",
        ),
        pytest.param(
            "gunicorn",
            ["-c", "deploy/gunicorn.conf.py", "-w", "2", "wsgi:app"],
            {},
            id="gunicorn -w",
        ),
    ],
)
def test_several_workers_with_windows_in_memory_refuse_to_start(
    shop, program, words, environ
):
    environ = clean_environ(
        **(shop.environ | {"BLOCKTILL_BIND": "127.0.0.1:0"} | environ)
    )
    ended = forge().run(environ, words, program=program)
    assert ended.status == 2
    assert "BLOCKTILL_RATE_LIMIT_STORE" in ended.errors and "redis://" in ended.errors


def without_driver(code, **environ):
    return subprocess.run(
        [sys.executable, "-c", f"import sys; sys.modules['redis'] = None; {code}"],
        env=clean_environ(**environ),
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=60,
    )


SERVE = (
    "import runpy; sys.argv = ['gunicorn', '-c', 'deploy/gunicorn.conf.py', 'wsgi:app'];"
    " runpy.run_module('gunicorn', run_name='__main__')"
)


def test_a_driver_that_is_missing_is_named_before_anything_starts(shop):
    asked = {
        "BLOCKTILL_RATE_LIMIT_STORE": "redis://127.0.0.1:9/0",
        "BLOCKTILL_BIND": "127.0.0.1:0",
    }
    ended = without_driver(SERVE, **(shop.environ | asked))
    assert ended.returncode == 2
    _, *lines = ended.stderr.splitlines()  # the first is gunicorn's own
    assert len(lines) == 1 and "-r requirements/redis.txt" in lines[0]
