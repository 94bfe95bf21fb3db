"""A shop's plug-in in the tests: its key, and requests as it sends them."""

from typing import Any

from werkzeug.test import TestResponse

from btcpay.merchants import keys
from btcpay.parts.greenfield.keys import PERMISSIONS, store_of
from tests.support.builders import Shop

SHOP = "https://shop.example"


class GreenfieldShop:
    """A key of a shop at `url`; `shop` is the service."""

    def __init__(
        self, shop: Shop, plugin: str = "any", url: str = SHOP, merchant_id: int = 0
    ):
        network = shop.service.settings.network
        owner_id = merchant_id or shop.merchant_id
        db = shop.service.db
        now = shop.clock()
        self.shop = shop
        self.url = url
        self.store = store_of(db, owner_id, url, now)
        of_shop = (self.store, PERMISSIONS[plugin])
        self.issued = keys.issue(db, network, owner_id, "write", plugin, now, *of_shop)

    def ask(
        self, method: str, path: str, json: Any = None, **kwargs: Any
    ) -> TestResponse:
        """A request below /api/v1, in which STORE stands for the store."""
        headers = {"Authorization": f"token {self.issued.secret}"} | kwargs.pop(
            "headers", {}
        )
        if json is not None:
            kwargs["json"] = json
        path = f"/api/v1{path.replace('STORE', self.store)}"
        return self.shop.client.open(path, method=method, headers=headers, **kwargs)

    def order(
        self, amount: str = "25.00", currency: str = "USD", **fields: Any
    ) -> dict[str, Any]:
        body = {"amount": amount, "currency": currency} | fields
        response = self.ask("POST", "/stores/STORE/invoices", body)
        assert response.status_code == 200, response.text
        return response.json

    def seen(self, order: dict[str, Any]) -> dict[str, Any]:
        return self.ask("GET", f"/stores/STORE/invoices/{order['id']}").json
