"""Receives an uploaded backup: one file and a few fields.

The file is written to the disk while it arrives, so it is never in memory as a whole.
"""

import io
import shutil
from pathlib import Path
from typing import IO

from flask import request
from gunicorn.http.errors import ParseException  # raised for a malformed chunk
from werkzeug.exceptions import HTTPException, RequestEntityTooLarge
from werkzeug.formparser import FormDataParser

from btcpay.values.errors import CommandError
from btcpay.web.pages.forms import limit_fields

MAX_BACKUP_BYTES = 2**30  # 1 GiB, more than half a million invoices
MAX_BYTES = MAX_BACKUP_BYTES + 65_536  # with the other fields and the separators
MAX_FIELD_BYTES = 500_000  # more than the parser reads at a time
MAX_PARTS = 8
FILE_FIELD = "backup"
# The disk must have room for the file, its examined copy, the restored database and its
# write-ahead log.
TIMES_ON_DISK = 4
INCOMPLETE = "the file arrived incomplete: send it again"


def receive_backup(target: Path) -> dict[str, str]:
    """Writes the uploaded file to `target`, and returns the form's other fields.

    Raises CommandError if the form has no file, if it is too large or incomplete, or if
    the disk has too little room.
    """
    request.max_content_length = MAX_BYTES
    _refuse_full_disk(target.parent)
    with target.open("xb") as file:
        opened: list[IO[bytes]] = []

        def open_file(*_: object, **__: object) -> IO[bytes]:
            if opened:
                return io.BytesIO()  # a second file, which `_refuse_others` refuses
            opened.append(file)
            return file

        parser = FormDataParser(
            open_file,
            max_form_memory_size=MAX_FIELD_BYTES,
            silent=False,
            max_form_parts=MAX_PARTS,
        )
        try:
            _, form, files = parser.parse(
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
        if len(files) != 1 or FILE_FIELD not in files or not files[FILE_FIELD].filename:
            raise CommandError("no file was chosen")
    return limit_fields(form.to_dict())


def _refuse_full_disk(folder: Path) -> None:
    needed = TIMES_ON_DISK * (request.content_length or 0)
    if request.content_length and shutil.disk_usage(folder).free < needed:
        raise CommandError(
            f"the disk has too little room: {needed // 2**20} MiB are needed"
        )
