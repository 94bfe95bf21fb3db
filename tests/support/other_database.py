"""The same shop beside the same chain, on another database: after a restore, or carried over."""

import contextlib
from collections.abc import Iterator

from builders import Shop
from fake_esplora import Till

from app import create_app
from btcpay.settings import settings


@contextlib.contextmanager
def on(url: str, till: Till) -> Iterator[Till]:
    """The same shop beside the same chain, on another database."""
    environ = till.shop.environ | {"BTCPAY_DATABASE_URL": url}
    app = create_app(settings.read(environ), till.clock)
    shop = Shop(app, app.extensions["btcpay"], till.clock, environ, till.shop.merchant_id)
    shop.read_key, shop.write_key = till.shop.read_key, till.shop.write_key
    again = Till(shop, till.sandbox, till.clock)
    try:
        yield again
    finally:
        stop(again)


def stop(till: Till) -> None:
    """Nobody is connected any more: what was to be noted is, and the connections are closed."""
    till.shop.service.close()
    till.shop.close()
