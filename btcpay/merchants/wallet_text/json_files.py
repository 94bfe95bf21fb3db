"""Parses wallets' JSON files, both of known and of unknown forms.

A file of an unknown form is searched for descriptors and keys.
"""

import re
from collections.abc import Iterator

from btcpay.merchants.wallet_text.contents import (
    Contents,
    TextProblem,
    TextRefused,
)
from btcpay.merchants.wallet_text.descriptors import (
    CUT,
    DESCRIPTOR_END,
    find_descriptors,
    take_descriptor,
)
from btcpay.merchants.wallet_text.json_fields import (
    FINGERPRINTS,
    PATHS,
    JsonPath,
    Object,
    Tree,
    field_of,
)
from btcpay.merchants.wallet_text.json_forms import take_known_form
from btcpay.merchants.wallet_text.json_signers import take_jade, take_sparrow
from btcpay.merchants.wallet_text.keys import (
    KEY,
    WalletKey,
    find_keys,
    origin_of,
    read_key,
)
from btcpay.merchants.wallet_text.lone_keys import (
    LEDGER_COINS,
    LEDGER_ID_START,
    LEDGER_MODES,
    OTHER_COIN,
    LoneKey,
    take_keys,
)

# Field names that say nothing about an account, so that they are not used as its name.
_PLAIN_NAMES = frozenset(
    {
        "accounts", "account", "addresses", "change", "change_descriptor", "core_descriptors",
        "data", "desc", "descriptor", "descriptors", "details", "external", "extendedpublickeys",
        "extpubkey", "internal", "items", "key", "keys", "keystore", "original", "ourdescriptors",
        "raw", "receive", "receiving", "recv_descriptor", "result", "wallet", "wallets", "xpub",
        "_pub", "zpub", "ypub",
    }
)  # fmt: skip
# The names of fields that have a key. A path in the same object belongs to that key.
_KEYS = frozenset(
    {
        "xpub", "_pub", "zpub", "ypub", "key", "original", "extpubkey", "accountkey", "publickey",
        "pubkey", "extendedpublickey", "extended_public_key", "extendedpubkey", "masterpublickey",
        "slip132_extended_pubkey", "account_xpub", "accountxpub",
    }
)  # fmt: skip
_TAPROOT = "taproot"
_PATHS_OF_TAPROOT = frozenset({"taprootaccountkeypath"})
_KINDS = frozenset(
    {"name", "type", "script", "script_type", "scripttype", "addresstype", "address_type"}
)  # fmt: skip
_SCRIPT_TYPES = {
    "p2wpkh": "p2wpkh", "wpkh": "p2wpkh", "native_segwit": "p2wpkh",
    "p2sh-p2wpkh": "p2sh-p2wpkh", "p2wpkh-p2sh": "p2sh-p2wpkh", "sh-wpkh": "p2sh-p2wpkh",
    "p2sh_p2wpkh": "p2sh-p2wpkh", "p2wpkh_p2sh": "p2sh-p2wpkh", "sh_wpkh": "p2sh-p2wpkh",
    "p2pkh": "p2pkh", "pkh": "p2pkh", "p2tr": "p2tr", "tr": "p2tr", "taproot": "p2tr",
    "p2wsh": "p2wsh", "wsh": "p2wsh", "p2sh": "p2sh", "p2sh-p2wsh": "p2sh-p2wsh",
    "p2wsh-p2sh": "p2sh-p2wsh", "p2wsh_p2sh": "p2sh-p2wsh", "p2sh_p2wsh": "p2sh-p2wsh",
    "sh-wsh": "p2sh-p2wsh",
}  # fmt: skip
# By the field's name: the script type of a key if nothing else gives it (Wasabi's files).
_SCRIPT_TYPES_OF_FIELDS = {"extpubkey": "p2wpkh", "taprootextpubkey": "p2tr"}
_POLICY_KEY = re.compile("@[0-9]")
# The id of an account in Ledger Live's data; other files have ids such as urn:uuid:...
_LEDGER_ID = re.compile(f"{LEDGER_ID_START}:")
# The name of a field that says how many of several keys must sign.
_SIGNERS = re.compile(r"(?i)threshold|required|quorum|^m$")


def take_file(contents: Contents, trees: list[Tree]) -> None:
    """Adds the accounts in a file's JSON values to the contents.

    Raises TextRefused if the file is damaged, or if it has several signers in an
    unknown form.
    """
    for _, node in objects(trees):
        # These forms come first: they contain texts that look like descriptors without keys.
        if take_jade(contents, node) or take_sparrow(contents, node):
            _note_other_keys(contents, trees)
            return
    if _take_descriptors(contents, trees):
        return
    for _, node in objects(trees):
        if take_known_form(contents, node):
            return
    keys: list[LoneKey] = []
    says_signers = False
    for place, node in objects({"": trees}):
        keys += list(_keys_of(contents, place, node))
        says_signers = says_signers or any(map(_SIGNERS.search, node))
    if says_signers and len({lone.key.xpub for lone in keys}) > 1:
        raise TextRefused(
            "this is a file of several signers, in a form that is not read here: export an output"
            " descriptor"
        )
    take_keys(contents, keys)


