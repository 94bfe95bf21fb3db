"""Parses the JSON files of Electrum, Caravan and BTCPay Server, and wallet policies.

json_signers.py parses the files of Jade and Sparrow.
"""

import re
from typing import Any

from btcpay.merchants.wallet_text.contents import (
    Contents,
    TextRefused,
    refuse_missing_keys,
)
from btcpay.merchants.wallet_text.descriptors import (
    find_descriptors,
    take_descriptor,
)
from btcpay.merchants.wallet_text.json_fields import (
    FINGERPRINTS,
    PATHS,
    Object,
    field_of,
)
from btcpay.merchants.wallet_text.json_signers import NO_QUORUM
from btcpay.merchants.wallet_text.keys import KEY, WalletKey, origin_of, read_key
from btcpay.merchants.wallet_text.lone_keys import MASTER_KEY, LoneKey, take_keys
from btcpay.merchants.wallet_text.multisig import (
    FORMS,
    fill_policy,
    take_multisig,
    take_scheme,
)

_ELECTRUM_SEVERAL = re.compile(r"([0-9]{1,2})of([0-9]{1,2})")
# The names of fields with the template of a wallet policy.
_TEMPLATE_FIELDS = (
    "description_template",
    "descriptor_template",
    "descriptorTemplate",
    "template",
)


def take_known_form(contents: Contents, node: Object) -> bool:
    """Adds the account of an object in one of this module's forms.

    Returns False if the object has none of these forms. Raises TextRefused if a field is
    missing or invalid.
    """
    return (
        _take_policy(contents, node)
        or _take_quorum(contents, node)
        or _take_electrum(contents, node)
        or _take_btcpay(contents, node)
    )


def _take_policy(contents: Contents, node: Object) -> bool:
    """Adds the account of a wallet policy (BIP388). Returns False if the object is none."""
    templates = [
        node[name] for name in _TEMPLATE_FIELDS if isinstance(node.get(name), str)
    ]
    keys = node.get("keys_info") or node.get("keysInfo") or node.get("keys")
    if not templates or not isinstance(keys, list):
        return False
    text = fill_policy(templates[0], [str(key) for key in keys])
    name = str(node.get("name") or "")
    for descriptor in find_descriptors(text):
        take_descriptor(contents, descriptor, name)
    return True


def _take_quorum(contents: Contents, node: Object) -> bool:
    """Adds the multisig account of Caravan's file."""
    quorum = node.get("quorum")
    signers = node.get("extendedPublicKeys")
    if not isinstance(quorum, dict) or not isinstance(signers, list):
        return False
    threshold = quorum.get("requiredSigners")
    count = quorum.get("totalSigners")
    script_type = str(node.get("addressType", "")).lower()
    if not isinstance(threshold, int) or not isinstance(count, int):
        raise TextRefused(NO_QUORUM)
    if not 1 <= threshold <= count:
        raise TextRefused(NO_QUORUM)
    keys = _caravan_keys(signers)
    refuse_missing_keys(count, keys)
    if script_type not in FORMS:
        raise TextRefused(NO_QUORUM)
    name = str(node.get("name") or "")
    take_multisig(contents, script_type, threshold, keys, name=name)
    return True


def _caravan_keys(signers: list[Any]) -> list[WalletKey]:
    """Returns the keys of the signers in Caravan's file, each once, with their origins."""
    keys: dict[str, WalletKey] = {}
    for signer in signers:
        if not isinstance(signer, dict):
            continue
        match = KEY.fullmatch(str(signer.get("xpub", "")).strip())
        if match:
            key = read_key(match["key"])
            origin = origin_of(signer.get("xfp"), signer.get("bip32Path"))
            keys[key.xpub] = key._replace(origin=origin)
    return list(keys.values())


def _take_electrum(contents: Contents, node: Object) -> bool:
    """Adds the account of Electrum's wallet file, in which an xpub means p2pkh or p2sh."""
    wallet_type = node.get("wallet_type")
    if not isinstance(wallet_type, str):
        return False
    multisig_type = _ELECTRUM_SEVERAL.fullmatch(wallet_type)
    keys = _electrum_keys(contents, node)
    if multisig_type and keys:
        threshold, count = map(int, multisig_type.groups())
        refuse_missing_keys(count, keys)
        script_type = keys[0].version.script_type or "p2sh"
        take_multisig(contents, script_type, threshold, keys)
        return True
    if wallet_type != "standard" or len(keys) != 1:
        raise TextRefused(
            "this wallet of Electrum has no account of its own keys, or more than one: give the"
            " master public key of a standard or multisig wallet (Wallet, Information)"
        )
    take_keys(contents, [LoneKey(keys[0], keys[0].version.script_type or "p2pkh")])
    return True


def _electrum_keys(contents: Contents, node: Object) -> list[WalletKey]:
    """Returns the account keys in the keystores of Electrum's wallet file, with origins.

    Other extended public keys in a keystore are left out, and reported in `contents`.
    """
    keys = []
    for field, store in node.items():
        is_keystore = re.fullmatch("keystore|x[0-9]{1,2}/?", field)
        if not is_keystore or not isinstance(store, dict):
            continue
        match = KEY.fullmatch(str(store.get("xpub", "")).strip())
        if match:
            key = read_key(match["key"])
            origin = origin_of(store.get("root_fingerprint"), store.get("derivation"))
            keys.append(key._replace(origin=origin))
        for name, value in store.items():
            if name != "xpub" and KEY.fullmatch(str(value)):
                contents.leave_out(MASTER_KEY)
    return keys


def _take_btcpay(contents: Contents, node: Object) -> bool:
    """Adds the account of BTCPay Server's wallet settings."""
    fields = {name.lower(): value for name, value in node.items()}
    scheme = fields.get("accountderivation") or fields.get("derivationscheme")
    if not isinstance(scheme, str) or KEY.search(scheme) is None:
        return False
    take_scheme(contents, scheme, _btcpay_origins(fields.get("accountkeysettings")))
    return True


def _btcpay_origins(key_settings: Any) -> list[str]:
    """Returns the origins of the keys in BTCPay Server's list of settings; [] if it is none."""
    if not isinstance(key_settings, list):
        return []
    origins = []
    for setting in key_settings:
        if isinstance(setting, dict):
            fingerprint = field_of(setting, FINGERPRINTS)
            origins.append(origin_of(fingerprint, field_of(setting, PATHS)))
    return origins
