"""A cookie that remembers the last invoice that a browser created on a page."""

import hashlib
import re
from functools import cached_property
from urllib.parse import urlsplit

from flask import Response, request
from itsdangerous import BadData, URLSafeSerializer

from btcpay.settings.settings import Settings
from btcpay.values.ids import (
    ID_CHARACTERS,
    SECRET_CHARACTERS,
    derived_id,
    is_id,
    random_base62,
)
from storage.database import Database
from storage.queries import meta

COOKIE = "invoices"
_FORM_ID = re.compile(rf"[0-9A-Za-z]{{{ID_CHARACTERS}}}")


class LinkCookie:
    """A signed cookie with the id of the last invoice that a browser created on a page.

    The page is that of a payment link or a bill. The signing key is random, created
    once, and stored in the database. The page's id is the salt of the signature, so
    that a cookie is valid only for its own page.
    """

    def __init__(self, db: Database, settings: Settings) -> None:
        self._db = db
        self._root = urlsplit(settings.base_url)
        self._life_s = settings.link_invoice_expiry_min * 60

    @cached_property
    def _key(self) -> str:
        """The stored signing key. Creates the key if there is none."""
        new_key = random_base62(SECRET_CHARACTERS)
        return meta.keep(self._db, meta.Key.COOKIE_KEY, new_key)

    def _signer(self, link_id: str) -> URLSafeSerializer:
        return URLSafeSerializer(
            self._key, salt=link_id, signer_kwargs={"digest_method": hashlib.sha256}
        )

    def invoice_id_of_form(self, link_id: str, form_id: str) -> str | None:
        """Returns the id of the invoice that this form of the page `link_id` creates.

        A form that is sent again gets the same id. Nobody can compute the id without the
        signing key. Returns None if `form_id` is malformed.
        """
        if not _FORM_ID.fullmatch(form_id):
            return None
        return derived_id("inv", self._key, f"form {link_id} {form_id}")

    def next_invoice_id(self, invoice_id: str) -> str:
        """Returns the id of the invoice that may follow the paid invoice `invoice_id`.

        The rate limit does not count this next invoice. Its id depends only on
        `invoice_id`, so each paid invoice has a single next one. Nobody can compute the
        id without the signing key.
        """
        return derived_id("inv", self._key, f"after {invoice_id}")

    def last_invoice_id(self, link_id: str) -> str | None:
        """Returns the id of the last invoice that this browser created on the page.

        Returns None if the request has no cookie, or one with an invalid signature.
        """
        cookie = request.cookies.get(COOKIE)
        # If there is no key, no cookie was signed. Reading a cookie does not create a
        # key.
        if not cookie or meta.get(self._db, meta.Key.COOKIE_KEY) is None:
            return None
        try:
            id = self._signer(link_id).loads(cookie)
        except BadData:
            return None
        if isinstance(id, str) and is_id("inv", id):
            return id
        return None

    def remember(self, response: Response, link_id: str, invoice_id: str) -> None:
        """Sets the cookie with this invoice's id.

        The cookie lasts as long as an unpaid invoice of a payment link does.
        """
        response.set_cookie(
            COOKIE,
            str(self._signer(link_id).dumps(invoice_id)),
            max_age=self._life_s,
            path=self._root.path + request.path,
            secure=self._root.scheme == "https",
            httponly=True,
            samesite="Lax",
        )
