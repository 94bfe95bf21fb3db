"""Every path of the merchant's pages, as the service has them: a new page is among them."""

import re
from collections.abc import Iterator, Sequence
from itertools import product

from tests.support.builders import Shop

ROOT = "/merchant"
VARIABLE = re.compile(r"<(?:\w+:)?(\w+)>")


def rules(shop: Shop, method: str) -> list[str]:
    """The rules that are served to who is logged in, without what stands before them."""
    return sorted(
        rule.rule.removeprefix(ROOT)
        for rule in shop.app.url_map.iter_rules()
        if rule.endpoint.startswith("merchant.")
        and method in (rule.methods or ())
        and not rule.rule.startswith((f"{ROOT}/login", f"{ROOT}/start/", "/file/"))
        and rule.rule != f"{ROOT}/"  # leads whoever asks to ROOT
    )


def filled(rule: str, ids: Sequence[str]) -> Iterator[str]:
    """The rule with each of the ids in each of its places."""
    names = VARIABLE.findall(rule)
    for values in product(ids, repeat=len(names)):
        path = rule
        for value in values:
            path = VARIABLE.sub(value, path, count=1)
        yield path
