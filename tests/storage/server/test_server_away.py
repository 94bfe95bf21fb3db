"""A database server that is away, back, read-only or not for us: what users and owners are told."""

import re
import signal
from contextlib import contextmanager, nullcontext

import psycopg
import pytest
import requests
from prometheus_client.parser import text_string_to_metric_families

from btcpay.health.doctor.run import examine
from btcpay.settings import settings
from storage import versions
from tests.support import postgres
from tests.support.builders import NO_PORTS, Live, until
from tests.support.fake_esplora import Terminal
from tests.support.no_writes import counts, refuses_orders, still_reads
from tests.support.ports import free_port
from tests.support.samples import by_name


@contextmanager
def away(mode="fast"):
    """The server is stopped meanwhile; `immediate` is what a crash would be."""
    postgres.server().stop(mode)
    try:
        yield
    finally:
        postgres.server().start()


def tell_server(statement, *values):
    with psycopg.connect(
        postgres.server().url("postgres"), autocommit=True
    ) as connection:
        connection.execute(statement, values)


@contextmanager
def read_only(url):
    """As a standby is; whoever is connected is sent away, before and after."""
    name = url.rpartition("/")[2]
    leave = "SELECT pg_terminate_backend(pid, 20000) FROM pg_stat_activity WHERE datname = %s"
    tell_server(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    tell_server(leave, name)
    try:
        yield url
    finally:
        tell_server(f"ALTER DATABASE {name} RESET default_transaction_read_only")
        tell_server(leave, name)


TROUBLES = {
    "a server that was stopped": lambda _: away("fast"),
    "a server that crashed": lambda _: away("immediate"),
    "a server that may only be read": read_only,
}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_orders_are_refused_calmly_meanwhile_and_taken_again_without_a_restart(
    trouble, url, shop, tmp_path
):
    link = shop.link(title="Tip jar")
    invoice = shop.invoice(25)
    before = counts(shop)
    with Live(shop, tmp_path) as live:
        assert live.ask("GET", "/balance", shop.read_key).ok
        with TROUBLES[trouble](url):
            refuses_orders(live, shop, link)
            if TROUBLES[trouble] is read_only:
                still_reads(live, shop, invoice)
                assert "in a read-only transaction" in live.log()
            else:
                answer = live.ask("GET", f"/invoices/{invoice['id']}", shop.read_key)
                page = requests.get(f"{live.url}/pay/{invoice['id']}", timeout=60)
                assert answer.status_code == page.status_code == 503
        assert counts(shop) == before
        still_reads(live, shop, invoice)
        answer = live.ask("POST", "/invoices", shop.write_key, json={"amount_usd": 25})
        assert answer.status_code == 201, answer.text
        assert postgres.SECRET not in live.log()
    assert counts(shop) == (before[0] + 1, before[1], before[2] + 1)


def test_probes_and_metrics_tell_when_it_is_away_and_back(till, tmp_path):
    till.check()
    port = free_port()

    def probed():
        scraped = requests.get(f"http://127.0.0.1:{port}/metrics", timeout=60).text
        up = by_name(text_string_to_metric_families(scraped))["blocktill_database_up"]
        alive, ready = (
            requests.get(f"{live.url}/{path}", timeout=60).status_code
            for path in ("healthz", "readyz")
        )
        return alive, ready, up

    with Live(till.shop, tmp_path, BLOCKTILL_METRICS_BIND=f"127.0.0.1:{port}") as live:
        assert probed() == (200, 200, 1)
        for mode in ("fast", "immediate"):
            with away(mode):
                assert probed() == (200, 503, 0)
                answer = requests.get(f"{live.url}/readyz", timeout=60)
                assert answer.json()["database"] == {
                    "ok": False,
                    "problem": "no answer",
                }
            assert probed() == (200, 200, 1)
        answer = requests.get(f"{live.url}/readyz", timeout=60)
        assert answer.json()["database"] == {"ok": True, "version": versions.VERSION}


@pytest.mark.parametrize(
    "words", ["check", "invoice list", "merchant list", "migrate", "serve"]
)
def test_every_command_says_in_one_line_that_it_is_away(words, shop):
    with away():
        output, errors = Terminal(shop).run(*words.split(), status=1)
    assert output == "" and "Traceback" not in errors and postgres.SECRET not in errors
    *before, line = errors.splitlines()
    assert all("Starting gunicorn" in log for log in before)
    assert (
        line.startswith("blocktill: the database cannot be used: ")
        and "refused" in line
    )


@pytest.mark.parametrize("words", ["check --watch 1", "run --every 1"])
def test_a_watch_goes_on_when_it_is_back(words, till):
    watch = Terminal(till).start(*words.split(), **NO_PORTS)

    def see_a_payment():
        invoice = till.shop.invoice()
        till.pay(invoice)
        till.mine()
        until(lambda: "paid" in till.kinds(invoice), "the payment to be seen")

    def serves():
        line = next(line for line in watch.stderr if "Listening at" in line)
        url = re.search(r"http://[0-9.:]+", line)[0]
        return requests.get(f"{url}/healthz", timeout=60).ok

    try:
        see_a_payment()  # a command that starts while the server is away ends
        assert words.startswith("check") or serves()
        with away():
            assert any("the check failed" in line for line in watch.stderr)
        see_a_payment()
    finally:
        watch.send_signal(signal.SIGTERM)
        watch.communicate(timeout=60)
    assert watch.returncode == 0


def found(till, url=None):
    """The findings by name, none of which tells the password."""
    environ = till.shop.environ | ({"BLOCKTILL_DATABASE_URL": url} if url else {})
    examined = list(
        examine(settings.read(environ), environ, till.clock, lambda _: 10**12)
    )
    assert postgres.SECRET not in str(examined)
    return {finding.name: finding for finding in examined}


def test_the_doctor_names_a_server_and_looks_into_the_rest_when_it_is_away(till):
    till.check()
    everything = found(till)
    assert {finding.colour for finding in everything.values()} == {"green"}
    assert everything["database"].sentence.startswith("PostgreSQL ")
    assert "disk" not in everything and "file modes" not in everything
    with away():
        everything = found(till)
        output, errors = Terminal(till).run("doctor", status=1)
    finding = everything["database"]
    assert finding.colour == "red" and "refused" in finding.sentence
    assert "the server runs" in finding.remedy and "\n" not in finding.sentence
    assert (
        everything["explorer 127.0.0.1"].colour == "green"
        and "totals of shop" not in everything
    )
    assert postgres.SECRET not in output + errors and "Traceback" not in errors


@contextmanager
def guest(url):
    tell_server("CREATE ROLE guest LOGIN")
    yield url.replace("blocktill:", "guest:")
    tell_server("DROP ROLE guest")


@contextmanager
def latin(_url):
    made = postgres.server().create("template0 ENCODING 'LATIN1' LOCALE 'C'")
    yield made
    postgres.server().drop(made)


def instead(before, after):
    return lambda url: nullcontext(url.replace(before, after))


# A fault of the server or its URL, the sentence about it, and the remedy.
FAULTS = {
    "the user": (
        instead("blocktill:", "nobody:"),
        'role "nobody" does not',
        "BLOCKTILL_DATABASE_URL",
    ),
    "the database": (
        instead("/test", "/none"),
        "does not exist",
        "BLOCKTILL_DATABASE_URL",
    ),
    "the host": (
        instead("127.0.0.1", "no.invalid"),
        "no.invalid",
        "BLOCKTILL_DATABASE_URL",
    ),
    "it may only be read": (read_only, "read-only", "write"),
    "a user without rights": (guest, "permission denied", "write"),
    "letters that it cannot store": (latin, "LATIN1", "UTF8"),
}


@pytest.mark.parametrize("case", FAULTS)
def test_the_doctor_finds_what_is_wrong_with_a_server(case, till, url):
    plant, sentence, remedy = FAULTS[case]
    with plant(url) as faulty:
        finding = found(till, faulty)["database"]
    assert finding.colour == "red"
    assert sentence in finding.sentence and remedy in finding.remedy
