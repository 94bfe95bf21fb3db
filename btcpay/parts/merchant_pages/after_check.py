"""Deletes old API requests after each check (the cron job that reads blocks)."""

from datetime import datetime

from btcpay import hooks
from btcpay.parts.merchant_pages.developers.key_requests import forget_old
from btcpay.settings.settings import Settings
from btcpay.values.times import to_ms
from storage.database import Database


def on_check(db: Database, settings: Settings, now: datetime) -> None:
    forget_old(db, to_ms(now))


HOOK = hooks.AfterCheck(on_check=on_check)
