"""A payer in this process: reads pages by their ids, and presses a link's button."""

import json
import re
from html.parser import HTMLParser
from typing import Any

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tests.support.builders import Shop


class Page(HTMLParser):
    """A page by its ids: `texts` and `attributes` of each element that has one."""

    VOID = frozenset({"meta", "link", "img", "input", "br", "wbr"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.source = text
        self.texts: dict[str, str] = {}
        self.attributes: dict[str, dict[str, Any]] = {}
        self.tags: list[tuple[str, dict[str, Any]]] = []
        self._open: list[str | None] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.tags.append((tag, named))
        if id := named.get("id"):
            assert id not in self.attributes, f"two elements with the id {id}"
            self.attributes[id], self.texts[id] = named, ""
        if tag not in self.VOID:
            self._open.append(id)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        self._open.pop()

    def handle_data(self, data: str) -> None:
        for id in filter(None, self._open):
            self.texts[id] += data

    @property
    def state(self) -> str:
        return self.attributes["main"]["data-state"]

    @property
    def status(self) -> dict[str, Any]:
        return json.loads(self.attributes["main"]["data-status"])

    @property
    def values(self) -> dict[str, str]:
        """The values of its forms' fields, by their names; of two the last."""
        fields = (
            attrs for tag, attrs in self.tags if tag == "input" and "name" in attrs
        )
        return {attrs["name"]: attrs.get("value") or "" for attrs in fields}

    @property
    def uri(self) -> str | None:
        return self.attributes.get("open-wallet", {}).get("href")

    @property
    def asks_for_money(self) -> bool:
        return "qr" in self.attributes or "bitcoin:" in self.source


def press(
    client: FlaskClient, link: dict[str, Any], amount: str = "", **kw: Any
) -> TestResponse:
    return client.post(f"/link/{link['id']}", data={"amount": amount}, **kw)


def made(response: TestResponse) -> str:
    """The id of the invoice that the answer leads to."""
    assert response.status_code == 303, response.text
    return re.fullmatch(
        r"\.\./pay/(inv_\w+)(\?lang=\w\w)?", response.headers["Location"]
    )[1]


def count(shop: Shop) -> int:
    return len(shop.get("/invoices?limit=100").json["data"])
