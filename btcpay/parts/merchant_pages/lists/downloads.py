"""Downloads of payments as files for the bookkeeper, and links to such files.

A file is sent while it is composed, so it is never in memory as a whole.
"""

from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from itertools import islice

from flask import Response, request

from btcpay.exports import payments
from btcpay.exports.ledgers import FORMATS
from btcpay.parts.merchant_pages.lists.download_slots import DownloadSlots
from btcpay.parts.merchant_pages.visit import Visit
from btcpay.values.errors import InvalidRequest, NotFound, RateLimited
from btcpay.values.ids import sha256_of
from btcpay.values.times import date_of, number_of, start_of, to_ms, zone_of
from btcpay.web.admission import count_request, failed_auth_windows
from btcpay.web.pages.languages import current_language
from btcpay.web.service import Service
from storage.database import Database
from storage.models import FileLink
from storage.queries import merchants, sessions
from storage.values import Values

AT_ONCE = 2  # downloads at a time in one process; each occupies a thread
RETRY_AFTER_S = 10
CHUNK_LINES = 200  # about 70 kB
# Bytes a second. A client that falls RETRY_AFTER_S behind this pace loses its slot if
# another client needs it. That other client may then retry after the same time.
LEAST_PACE = 32_768
SLOTS = DownloadSlots(AT_ONCE, RETRY_AFTER_S, LEAST_PACE)
LINK_LIFE = timedelta(days=7)
MOST_LINKS = 20


def show(visit: Visit, link: FileLink | None = None, url: str = "") -> Response:
    """Shows the page of downloads.

    `link` is a link that was just created, else None. `url` is the URL of this link,
    which is shown only this once; "" if there is no such link.
    """
    db = visit.service.db
    now_ms = to_ms(visit.now)
    today = visit.now.astimezone(visit.zone).date()
    new_year = today.replace(month=1, day=1)
    links = db.rows(sessions.FILES, merchant_id=visit.merchant_id, now=now_ms)
    return visit.page(
        "downloads.html",
        days=(new_year, today),
        links=links,
        link=link,
        url=url,
        date_of=date_of,
    )


def make_link(visit: Visit) -> Response:
    """Creates a link to a file of payments, and shows it. The link works for LINK_LIFE.

    The form has the days `from` and `to`; the file has the payments of these days and
    all days between them. If the browser sends the same form twice, only one link is
    created. Raises InvalidRequest if the days are invalid, or if MOST_LINKS links work
    already.
    """
    db = visit.service.db
    first = visit.day("from")
    last = visit.day("to")
    if first is None or last is None or last < first:
        raise InvalidRequest("the form names no days")
    secret = visit.form_secret()
    with visit.create_once("fil", sessions.FILE) as (id, exists):
        if not exists:
            db.run(sessions.DELETE_EXPIRED_FILES, now=to_ms(visit.now))
            _require_room(visit)
            db.run(
                sessions.ADD_FILE,
                id=id,
                merchant_id=visit.merchant_id,
                secret_sha256=sha256_of(secret),
                first_day=number_of(first),
                last_day=number_of(last),
                expires_ms=to_ms(visit.now + LINK_LIFE),
            )
    # The path is not below /merchant, since proxies may restrict that path to the
    # merchant's network.
    base_url = visit.service.settings.base_url
    url = f"{base_url}/file/{secret}?lang={current_language()}"
    return show(visit, db.get(sessions.FILE, id=id), url)


def _require_room(visit: Visit) -> None:
    """Raises InvalidRequest if the merchant has MOST_LINKS links that work."""
    parameters: Values = {"merchant_id": visit.merchant_id, "now": to_ms(visit.now)}
    links = visit.service.db.rows(sessions.FILES, **parameters)
    if len(links) >= MOST_LINKS:
        raise InvalidRequest(f"{MOST_LINKS} such links work already: revoke one first")


def revoke(visit: Visit, id: str) -> Response:
    link = visit.get_or_404(sessions.FILE, "fil", id)
    visit.service.db.run(sessions.REVOKE_FILE, id=link.id)
    return visit.redirect("/downloads", done="revoked")


def send_file_of_link(service: Service, secret: str) -> Response:
    """Returns the file to which a link leads.

    Raises NotFound if the link is unknown, revoked or expired. Raises RateLimited if too
    many downloads run, or after too many requests with an unknown link.
    """
    now_ms = to_ms(service.now())
    link = service.db.get_or_none(
        sessions.FILE_BY_SECRET, secret_sha256=sha256_of(secret), now=now_ms
    )
    if link is None:
        # This counts like a wrong API key, so that nobody can guess links.
        count_request(service, failed_auth_windows())
        raise NotFound("there is no such file")
    first = date_of(link.first_day)
    last = date_of(link.last_day)
    return _payments(service.db, link.merchant_id, "spreadsheet", first, last)


def send_payments(visit: Visit) -> Response:
    """Returns a file with the payments of the days `?from=` to `?to=`.

    A missing day means no limit. The format is `?format=`; by default, CSV. Raises
    InvalidRequest if a parameter is invalid, and RateLimited if too many downloads run.
    """
    format_name = visit.query.get("format", "csv")
    first = visit.day("from")
    last = visit.day("to")
    if format_name not in FORMATS:
        raise InvalidRequest("there is no such format")
    return _payments(visit.service.db, visit.merchant_id, format_name, first, last)


def _payments(
    db: Database,
    merchant_id: int,
    format_name: str,
    first: date | None,
    last: date | None,
) -> Response:
    """Returns a response that streams the payments of the days `first` to `last`.

    None as a day means no limit. Raises RateLimited if too many downloads run.
    """
    merchant = db.get(merchants.BY_ID, id=merchant_id)
    ledger = FORMATS[format_name]
    zone = zone_of(merchant.timezone)
    since_ms = 0
    if first is not None:
        since_ms = max(0, start_of(number_of(first), zone))
    before_ms = payments.END
    if last is not None:
        before_ms = start_of(number_of(last) + 1, zone)
    records = payments.payment_records(db, merchant, since_ms, before_ms)
    # Nothing is read yet: the rows are read while they are sent.
    chunks = _chunks(ledger.lines(records, current_language(), zone))
    slot = SLOTS.take(request.environ.get("gunicorn.socket"))
    if slot is None:
        raise RateLimited(RETRY_AFTER_S)
    response = Response(
        slot.send(chunks), content_type=f"{ledger.media_type}; charset=utf-8"
    )
    response.call_on_close(slot.release)
    name = _file_name(first, last) + ledger.ending
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def _file_name(first: date | None, last: date | None) -> str:
    """Returns a name such as `payments-2026-01-01-2026-11-29`, without its ending."""
    days = [f"{day:%Y-%m-%d}" for day in (first, last) if day is not None]
    return "-".join(["payments", *days])


def _chunks(lines: Iterable[str]) -> Iterator[bytes]:
    """Yields CHUNK_LINES lines at a time, encoded as UTF-8.

    A chunk of many lines takes no longer to send than a single line.
    """
    remaining = iter(lines)
    while chunk := "".join(islice(remaining, CHUNK_LINES)):
        yield chunk.encode()
