"""Receives an uploaded backup: one file and a few fields.

The file is written to the disk while it arrives, so it is never in memory as a whole.
"""

import os
import shutil
from pathlib import Path
from typing import IO

from flask import request
from gunicorn.http.errors import ParseException  # raised for a malformed chunk
from werkzeug.datastructures import FileStorage, MultiDict
from werkzeug.exceptions import HTTPException, RequestEntityTooLarge
from werkzeug.formparser import FormDataParser

from btcpay.values.errors import CommandError
from btcpay.web.pages.forms import limit_fields

MAX_BACKUP_BYTES = 2**30  # 1 GiB, more than half a million invoices
MAX_BYTES = MAX_BACKUP_BYTES + 65_536  # with the other fields and the separators
# The maximum size of a field that is no file. It is more than the parser reads at a time.
MAX_FIELD_BYTES = 500_000
MAX_PARTS = 8
FILE_FIELD = "backup"
# The disk must have room for the file, its examined copy, the restored database and its
# write-ahead log.
TIMES_ON_DISK = 4
FormFields = MultiDict[str, str]
FormFiles = MultiDict[str, FileStorage]
INCOMPLETE = "the file arrived incomplete: send it again"


class _FileStreams:
    """Chooses where each file of a form is written: the first into `first`.

    All further files are written into `discarded`.
    """

    def __init__(self, first: IO[bytes], discarded: IO[bytes]) -> None:
        self._next = first
        self._discarded = discarded

    def next_stream(self, *_: object, **__: object) -> IO[bytes]:
        """Returns the stream for the next file. The parser's arguments are not needed."""
        stream = self._next
        self._next = self._discarded
        return stream


def receive_backup(target: Path) -> dict[str, str]:
    """Writes the uploaded file to `target`, and returns the form's other fields.

    Raises CommandError if the form has no file, if it is too large or incomplete, or if
    the disk has too little room.
    """
    request.max_content_length = MAX_BYTES
    _refuse_full_disk(target.parent)
    with target.open("xb") as file, Path(os.devnull).open("wb") as discarded:
        fields, files = _parse_form(_FileStreams(file, discarded))
    is_backup_alone = len(files) == 1 and FILE_FIELD in files
    if not is_backup_alone or not files[FILE_FIELD].filename:
        raise CommandError("no file was chosen")
    return limit_fields(fields.to_dict())


def _parse_form(streams: _FileStreams) -> tuple[FormFields, FormFiles]:
    """Parses the request's multipart form, and writes its files into `streams`.

    Raises CommandError if the form is too large or incomplete.
    """
    parser = FormDataParser(
        streams.next_stream,
        max_form_memory_size=MAX_FIELD_BYTES,
        silent=False,
        max_form_parts=MAX_PARTS,
    )
    try:
        _, fields, files = parser.parse(
            request.stream,
            request.mimetype,
            request.content_length,
            request.mimetype_params,
        )
    except RequestEntityTooLarge:
        raise CommandError(
            f"a backup may have at most {MAX_BACKUP_BYTES // 2**20} MiB here: use"
            " `blocktill restore` on the server"
        ) from None
    except (HTTPException, ParseException, ValueError):
        raise CommandError(INCOMPLETE) from None
    return fields, files


def _refuse_full_disk(folder: Path) -> None:
    """Raises CommandError if the disk of `folder` has too little room for the request.

    A request that does not give its length is not refused.
    """
    if not request.content_length:
        return
    needed_bytes = TIMES_ON_DISK * request.content_length
    if shutil.disk_usage(folder).free < needed_bytes:
        raise CommandError(
            f"the disk has too little room: {needed_bytes // 2**20} MiB are needed"
        )
