"""Restores a backup in the browser. This is the alternative to creating a first merchant."""

import threading
from functools import partial
from typing import Any

from flask import Response, request

from btcpay.backup.address_counters import MOST_SKIP, SKIP
from btcpay.backup.from_browser import examine, put_in
from btcpay.backup.pending import PendingRestore, begin, find
from btcpay.merchants import sessions
from btcpay.parts.merchant_pages.login import enter, page_of_secret
from btcpay.parts.merchant_pages.start import require_setup_token
from btcpay.parts.merchant_pages.upload import receive_backup
from btcpay.parts.merchant_pages.visit import ROOT, address
from btcpay.values.amounts import parse_whole_number
from btcpay.values.errors import BtcpayError, CommandError, NotFound
from btcpay.web.admission import refuse_other_sites
from btcpay.web.pages.forms import read_form
from btcpay.web.pages.render import Pages, View
from btcpay.web.service import Service
from storage.queries import merchants

LOOKS_AGAIN_S = 3  # the browser's pause between two looks at a running examination
REFUSED = 400


class RestoreViews:
    """The pages on which the owner uploads a backup, looks at it, and restores it.

    The setup link leads to them. They need no session.
    """

    def __init__(self, service: Service, pages: Pages) -> None:
        self._service = service
        self._pages = pages
        self._one_at_a_time = threading.Lock()
        self._restored_id = ""  # the id of the backup that was restored, or ""

    def views(self) -> list[tuple[str, str, View]]:
        """Returns the method, path and view function of each page."""
        start = f"{ROOT}/start/<token>/restore"
        return [
            ("GET", start, self.show_upload),
            ("POST", start, self.upload),
            ("GET", f"{start}/<id>", self.show),
            ("POST", f"{start}/<id>", self.answer),
        ]

    def show_upload(self, token: str) -> Response:
        """Shows the form for a backup. Raises NotFound if the setup link does not work."""
        require_setup_token(self._service, token)
        return self._upload_page(token)

    def upload(self, token: str) -> Response:
        """Receives a backup, and starts a thread that examines it.

        If no usable file arrives, shows the form again with the reason. Raises NotFound
        if the setup link does not work.
        """
        refuse_other_sites(self._service)
        require_setup_token(self._service, token)
        settings = self._service.settings
        try:
            pending = begin(settings)
        except CommandError as error:
            return self._upload_page(token, str(error))
        try:
            fields = receive_backup(pending.upload)
            skip = _skip_of(fields.get("skip", ""))
        except (BtcpayError, OSError) as error:
            pending.discard()
            pending.release()
            return self._upload_page(token, str(error))
        # From here on, the thread has to free the backup's lock.
        thread = threading.Thread(
            target=self._examine, args=(pending, skip), daemon=True
        )
        thread.start()
        return _redirect(token, f"/restore/{pending.id}")

    def _examine(self, pending: PendingRestore, skip: int) -> None:
        """Examines the backup, and then frees its lock. Runs in a thread of its own."""
        try:
            examine(pending, self._service.settings, skip, self._service.now)
        finally:
            pending.release()

    def show(self, token: str, id: str) -> Response:
        """Shows the result of the examination, and a button that restores the backup.

        While the examination is running, shows a page that says so. Raises NotFound if the
        setup link does not work, or if there is no such backup.
        """
        require_setup_token(self._service, token)
        pending = self._find(id)
        # The report is written before the lock is freed, and `answer` waits for both.
        if pending.is_held():
            page = self._page("restore_waiting.html")
            page.headers["Refresh"] = str(LOOKS_AGAIN_S)
            return page
        report = pending.report()
        if report is None:  # the process has ended
            pending.discard()
            return self._upload_page(token, "the examination was interrupted")
        if report.problem:
            return self._upload_page(token, report.problem)
        return self._page("restore_question.html", report=report)

    def answer(self, token: str, id: str) -> Response:
        """Restores the backup and logs in, if the owner has agreed; else deletes the backup.

        Raises NotFound if the setup link does not work, or if there is no such backup.
        """
        refuse_other_sites(self._service)
        require_setup_token(self._service, token)
        pending = self._find(id)
        if pending.is_held():
            return _redirect(token, f"/restore/{id}")
        if "agree" not in read_form():
            pending.discard()
            return _redirect(token, "/restore")
        service = self._service
        try:
            secret = self._restore_once(pending)
        except CommandError as error:
            return self._upload_page(token, str(error))
        has_several = len(service.db.rows(merchants.ALL)) > 1
        if has_several and service.owner_password.is_set:
            return enter(service, secret, "/shops")
        return enter(service, secret)

    def _restore_once(self, pending: PendingRestore) -> str:
        """Restores the backup, and returns the secret of a new session.

        If the owner presses the button twice, the browser shows the second response. So
        the second request waits for the first, and opens a session without restoring
        again. Raises CommandError if the backup cannot be restored.
        """
        service = self._service
        browser = request.headers.get("User-Agent", "")
        with self._one_at_a_time:
            if self._restored_id == pending.id:
                return self._open_session(browser)
            open_session = partial(self._open_session, browser)
            secret = put_in(
                service.db, service.settings, pending, service.now(), open_session
            )
            self._restored_id = pending.id
        return secret

    def _open_session(self, browser: str) -> str:
        """Opens a session of the first restored merchant, and returns its secret."""
        service = self._service
        first = service.db.rows(merchants.ALL)[0]
        return sessions.open_session(
            service.db,
            first.id,
            browser,
            service.now(),
            till_only=0,
            password_scrypt=service.owner_password.scrypt or None,
        )

    def _find(self, id: str) -> PendingRestore:
        """Returns the uploaded backup with this id. Raises NotFound if there is none."""
        pending = find(self._service.settings, id)
        if pending is None:
            raise NotFound("there is no such backup any more: upload it again")
        return pending

    def _page(self, template: str, status: int = 200, **values: Any) -> Response:
        return page_of_secret(self._pages, template, status, **values)

    def _upload_page(self, token: str, problem: str = "") -> Response:
        """Shows the form for a backup, and the problem with the last one, if any."""
        status = 200
        if problem:
            status = REFUSED
        return self._page(
            "restore.html",
            status,
            problem=problem,
            skip=SKIP,
            action=address(f"/start/{token}/restore"),
            back=address(f"/start/{token}"),
        )


def _redirect(token: str, path: str) -> Response:
    location = address(f"/start/{token}{path}")
    return Response(status=303, headers={"Location": location})


def _skip_of(text: str) -> int:
    """Parses the number of addresses to leave out. Returns SKIP for an empty text.

    Raises CommandError if it is not a whole number from 0 to MOST_SKIP.
    """
    if not text.strip():
        return SKIP
    try:
        return parse_whole_number(text, 0, MOST_SKIP)
    except ValueError:
        raise CommandError(f"leave out 0 to {MOST_SKIP} addresses") from None
