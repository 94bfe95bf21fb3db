"""The peewee models, from which the queries are built; the rules stand in the schema.

Times are int milliseconds since 1970 UTC, amounts int satoshis, dollars exact decimal text.
"""

from storage.models.money import (
    Attention,
    Balance,
    Event,
    MerchantDay,
    Output,
    Payment,
    Proof,
    Refund,
    RefundOutput,
)
from storage.models.service import Block, Explorer, ExplorerUse, Fact, IdempotencyKey, Peer, Tally
from storage.models.shop import (
    ApiKey,
    Bill,
    Brand,
    Delivery,
    FileLink,
    Invoice,
    Merchant,
    MerchantLogin,
    MerchantMail,
    MerchantSession,
    PaymentLink,
    PublicEvent,
    Receiver,
    Store,
)
