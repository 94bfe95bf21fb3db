"""Electrum's receiving addresses of accounts of each form that it has, from the keys it shows."""

import json
import subprocess

from btcpay.merchants.account import derive
from tests.support.accounts import FORMS, WALLETS, descriptor_of, path_of
from tests.support.browser import lack
from tests.support.builders import REGTEST

# SLIP-132: what Electrum calls the kind of account by. It sorts the keys of several.
VERSIONS = {
    "p2pkh": "043587cf", "p2wpkh": "045f1cf6", "p2sh-p2wpkh": "044a5262", "p2wsh": "02575483",
    "p2sh-p2wsh": "024289ef", "p2sh": "043587cf",
}  # fmt: skip
# Debian's package belongs to Debian's Python.
ELECTRUM = """
import json, sys
from electrum import constants, keystore, util
from electrum.simple_config import SimpleConfig
from electrum.wallet import Multisig_Wallet, Standard_Wallet
from electrum.wallet_db import WalletDB
loop, stop, _ = util.create_and_start_event_loop()
constants.set_regtest()
found = {}
for name, keys in json.load(sys.stdin).items():
    db = WalletDB("", manual_upgrades=False)
    stores = [keystore.from_master_key(key).dump() for key in keys]
    db.put("wallet_type", "standard" if len(keys) == 1 else "2of3")
    for number, store in enumerate(stores):
        db.put("keystore" if len(keys) == 1 else f"x{number + 1}/", store)
    kind = Standard_Wallet if len(keys) == 1 else Multisig_Wallet
    wallet = kind(db, None, config=SimpleConfig({"electrum_path": sys.argv[1]}))
    wallet.synchronize()
    found[name] = wallet.get_receiving_addresses()
print(json.dumps(found))
loop.call_soon_threadsafe(stop.set_result, 1)
"""


def test_addresses_are_those_of_electrum(tmp_path):
    keys = {
        name: [
            wallet.at(path_of(name)).xpub(bytes.fromhex(version))
            for wallet in WALLETS[: FORMS[name].count("{}")]
        ]
        for name, version in VERSIONS.items()
    }
    words = ["/usr/bin/python3", "-c", ELECTRUM, str(tmp_path)]
    done = subprocess.run(words, input=json.dumps(keys), capture_output=True, text=True)
    if "ModuleNotFoundError: No module named 'electrum'" in done.stderr:
        lack("needs Debian's electrum")
    assert done.returncode == 0, done.stderr
    for name, addresses in json.loads(done.stdout).items():
        descriptor = descriptor_of(name).replace("(multi(", "(sortedmulti(")
        assert len(addresses) == 20
        assert addresses == [
            derive(descriptor, index, REGTEST) for index in range(20)
        ], name
