"""A shop's key by the command line: what it is bound to, and where it is typed."""

import re

import pytest

from tests.support.forge import forge
from tests.support.plug_in import SHOP

SECRET = re.compile("sk_test_[0-9A-Za-z]{43}")


@pytest.mark.both_databases
def test_a_shops_key_is_printed_below_where_it_is_used(shop):
    def issued(plugin, url=SHOP, status=0, **environ):
        words = ["key", "issue", "shop", "--for", plugin, "--shop", url]
        ended = forge().run(shop.environ | environ, words)
        assert ended.status == status, ended.errors
        return ended.output.splitlines(), ended.errors

    (base_url, store_id, secret), said = issued("woocommerce")
    assert base_url == shop.service.settings.base_url and SECRET.fullmatch(secret)
    assert (
        "answered by run and by the sandbox; serve wants BLOCKTILL_GREENFIELD=on"
        in said
    )
    assert "canmodifystoresettings" not in said
    for plugin in ("magento", "prestashop"):
        lines, said = issued(plugin, BLOCKTILL_GREENFIELD="on")
        assert lines[:2] == [base_url, store_id] and "BLOCKTILL_GREENFIELD" not in said
        unhonoured = (
            "canmodifystoresettings is there because its plug-in wants it:"
            " it changes nothing"
        )
        assert (unhonoured in said) == (plugin == "prestashop")
    assert issued("any", "ftp://shop.example", status=1)[0] == []
    for words in (
        ["--for", "any"],
        ["--shop", SHOP],
        ["--scope", "read", "--shop", SHOP],
    ):
        assert forge().run(shop.environ, ["key", "issue", "shop", *words]).status == 2
