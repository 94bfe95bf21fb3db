"""Links to files of payments, which open without a session: for a bookkeeper, until revoked."""

from storage.models import FileLink
from storage.statement import needed, same, slot

_LIVES = FileLink.expires_at > slot("now")

ADD = FileLink.insert(needed(FileLink))
BY_ID = FileLink.select().where(same(FileLink.id))
BY_SECRET = FileLink.select().where(same(FileLink.secret_sha256), _LIVES)
OF_MERCHANT = (
    FileLink.select()
    .where(same(FileLink.merchant_id), _LIVES)
    .order_by(FileLink.expires_at.desc(), FileLink.id)
)
REVOKE = FileLink.delete().where(same(FileLink.id))
FORGET = FileLink.delete().where(~_LIVES)
REVOKE_ALL = FileLink.delete()
