"""Accounts of every form on regtest, whose private keys the tests have."""

import hashlib
from typing import Any

from bitcoin_node import Coin, legacy_preimage
from bitcoin_node import sign as sign_by_one
from builders import REGTEST, Shop
from hd_wallet import HdWallet

from btcpay.bitcoin.tx import Outpoint, Tx, TxIn, TxOut
from btcpay.bitcoin.wire import prefixed
from btcpay.merchants.account import parse_account
from btcpay.merchants.merchants import add_merchant
from btcpay.sandbox.payer.coins import SIGHASH_ALL, witness_preimage
from btcpay.sandbox.payer.key import Key

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
LEAST_SATS = dict(zip(FORMS, (546, 294, 540, 330, 330, 540, 540), strict=True))  # that can be sent


def path_of(name: str) -> str:
    return f"m/48'/1'/{list(FORMS).index(name)}'/2'"


def descriptor_of(name: str) -> str:
    return FORMS[name].format(*(f"{wallet.at(path_of(name)).xpub()}/0/*" for wallet in WALLETS))


# What is added, and the least that can be sent to its addresses.
ACCOUNTS = {name: (descriptor_of(name), LEAST_SATS[name]) for name in FORMS}


class Owner:
    """A merchant with such an account, and its wallet."""

    def __init__(self, shop: Shop, name: str) -> None:
        self._shop, self._name = shop, name
        db, account = shop.service.db, parse_account(descriptor_of(name), REGTEST)
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

    def spend(self, invoice: dict[str, Any], txid: str, vout: int, to: bytes) -> Tx:
        """Moves what paid the invoice in full, less a fee; of p2tr the signature is none."""
        sats, index = invoice["amount_sats"], self._indexes[invoice["id"]]
        script = parse_account(descriptor_of(self._name), REGTEST).script(index)
        coin = Coin(Outpoint(txid, vout), TxOut(sats, script), 0)
        path, outputs = f"{path_of(self._name)}/0/{index}", [TxOut(sats - 1000, to)]
        keys = [Key(wallet.at(path).secret) for wallet in WALLETS]
        if "multi" in FORMS[self._name]:
            return _sign_by_two(self._name, keys, coin, outputs)
        if self._name == "p2tr":
            return Tx(2, (TxIn(coin.outpoint, b"", 0xFFFFFFFD, (bytes(64),)),), tuple(outputs), 0)
        return sign_by_one(keys[0], [coin], outputs)


def _sign_by_two(name: str, keys: list[Key], coin: Coin, outputs: list[TxOut]) -> Tx:
    """The first and the last in the script."""
    if "sortedmulti" in FORMS[name]:
        keys = sorted(keys, key=lambda key: key.public_key)
    script = b"\x52" + b"".join(prefixed(key.public_key) for key in keys) + b"\x53\xae"
    unsigned = Tx(2, (TxIn(coin.outpoint, b"", 0xFFFFFFFD),), tuple(outputs), 0)
    if name == "p2sh":
        preimage = legacy_preimage(unsigned, 0, script)
    else:
        preimage = witness_preimage(unsigned, 0, script, coin.output.value_sats)
    signatures = [key.sign(preimage) + bytes([SIGHASH_ALL]) for key in (keys[0], keys[2])]
    if name == "p2sh":
        pushes = b"\x00" + b"".join(map(prefixed, signatures)) + b"\x4c" + prefixed(script)
        return Tx(2, (unsigned.inputs[0]._replace(script_sig=pushes),), unsigned.outputs, 0)
    program = b"\x00\x20" + hashlib.sha256(script).digest()
    signed = unsigned.inputs[0]._replace(
        script_sig=prefixed(program) if name == "p2sh-p2wsh" else b"",
        witness=(b"", *signatures, script),
    )
    return Tx(2, (signed,), unsigned.outputs, 0)
