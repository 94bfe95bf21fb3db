"""How a browser comes back to the invoice that it made: by a signed cookie, or by its form."""

import hashlib
import hmac
import re
from collections.abc import Sequence
from functools import cached_property
from urllib.parse import urlsplit

from flask import Response, request
from itsdangerous import BadData, URLSafeSerializer

from btcpay.ids import ID_CHARACTERS, SECRET_CHARACTERS, id_of, is_id, random_base62
from btcpay.settings import Settings
from storage.database import Database
from storage.queries import meta

COOKIE = "invoices"
REMEMBERED = 5  # between so many amounts a visitor may go back and forth
_FORM = re.compile(rf"[0-9A-Za-z]{{{ID_CHARACTERS}}}")


def new_form() -> str:
    """A random text that tells one showing of a link's form from all others."""
    return random_base62(ID_CHARACTERS)


class Returning:
    """The cookie of each link's page: the ids of invoices, newest first.

    The key is random, made once and kept in the database: all processes sign with it. The link's
    id is the salt, so that a cookie is worth nothing at another link.
    """

    def __init__(self, db: Database, settings: Settings) -> None:
        self._db = db
        self._root = urlsplit(settings.base_url)
        self._life_s = settings.link_invoice_expiry_min * 60

    @cached_property
    def _key(self) -> str:
        return meta.keep(self._db, meta.Key.COOKIE_KEY, random_base62(SECRET_CHARACTERS))

    def _signer(self, link_id: str) -> URLSafeSerializer:
        return URLSafeSerializer(
            self._key, salt=link_id, signer_kwargs={"digest_method": hashlib.sha256}
        )

    def made_by(self, link_id: str, form: str) -> str | None:
        """The id of the invoice that this form makes, however often it is sent; None without one.

        Nobody else can work it out from the form, since the key is needed.
        """
        if not _FORM.fullmatch(form):
            return None
        text = f"form {link_id} {form}".encode()
        return id_of("inv", hmac.digest(self._key.encode(), text, "sha256"))

    def known(self, link_id: str) -> Sequence[str]:
        """The invoices that this browser made; none when the cookie is not ours."""
        cookie = request.cookies.get(COOKIE)
        if not cookie:
            return ()
        try:
            ids = self._signer(link_id).loads(cookie)
        except BadData:
            return ()
        return [id for id in ids if is_id("inv", id)][:REMEMBERED]

    def remember(self, response: Response, link_id: str, invoice_id: str) -> None:
        """Sends the cookie with this invoice in front, for as long as such an invoice lives."""
        ids = [invoice_id, *(id for id in self.known(link_id) if id != invoice_id)]
        response.set_cookie(
            COOKIE,
            str(self._signer(link_id).dumps(ids[:REMEMBERED])),
            max_age=self._life_s,
            path=self._root.path + request.path,
            secure=self._root.scheme == "https",
            httponly=True,
            samesite="Lax",
        )
