"""Merchants and their address counters."""

from storage.database import slot, slots
from storage.models import Merchant

ALL = Merchant.select().order_by(Merchant.id)
BY_NAME = Merchant.select().where(Merchant.name == slot("name"))
BY_ACCOUNT_KEY = Merchant.select().where(Merchant.account_key == slot("account_key"))
BY_ID = Merchant.select().where(Merchant.id == slot("id"))

ADD = Merchant.insert(
    slots(
        Merchant.name,
        Merchant.script_type,
        Merchant.xpub,
        Merchant.account_key,
        Merchant.next_index,
        Merchant.created_at,
    )
)

# Takes the next address index, once and for all; the row stays locked until the transaction ends.
TAKE_INDEX = (
    Merchant.update({Merchant.next_index: Merchant.next_index + 1})
    .where(Merchant.id == slot("id"))
    .returning(Merchant.next_index, Merchant.script_type, Merchant.xpub)
)

# An address counter moves forward only, whoever else has moved it meanwhile.
FORWARD = Merchant.update(slots(Merchant.next_index)).where(
    (Merchant.id == slot("id")) & (Merchant.next_index < slot("next_index"))
)

SAY_GAP = Merchant.update(slots(Merchant.wallet_gap_limit)).where(Merchant.id == slot("id"))

# Once an hour one funded address is asked whether its coin has moved. If it has, all others are
# asked. So it is when a coin was said to be spent: nobody has proven that.
TO_PROBE = Merchant.select(
    Merchant.id, Merchant.probed_at, Merchant.swept_at, Merchant.unspent_at
).where(
    Merchant.probed_at.is_null()
    | (Merchant.probed_at < slot("before"))
    | (Merchant.probed_at > slot("now"))
    | Merchant.swept_at.is_null(False)
    | Merchant.unspent_at.is_null(False)
)
PROBED = Merchant.update({Merchant.probed_at: slot("at")}).where(Merchant.id == slot("id"))
# An address that was asked for another one's sake does not start all over again.
COIN_MOVED = Merchant.update({Merchant.swept_at: slot("at")}).where(
    (Merchant.id == slot("id"))
    & (Merchant.swept_at.is_null() | (Merchant.swept_at <= slot("checked_at")))
)
COIN_MOVED_DONE = Merchant.update({Merchant.swept_at: None}).where(
    (Merchant.id == slot("id")) & (Merchant.swept_at == slot("swept_at"))
)
UNSPENT = Merchant.update({Merchant.unspent_at: slot("at")}).where(
    (Merchant.id == slot("id"))
    & (Merchant.unspent_at.is_null() | (Merchant.unspent_at <= slot("checked_at")))
)
UNSPENT_DONE = Merchant.update({Merchant.unspent_at: None}).where(
    (Merchant.id == slot("id")) & (Merchant.unspent_at == slot("unspent_at"))
)
