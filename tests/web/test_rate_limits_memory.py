"""The windows in a process's memory: what an attacker with many addresses can do to them."""

import threading
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from btcpay.web import rate_windows
from btcpay.web.rate_limits import (
    FAILED_AUTH,
    VISITS,
    WRITES,
    Limiter,
    link_invoices,
)
from btcpay.web.rate_windows import Bucket
from tests.support.builders import Seconds

ME = "203.0.113.7"
MOST = 2_000  # windows of a bucket, here
ANY_BUCKET = pytest.mark.parametrize(
    "bucket", [VISITS, FAILED_AUTH, link_invoices(10)], ids=lambda b: b.name
)


@pytest.fixture
def seconds():
    return Seconds()


@pytest.fixture
def limiter(seconds, monkeypatch):
    monkeypatch.setattr(rate_windows, "MOST", MOST)
    return Limiter("memory://", seconds)


def crowd(limiter, bucket, number=MOST):
    for other in range(number):
        limiter.hit(bucket, f"other {other}")


@ANY_BUCKET
def test_however_many_addresses_come_the_memory_is_bounded(limiter, bucket):
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    crowd(limiter, bucket, 2 * MOST)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 400 * MOST


@ANY_BUCKET
def test_a_window_that_has_ended_is_forgotten_by_the_next_request(
    limiter, seconds, bucket
):
    tracemalloc.start()
    crowd(limiter, bucket, 1000)
    full, _ = tracemalloc.get_traced_memory()
    seconds.at_s += bucket.period_s + 1
    limiter.hit(bucket, ME)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after < full / 4


def test_who_fills_the_memory_cannot_try_keys_again_before_his_time(limiter, seconds):
    for _ in range(20):
        assert limiter.hit(FAILED_AUTH, ME).allowed
    crowd(limiter, FAILED_AUTH, 2 * MOST)
    assert not limiter.hit(FAILED_AUTH, ME).allowed
    seconds.at_s += 60
    assert not limiter.hit(FAILED_AUTH, ME).allowed
    seconds.at_s += 0.001
    assert limiter.hit(FAILED_AUTH, ME).allowed


def test_at_the_bound_a_new_address_with_a_wrong_key_is_refused_and_told_when_to_come_back(
    limiter, seconds
):
    crowd(limiter, FAILED_AUTH, MOST - 1)
    assert limiter.hit(FAILED_AUTH, "the last one that fits").allowed
    refused = limiter.hit(FAILED_AUTH, ME)
    assert (refused.allowed, refused.remaining) == (False, 0)
    assert refused.retry_after_s(seconds.at_s) == 60
    assert limiter.hit(FAILED_AUTH, "the last one that fits").remaining == 18


@pytest.mark.parametrize("bucket", [VISITS, link_invoices(10)], ids=lambda b: b.name)
def test_no_payer_is_refused_because_others_filled_the_memory(limiter, bucket):
    crowd(limiter, bucket)
    assert limiter.hit(bucket, ME).remaining == bucket.limit - 1
    assert limiter.hit(bucket, ME).remaining == bucket.limit - 2


def test_who_was_counted_last_is_forgotten_last(limiter):
    limiter.hit(VISITS, ME)
    crowd(limiter, VISITS, MOST - 1)
    limiter.hit(VISITS, ME)
    limiter.hit(VISITS, "one more")
    assert limiter.peek(VISITS, ME).remaining == 598
    assert limiter.peek(VISITS, "other 0").remaining == 600


def test_a_clock_that_is_set_back_locks_nobody_out(limiter, seconds):
    for _ in range(30):
        limiter.hit(WRITES, "key")
    seconds.at_s -= 3600
    assert limiter.hit(WRITES, "key").remaining == 29


def test_a_window_that_a_clock_ahead_has_counted_begins_anew(limiter, seconds):
    limiter.hit(WRITES, "other")
    limiter.hit(WRITES, ME)
    seconds.at_s += 40
    limiter.hit(WRITES, ME)
    seconds.at_s -= 20
    assert limiter.hit(WRITES, ME).remaining == WRITES.limit - 1
    assert limiter.hit(WRITES, "other").remaining == WRITES.limit - 2


def test_valid_keys_work_while_the_memory_is_full_of_wrong_ones(shop, monkeypatch):
    monkeypatch.setattr(rate_windows, "MOST", MOST)
    crowd(shop.service.limiter, FAILED_AUTH)
    crowd(shop.service.limiter, VISITS)
    assert shop.get("/balance").headers["X-RateLimit-Remaining"] == "119"
    assert shop.post("/payment-links", {}).status_code == 201
    wrong = shop.get("/balance", key="sk_test_wrong")
    assert wrong.status_code == 429 and wrong.headers["X-RateLimit-Remaining"] == "0"
    assert shop.get("/balance").status_code == 200


class Overtaken(Seconds):
    """A clock whose first reader is overtaken, as threads are: another request counts meanwhile."""

    limiter: Limiter | None = None
    other: threading.Thread | None = None

    def __call__(self):
        read = self.at_s
        limiter = self.limiter
        self.limiter = None
        if limiter:
            self.at_s += 0.001
            self.other = threading.Thread(target=limiter.hit, args=(FAILED_AUTH, ME))
            self.other.start()
            self.other.join(0.3)
        return read


BRIEF = Bucket("brief", 3, period_s=10)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([0, 1, 2.5, 5, 9, 10, 11]),
            st.sampled_from("ab"),
            st.booleans(),
        )
    )
)
def test_a_window_counts_as_one_that_remembers_everything(asked):
    """Any question after any time: for a key, counting or only looking."""
    seconds = Seconds()
    limiter = Limiter("memory://", seconds)
    counted: dict[str, list[float]] = {"a": [], "b": []}
    for pause_s, key, counts in asked:
        seconds.at_s += pause_s
        within = [at for at in counted[key] if at >= seconds.at_s - 10]
        fits = len(within) < 3
        if fits and counts:
            counted[key].append(seconds.at_s)
            within.append(seconds.at_s)
        window = (limiter.hit if counts else limiter.peek)(BRIEF, key)
        assert window == (
            3,
            3 - len(within),
            min(within, default=seconds.at_s) + 10,
            fits,
        )


def test_two_requests_at_once_are_counted_however_their_threads_overtake_each_other():
    clock = Overtaken()
    limiter = Limiter("memory://", clock)
    for _ in range(FAILED_AUTH.limit - 2):
        limiter.hit(FAILED_AUTH, ME)
    clock.limiter = limiter
    limiter.hit(FAILED_AUTH, ME)
    assert clock.other
    clock.other.join()
    assert not limiter.hit(FAILED_AUTH, ME).allowed


def test_hits_of_one_mark_are_one_until_the_window_has_ended(limiter, seconds):
    bucket = link_invoices(2)
    hits = [limiter.hit(bucket, ME, mark=mark) for mark in ("a", "a", "b", "a", "c")]
    assert [hit.remaining for hit in hits] == [1, 1, 0, 0, 0]
    assert [hit.allowed for hit in hits] == [True] * 4 + [False]
    assert limiter.hit(bucket, "another", mark="a").remaining == 1
    seconds.at_s += bucket.period_s + 0.1
    assert [limiter.hit(bucket, ME, mark="a").remaining for _ in range(2)] == [1, 1]


def test_marks_are_bounded_however_many_come(limiter):
    """The eldest is forgotten, and only counts once more if it comes again."""
    bucket = link_invoices(MOST * 3)
    for number in range(MOST + 1):
        limiter.hit(bucket, ME, mark=f"{number}")
    assert len(limiter._memory._marks) == MOST
