"""A merchant whose wallet the test has, so that coins can be moved: BIP49, as the sandbox signs."""

from builders import REGTEST
from fake_esplora import Json, Till
from hd_wallet import HdWallet

from btcpay.bitcoin.tx import Outpoint, TxOut
from btcpay.merchants.account import parse_account
from btcpay.merchants.merchants import add_merchant
from btcpay.sandbox.payer.coins import Spendable, sign
from btcpay.sandbox.payer.key import Key
from storage.queries.totals import balances


class Sweeper:
    """Adds itself to a till's shop; `keep_shop` leaves the shop's keys with its first merchant."""

    def __init__(self, till: Till, keep_shop: bool = False) -> None:
        self._till = till
        self._wallet = HdWallet.from_seed(b"sweeper of the tests")
        xpub = self._wallet.at("m/49'/1'/0'").xpub()
        db, shop = till.shop.service.db, till.shop
        account = parse_account(xpub, REGTEST, "p2sh-p2wpkh")
        self.merchant_id = add_merchant(db, "sweeper", account, till.clock())["id"]
        self.key = shop.issue("write", self.merchant_id)
        if not keep_shop:
            shop.write_key = shop.read_key = self.key
        self._indices: dict[str, int] = {}

    def invoice(self) -> Json:
        made = self._till.shop.post("/invoices", {"amount_usd": 25}, self.key).json
        self._indices[made["id"]] = len(self._indices)
        return made

    @property
    def total_sats(self) -> int:
        """What the shop says that this merchant has, waiting money too."""
        db = self._till.shop.service.db
        return db.only(balances.OF_MERCHANT, merchant_id=self.merchant_id)["total_sats"]

    def sweep(self, invoice: Json, txid: str) -> None:
        """Moves the first output of `txid`, which paid this invoice in full; waits to be mined."""
        path = f"m/49'/1'/0'/0/{self._indices[invoice['id']]}"
        key = Key(self._wallet.at(path).secret)
        sats, wallet = invoice["amount_sats"], self._till.sandbox.wallet
        coin = Spendable(Outpoint(txid, 0), sats, waiting=False)
        raw = sign(key, [coin], [TxOut(sats - 1_000, wallet.script)])
        self._till.sandbox.chain.accept(raw, self._till.now)
