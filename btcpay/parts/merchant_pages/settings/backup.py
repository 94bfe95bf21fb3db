"""The page of backups, on which the owner downloads a backup."""

import logging
import os
from collections.abc import Iterator
from contextlib import ExitStack
from typing import BinaryIO

from flask import Response, request

from btcpay.backup.write import note_backup, open_backup
from btcpay.parts.merchant_pages.lists.download_slots import DownloadSlot, DownloadSlots
from btcpay.parts.merchant_pages.visit import Visit
from btcpay.values.errors import CommandError, NotFound, RateLimited
from storage.queries import meta

log = logging.getLogger(__name__)

# The maximum number of downloads at the same time in one process. Each needs a copy of
# the database on the disk.
AT_ONCE = 1
RETRY_AFTER_S = 10
LEAST_PACE = 32_768  # bytes a second; see `DownloadSlots`
SLOTS = DownloadSlots(AT_ONCE, RETRY_AFTER_S, LEAST_PACE)
CHUNK_BYTES = 65_536
MEDIA_TYPE = "application/vnd.sqlite3"  # registered with IANA
UNAVAILABLE = 503


def show(visit: Visit, problem: str = "") -> Response:
    """Shows the contents of a backup, and a button that downloads a backup.

    `problem` is the reason, in English, why no backup could be made. Raises NotFound if
    the session is not the owner's.
    """
    _require_owner(visit)
    db = visit.service.db
    status = 200
    if problem:
        status = UNAVAILABLE
    return visit.page(
        "backup.html",
        status,
        has_own_backup=not db.is_server,
        backed_up_ms=meta.count(db, meta.Key.BACKED_UP_MS),
        problem=problem,
    )


def send(visit: Visit) -> Response:
    """Makes a backup as `blocktill backup` does, and returns a response that streams it.

    Raises NotFound if the session is not the owner's, or if the database is PostgreSQL,
    which has its own program for backups. Raises RateLimited while another backup is
    downloaded.
    """
    _require_owner(visit)
    if visit.service.db.is_server:
        raise NotFound("pg_dump makes the backups of this database")
    # The stack frees the slot and closes the file: at once if a step fails, else when the
    # response is closed.
    with ExitStack() as stack:
        slot = SLOTS.take(request.environ.get("gunicorn.socket"))
        if slot is None:
            raise RateLimited(RETRY_AFTER_S)
        stack.callback(slot.release)
        try:
            file = open_backup(visit.service.settings.database_url)
        except CommandError as error:
            return show(visit, str(error))
        stack.enter_context(file)
        size = os.fstat(file.fileno()).st_size
        pieces = slot.send(_pieces(visit, file, slot))
        response = Response(pieces, content_type=MEDIA_TYPE)
        response.content_length = size
        response.headers["Content-Disposition"] = (
            f'attachment; filename="blocktill-{visit.now:%Y-%m-%d-%H%M}.db"'
        )
        response.call_on_close(stack.pop_all().close)
        return response


def _pieces(visit: Visit, file: BinaryIO, slot: DownloadSlot) -> Iterator[bytes]:
    """Yields the content of the file, then frees the slot and stores the time of the backup.

    If the browser aborts the download, no time is stored.
    """
    while piece := file.read(CHUNK_BYTES):
        yield piece
    slot.release()  # the next download can start before the time is stored
    problem = note_backup(visit.service.settings.database_url, visit.now)
    if problem:
        log.warning("the time of the backup could not be noted: %s", problem)


def _require_owner(visit: Visit) -> None:
    """Raises NotFound if the session is not the owner's.

    Other merchants must not see that the page exists.
    """
    if not visit.is_owner:
        raise NotFound("there is no such page")
