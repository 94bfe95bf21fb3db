"""Parses the JSON files of Jade and Sparrow, which list the signers of an account.

Sources: Blockstream Jade's documentation of register_multisig; Sparrow's classes Wallet
and Keystore, as they are written to JSON.
"""

import re
from typing import Any

from btcpay.merchants.wallet_text.contents import Contents, TextRefused
from btcpay.merchants.wallet_text.json_fields import Object
from btcpay.merchants.wallet_text.keys import KEY, WalletKey, origin_of, read_key
from btcpay.merchants.wallet_text.lone_keys import LoneKey, take_keys
from btcpay.merchants.wallet_text.multisig import take_multisig

NO_QUORUM = (
    "the file does not say how many of its keys must sign, and for which kind of addresses:"
    " export an output descriptor"
)
_NOT_WHOLE = (
    "a signer in the file lacks its key, or has a path that is not read here: export an output"
    " descriptor"
)
_JADE_VARIANTS = {
    "wsh(multi(k))": "p2wsh",
    "sh(wsh(multi(k)))": "p2sh-p2wsh",
    "sh(multi(k))": "p2sh",
}
_HARDENED = 2**31  # BIP32
_SPARROW_SCRIPT = re.compile(
    r"(?:sh\(|wsh\(){1,2}(?P<function>sortedmulti|multi)"
    r"\((?P<threshold>[0-9]{1,2}),(?P<signers>[\w ,-]{1,400})\){2,3}"
)
_SINGLE_TYPES = ("p2pkh", "p2wpkh", "p2sh-p2wpkh", "p2tr")


def take_jade(contents: Contents, node: Object) -> bool:
    """Adds the multisig account of Jade's file. Returns False if the object has another form.

    Raises TextRefused if a field is missing or invalid.
    """
    variant = node.get("variant")
    signers = node.get("signers")
    if not isinstance(variant, str) or not isinstance(signers, list):
        return False
    script_type = _JADE_VARIANTS.get(re.sub(r"\s+", "", variant).lower())
    threshold = node.get("threshold")
    is_sorted = node.get("sorted")
    # `isinstance` would accept true and false as integers.
    if script_type is None or type(threshold) is not int or type(is_sorted) is not bool:
        raise TextRefused(NO_QUORUM)
    keys = []
    for signer in signers:
        if not isinstance(signer, dict) or signer.get("path"):
            raise TextRefused(_NOT_WHOLE)
        path = _path_of(signer.get("derivation"))
        keys.append(_key_of(signer.get("xpub"), signer.get("fingerprint"), path))
    function = "multi"
    if is_sorted:
        function = "sortedmulti"
    take_multisig(contents, script_type, threshold, keys, function=function)
    return True


def _path_of(derivation: Any) -> str:
    """Returns a path such as m/48'/0' from a text or a list of numbers; "" for other values."""
    if isinstance(derivation, str):
        return derivation
    if not isinstance(derivation, list):
        return ""
    if any(type(step) is not int for step in derivation):
        return ""
    path = "m"
    for step in derivation:
        mark = ""
        if step >= _HARDENED:
            mark = "'"
        path += f"/{step % _HARDENED}{mark}"
    return path


def _key_of(text: Any, fingerprint: Any, path: Any) -> WalletKey:
    match = KEY.fullmatch(str(text).strip())
    if match is None:
        raise TextRefused(_NOT_WHOLE)
    key = read_key(match["key"])
    return key._replace(origin=origin_of(fingerprint, path))


def take_sparrow(contents: Contents, node: Object) -> bool:
    """Adds the account to `contents` if `node`, an object of the file, is of Sparrow's form.

    Returns False if it has another form.

    Raises TextRefused if a field is missing or invalid.
    """
    policy_type = node.get("policyType")
    script_type = node.get("scriptType")
    stores = node.get("keystores")
    if not isinstance(policy_type, str) or not isinstance(script_type, str):
        return False
    if not isinstance(stores, list):
        return False
    script_type = script_type.lower().replace("_", "-")
    keys = [_key_of_store(store) for store in stores]
    if policy_type.upper() == "SINGLE":
        if len(keys) != 1 or script_type not in _SINGLE_TYPES:
            raise TextRefused(_NOT_WHOLE)
        take_keys(contents, [LoneKey(keys[0], script_type)])
        return True
    script = _SPARROW_SCRIPT.fullmatch(_policy_of(node))
    if script is None or len(script["signers"].split(",")) != len(keys):
        raise TextRefused(NO_QUORUM)
    take_multisig(
        contents,
        script_type,
        threshold=int(script["threshold"]),
        keys=keys,
        name=str(node.get("label") or node.get("name") or ""),
        function=script["function"],
    )
    return True


def _key_of_store(store: Any) -> WalletKey:
    """Returns the key of one signer in Sparrow's file. Raises TextRefused if there is none."""
    if not isinstance(store, dict):
        raise TextRefused(_NOT_WHOLE)
    derivation = store.get("keyDerivation")
    if not isinstance(derivation, dict):
        derivation = {}
    fingerprint = derivation.get("masterFingerprint")
    path = derivation.get("derivation")
    return _key_of(store.get("extendedPublicKey"), fingerprint, path)


def _policy_of(node: Object) -> str:
    """Returns the script of the file's default policy, without blanks; "" if there is none."""
    policy = node.get("defaultPolicy")
    if isinstance(policy, dict):
        policy = policy.get("miniscript")
    if isinstance(policy, dict):
        policy = policy.get("script")
    if isinstance(policy, str):
        return re.sub(r"\s+", "", policy)
    return ""
