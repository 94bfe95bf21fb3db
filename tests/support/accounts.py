"""Accounts of every form on regtest, whose private keys the tests have."""

from dataclasses import replace
from typing import Any

from btcpay.bitcoin.tx import Outpoint, Tx, TxIn, TxOut, parse_tx
from btcpay.bitcoin.wire import ser_string
from btcpay.merchants.account import stored_account
from btcpay.merchants.merchants import add_merchant
from btcpay.sandbox.node.script import script_of
from btcpay.sandbox.payer.key import Key
from btcpay.sandbox.payer.signing import RBF_SEQUENCE, SIGHASH_ALL, witness_preimage
from tests.support.builders import Shop
from tests.support.fake_esplora import Json, Till
from tests.support.hd_wallet import HdWallet
from tests.support.spending import (
    Coin,
    bit_key,
    bit_multisig,
    spend_by_bit,
    spend_p2wpkh,
)

WALLETS = [HdWallet.from_seed(f"signer {n} of the tests".encode()) for n in range(3)]
FORMS = {
    "p2pkh": "pkh({})",
    "p2wpkh": "wpkh({})",
    "p2sh-p2wpkh": "sh(wpkh({}))",
    "p2tr": "tr({})",
    "p2wsh": "wsh(sortedmulti(2,{},{},{}))",
    "p2sh-p2wsh": "sh(wsh(multi(2,{},{},{})))",
    "p2sh": "sh(sortedmulti(2,{},{},{}))",
}
FEE_SATS = 1_000
# that can be sent
LEAST_SATS = dict(zip(FORMS, (546, 294, 540, 330, 330, 540, 540), strict=True))


def path_of(name: str) -> str:
    return f"m/48'/1'/{list(FORMS).index(name)}'/2'"


def descriptor_of(name: str) -> str:
    return FORMS[name].format(
        *(f"{wallet.at(path_of(name)).xpub()}/0/*" for wallet in WALLETS)
    )


# The argument that is added, and the least that can be sent to its addresses.
ACCOUNTS = {name: (descriptor_of(name), LEAST_SATS[name]) for name in FORMS}


class Owner:
    """A merchant with such an account, and its wallet."""

    def __init__(self, shop: Shop, name: str) -> None:
        self._shop = shop
        self._name = name
        db = shop.service.db
        account = stored_account(descriptor_of(name))
        self.merchant_id = add_merchant(db, name, account, shop.clock()).id
        self.key = shop.issue("write", self.merchant_id)
        self._indexes: dict[str, int] = {}

    def invoice(self) -> dict[str, Any]:
        made = self._shop.post("/invoices", {"amount_usd": 25}, self.key).json
        self._indexes[made["id"]] = len(self._indexes)
        return made

    def status(self, invoice: dict[str, Any]) -> str:
        return self._shop.get(f"/invoices/{invoice['id']}", self.key).json["status"]

    def balance(self) -> tuple[int, int]:
        body = self._shop.get("/balance", self.key).json
        return body["confirmed_sats"], body["total_sats"]

    def spend(self, invoice: dict[str, Any], txid: str, vout: int, to: str) -> Tx:
        """Moves what paid the invoice in full, less a fee; of p2tr the signature is none."""
        sats = invoice["amount_sats"]
        index = self._indexes[invoice["id"]]
        script = stored_account(descriptor_of(self._name)).script(index)
        coin = Coin(Outpoint(txid, vout), TxOut(sats, script), 0)
        path = path_of(self._name)
        keys = [Key(wallet.at(f"{path}/0/{index}").secret) for wallet in WALLETS]
        if "sortedmulti" in FORMS[self._name]:
            keys = sorted(keys, key=lambda key: key.public_key)
        part = (to, sats - FEE_SATS)
        outputs = (TxOut(part[1], script_of(to)),)
        match self._name:
            case "p2tr":
                return Tx(
                    2,
                    (TxIn(coin.outpoint, b"", RBF_SEQUENCE, (bytes(64),)),),
                    outputs,
                    0,
                )
            case "p2wpkh":
                return spend_p2wpkh(keys[0], [coin], outputs)
            case "p2wsh":
                return _spend_p2wsh(keys, coin, outputs)
            case "p2sh" | "p2sh-p2wsh":
                two = [keys[0].secret, keys[2].secret]
                signers = bit_multisig(two, [key.public_key for key in keys])
            case _:
                signers = [bit_key(keys[0].secret)]
        return parse_tx(
            spend_by_bit(signers, [coin], [part], fee=FEE_SATS, absolute_fee=True)
        )


class Sweeper(Owner):
    """Adds itself to a till's shop; `keep_shop` leaves the shop's keys with its first merchant."""

    def __init__(self, till: Till, keep_shop: bool = False) -> None:
        super().__init__(till.shop, "p2wpkh")
        self._till = till
        if not keep_shop:
            till.shop.write_key = till.shop.read_key = self.key

    @property
    def total_sats(self) -> int:
        """The merchant's balance as the shop tells it, waiting money included."""
        return self.balance()[1]

    def sweep(self, invoice: Json, txid: str) -> None:
        """Moves the first output of `txid`, which paid this invoice in full; waits to be mined."""
        sandbox = self._till.sandbox
        tx = self.spend(invoice, txid, 0, sandbox.wallet.address)
        sandbox.chain.accept(tx.raw, self._till.now)


def _spend_p2wsh(keys: list[Key], coin: Coin, outputs: tuple[TxOut, ...]) -> Tx:
    """Signed by the first and the last in the script."""
    script = (
        b"\x52" + b"".join(ser_string(key.public_key) for key in keys) + b"\x53\xae"
    )
    unsigned = Tx(2, (TxIn(coin.outpoint, b"", RBF_SEQUENCE),), outputs, 0)
    preimage = witness_preimage(unsigned, 0, script, coin.output.value_sats)
    signatures = [
        key.sign(preimage) + bytes([SIGHASH_ALL]) for key in (keys[0], keys[2])
    ]
    signed = unsigned.inputs[0]._replace(witness=(b"", *signatures, script))
    return replace(unsigned, inputs=(signed,))
