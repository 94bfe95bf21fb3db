"""What the till offers as a tip: whole percentages, or none while a merchant has set none."""

from btcpay.values.errors import CommandError
from storage.database import Database
from storage.queries import merchants

MOST_TIPS = 4
MOST_PERCENT = 50


def read_tips(text: str) -> list[int]:
    """Percentages from `5 10 15` or `5 %, 10 %`, none from an empty text. Raises CommandError."""
    words = text.replace(",", " ").replace("%", " ").split()
    percents = [int(word) for word in words if word.isdecimal() and len(word) <= 2]
    if len(percents) != len(words) or len(words) > MOST_TIPS:
        raise CommandError(f"tips are up to {MOST_TIPS} whole percentages, such as 5 10 15")
    if not all(1 <= percent <= MOST_PERCENT for percent in percents):
        raise CommandError(f"a tip is from 1 to {MOST_PERCENT} percent")
    return percents


def set_tips(db: Database, merchant_id: int, percents: list[int]) -> None:
    """Without any the till asks for no tip."""
    text = " ".join(map(str, percents)) or None
    with db.write():
        db.run(merchants.SET_TIPS, id=merchant_id, tip_percents=text)
