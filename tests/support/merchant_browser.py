"""A merchant's browser without a screen: it logs in, keeps the cookie, sends forms."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from storage.queries.sessions import new_login
from tests.support.browser import Tab
from tests.support.builders import Shop
from tests.support.hosted import Hosted
from tests.support.paths import GONE
from tests.support.payer import Page

FROM_THIS_SITE = {"Sec-Fetch-Site": "same-origin"}
ON = {"BLOCKTILL_MERCHANT_PAGES": "on"}  # for `open_shops`


@dataclass
class MerchantBrowser:
    """Follows no redirect by itself."""

    shop: Shop
    client: FlaskClient = field(init=False)

    def __post_init__(self) -> None:
        self.client = self.shop.client

    def log_in(
        self, merchant_id: int | None = None, till_only: bool = False
    ) -> "MerchantBrowser":
        """By a fresh link, of the first merchant unless another is named.

        Without the pages there is nothing to test: then the test is skipped.
        """
        if "merchant_pages" in GONE:
            pytest.skip("the part was deleted")
        owner_id = merchant_id or self.shop.merchant_id
        secret = new_login(self.shop.service.db, owner_id, self.shop.clock(), till_only)
        answer = self.client.post(f"/merchant/login/{secret}", headers=FROM_THIS_SITE)
        assert answer.status_code == 303
        return self

    def get(self, path: str = "", **kwargs: Any) -> TestResponse:
        """A page or a file below /merchant, read to its end unless `buffered` says no."""
        return self.client.get(f"/merchant{path}", **{"buffered": True} | kwargs)

    def page(self, path: str = "", **kwargs: Any) -> Page:
        """A page that must be there."""
        answer = self.get(path, **kwargs)
        assert answer.status_code == 200, answer.text
        return Page(answer.text)

    def post(self, path: str, token: str | None = None, **fields: str) -> TestResponse:
        """A form with the token that a page shows, or another one; read to its end."""
        return self.client.post(
            f"/merchant{path}",
            data={"token": self.token() if token is None else token, **fields},
            headers=FROM_THIS_SITE,
            buffered=True,
        )

    def token(self) -> str:
        """The token in the forms of this session."""
        return self.page("/till").values["token"]


def log_in(tab: Tab, hosted: Hosted, till_only: bool = False) -> Tab:
    """As the merchant does in a real browser: opens a fresh link, presses its button."""
    shop = hosted.shop
    secret = new_login(shop.service.db, shop.merchant_id, hosted.clock(), till_only)
    tab.go(f"{hosted.root}/merchant/login/{secret}")
    tab.click("#log-in")
    tab.until(f"location.pathname === '/merchant{'/till' if till_only else ''}'")
    return tab