def _note_other_keys(contents: Contents, trees: list[Tree]) -> None:
    """Adds a reason to `contents` if the file has a key that is in no account."""
    taken = {
        key.text for account in contents.candidates for key in account.descriptor.keys
    }
    for _, _, text in _texts({"": trees}):
        if {key.xpub for _, key in find_keys(text)} - taken:
            contents.leave_out("a key that is no signer's")


def objects(tree: Tree, place: JsonPath = ()) -> Iterator[tuple[JsonPath, Object]]:
    """Yields a pair for each object in a JSON value: its path of field names, and the object."""
    if isinstance(tree, dict):
        yield place, tree
        for name, value in tree.items():
            yield from objects(value, (*place, name))
    elif isinstance(tree, list):
        for value in tree:
            yield from objects(value, place)


def _texts(tree: Tree, place: JsonPath = ()) -> Iterator[tuple[JsonPath, Object, str]]:
    """Yields each text in a JSON value, with its path of field names, and its object."""
    for where, node in objects(tree):
        for name, value in node.items():
            for text in _texts_of(value):
                yield (*where, name), node, text


def _texts_of(value: Tree) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    if isinstance(value, list):
        for item in value:
            yield from _texts_of(item)


def _take_descriptors(contents: Contents, trees: list[Tree]) -> bool:
    """Adds the accounts of all descriptors. Returns True if there is a descriptor."""
    others: set[str] = set()
    described: set[str] = set()
    for place, node, text in _texts({"": trees}):
        descriptors = find_descriptors(text)
        for descriptor in descriptors:
            if _POLICY_KEY.search(descriptor.script):
                continue
            described.update(key.xpub for _, key in find_keys(descriptor.script))
            name = _name_of(place, node)
            take_descriptor(contents, descriptor, name, node.get("internal") is True)
        if not descriptors:
            if DESCRIPTOR_END.search(text):
                raise TextRefused(CUT, TextProblem.DAMAGED)
            others.update(key.xpub for _, key in find_keys(text))
    if described and others - described:
        contents.leave_out("a key that is in no descriptor")
    return bool(described)


def _name_of(place: JsonPath, node: Object) -> str:
    """Returns the name that the file gives to the account at this path; "" if it gives none."""
    for name in reversed(place):
        if name and name.lower() not in _PLAIN_NAMES:
            return name
    label = node.get("label") or node.get("name")
    if isinstance(label, str):
        return label
    return ""


def _keys_of(contents: Contents, place: JsonPath, node: Object) -> Iterator[LoneKey]:
    """Yields the keys in the object's fields, with origin, script type and name."""
    coin = _ledger_coin(node)
    if coin and coin not in LEDGER_COINS:
        contents.leave_out(OTHER_COIN, TextProblem.OTHER_COIN)
        return
    for field, value in node.items():
        for text in _texts_of(value):
            match = KEY.search(text)
            is_id = field.lower() in ("id", "accountid") and ":" in text
            if match is None or is_id:
                continue
            if text.replace(match.group(), "").strip():
                raise TextRefused(
                    "a key in the file stands in a text that is not read here: export an output"
                    " descriptor, or the account's extended public key"
                )
            key = read_key(match["key"], match["origin"] or "")
            if not key.origin:
                key = key._replace(origin=_origin_by_object(node, field))
            yield LoneKey(key, _script_type(node, field, key), _name_of(place, node))


def _origin_by_object(node: Object, field: str) -> str:
    """Returns the origin that the object gives for the key in this field; "" if none.

    The object's path belongs to a field in _KEYS, and its path for Taproot to a field
    for Taproot. A key in another field has only the fingerprint.
    """
    fingerprint = field_of(node, FINGERPRINTS)
    if field.lower().startswith(_TAPROOT):
        return origin_of(fingerprint, field_of(node, _PATHS_OF_TAPROOT))
    if field.lower() in _KEYS:
        return origin_of(fingerprint, field_of(node, PATHS))
    return origin_of(fingerprint, "")


def _ledger_coin(node: Object) -> str:
    """Returns the coin of an account of Ledger Live; "" if the object is no such account."""
    if isinstance(node.get("currencyId"), str):
        return str(node["currencyId"])
    match = _LEDGER_ID.match(str(node.get("id", "")))
    if match is None:
        return ""
    return match.group(1)


def _script_type(node: Object, field: str, key: WalletKey) -> str | None:
    """Returns the script type that the object gives for its key; None if it gives none."""
    own = _SCRIPT_TYPES.get(field.lower())
    if own:
        return own
    if _ledger_coin(node):
        mode = node.get("derivationMode", str(node.get("id", "")).rpartition(":")[2])
        return LEDGER_MODES.get(str(mode))
    for name, value in node.items():
        if name.lower() in _KINDS and isinstance(value, str):
            script_type = _SCRIPT_TYPES.get(value.lower())
            if script_type:
                return script_type
    if key.purpose is None:
        return _SCRIPT_TYPES_OF_FIELDS.get(field.lower())
    return None
