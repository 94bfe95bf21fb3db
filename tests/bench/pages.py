"""How long an invoice's page takes in one thread, beside a route that renders a bare template."""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from statistics import median
from unittest.mock import patch

from fill import START_MS, STATUSES, invoice_id
from flask import Flask, render_template
from jinja2 import DictLoader
from werkzeug.test import EnvironBuilder, run_wsgi_app

from app import create_app
from btcpay.settings.settings import read
from btcpay.values.times import from_ms

TIMES = 120  # less than a thousand stored have of each status
OPEN, PAID = STATUSES.index("open"), STATUSES.index("paid")
BARE = "<!doctype html><title>{{ title }}</title><p>{{ text }}</p>"


def median_ms(application: Callable, paths: Iterable[str]) -> float:
    """The median processor time of a request, from the WSGI environment to the last byte."""
    took_s = []
    for path in paths:
        environ = EnvironBuilder(path, headers={"Accept-Language": "de"}).get_environ()
        start_s = time.thread_time()
        _, status, _ = run_wsgi_app(application, environ, buffered=True)
        took_s.append(time.thread_time() - start_s)
        assert status.startswith("200"), status
    return median(took_s) * 1000


def pages_ms(database_url: str) -> dict[str, float]:
    """Milliseconds beside the bare template: of a page to pay and of a receipt, opened and again.

    What a page to pay takes again is what it takes with a QR code that is kept.
    """
    bare = Flask("bare")
    bare.add_url_rule("/", "bare", lambda: render_template("bare.html", title="a", text="b"))
    bare.jinja_loader = DictLoader({"bare.html": BARE})
    with patch.dict(os.environ, {"BTCPAY_DATABASE_URL": database_url}):
        # At a time when the open ones can still be paid: with QR code and link.
        service = create_app(read(os.environ), lambda: from_ms(START_MS + 60_000))
    bare_ms = median_ms(bare, ["/"] * TIMES)
    return {
        f"{name}, {turn}": median_ms(service, _each(number)) - bare_ms
        for name, number in (("to pay", OPEN), ("receipt", PAID))
        for turn in ("opened", "again")
    }


def _each(number: int) -> Iterator[str]:
    """The pages of different invoices of the same status, so that nothing is warm by repetition."""
    return (f"/pay/{invoice_id(number + len(STATUSES) * n)}" for n in range(TIMES))
