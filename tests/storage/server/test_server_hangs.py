"""A database server that neither answers nor hangs up: the service answers all the same."""

import os
import signal
from contextlib import contextmanager

from tests.support import flood, postgres
from tests.support.builders import Live
from tests.support.no_writes import counts
from tests.support.playground import children_of


@contextmanager
def hanging():
    """Every process of the server stands still; the kernel goes on taking connections for it."""
    tell_all(signal.SIGSTOP)
    try:
        yield
    finally:
        tell_all(signal.SIGCONT)


def tell_all(what):
    master = postgres.server().pid
    for pid in (master, *children_of(master)):
        os.kill(pid, what)


def test_healthz_answers_at_once_while_the_server_hangs(shop, tmp_path):
    keys = flood.write_keys(shop)
    answers = {}
    before = counts(shop)
    with Live(shop, tmp_path) as live:
        assert live.ask("POST", "/invoices", shop.write_key, json={"amount_usd": 5}).ok
        with hanging(), flood.orders_under_way(live, keys, answers):
            alive_s = flood.slowest_s(f"{live.url}/healthz")
            tell_all(signal.SIGCONT)
        assert alive_s < flood.SOON_S
        assert live.ask("GET", "/balance", shop.read_key).ok, "nothing needs a restart"
        assert "Traceback" not in live.log()
    assert 503 in answers and set(answers) <= {201, 503}
    made = len(answers.get(201, [])) + 1
    assert counts(shop) == (before[0] + made, before[1], before[2] + made)
