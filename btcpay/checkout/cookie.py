"""The invoices a browser made at a link: the last by a signed cookie, one by its form."""

import hashlib
import re
from functools import cached_property
from urllib.parse import urlsplit

from flask import Response, request
from itsdangerous import BadData, URLSafeSerializer

from btcpay.settings.settings import Settings
from btcpay.values.ids import ID_CHARACTERS, SECRET_CHARACTERS, derived_id, is_id, random_base62
from storage.database import Database
from storage.queries import meta

COOKIE = "invoices"
_FORM = re.compile(rf"[0-9A-Za-z]{{{ID_CHARACTERS}}}")


class LinkCookie:
    """The id of the last invoice that a browser made at each link, signed.

    The key is random, made once and kept in the database. The link's id is the salt: a cookie is
    worth nothing at another link.
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
        """The id of the invoice that this form makes; the form alone does not give it away."""
        if not _FORM.fullmatch(form):
            return None
        return derived_id("inv", self._key, f"form {link_id} {form}")

    def made_after(self, invoice_id: str) -> str:
        """The id of the one invoice that follows from a paid one. Likewise."""
        return derived_id("inv", self._key, f"after {invoice_id}")

    def last(self, link_id: str) -> str | None:
        """The last invoice that this browser made; None when the cookie is not ours."""
        cookie = request.cookies.get(COOKIE)
        if not cookie or meta.get(self._db, meta.Key.COOKIE_KEY) is None:
            return None  # nothing was ever signed; to look at a link makes no key either
        try:
            id = self._signer(link_id).loads(cookie)
        except BadData:
            return None
        return id if isinstance(id, str) and is_id("inv", id) else None

    def remember(self, response: Response, link_id: str, invoice_id: str) -> None:
        """Sends the cookie with this invoice, for as long as such an invoice lives."""
        response.set_cookie(
            COOKIE,
            str(self._signer(link_id).dumps(invoice_id)),
            max_age=self._life_s,
            path=self._root.path + request.path,
            secure=self._root.scheme == "https",
            httponly=True,
            samesite="Lax",
        )
