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
    _take_lone_keys(contents, trees)


def _take_lone_keys(contents: Contents, trees: list[Tree]) -> None:
    """Adds the accounts of the keys in a file of an unknown form without descriptors.

    Raises TextRefused if the file has several signers.
    """
    keys: list[LoneKey] = []
    says_signers = False
    for place, node in objects({"": trees}):
        keys += _keys_of(contents, place, node)
        has_such_field = any(_SIGNERS.search(name) for name in node)
        says_signers = says_signers or has_such_field
    has_several_keys = len({lone.key.xpub for lone in keys}) > 1
    if says_signers and has_several_keys:
        raise TextRefused(
            "this is a file of several signers, in a form that is not read here: export an output"
            " descriptor"
        )
    take_keys(contents, keys)


def _note_other_keys(contents: Contents, trees: list[Tree]) -> None:
    """Adds a reason to `contents` if the file has a key that is in no account."""
    taken: set[str] = set()
    for account in contents.candidates:
        taken.update(key.text for key in account.descriptor.keys)
    for _, _, text in _texts({"": trees}):
        if _xpubs_in(text) - taken:
            contents.leave_out("a key that is no signer's")


def _xpubs_in(text: str) -> set[str]:
    """Returns the extended public keys in the text, each with the prefix xpub or tpub."""
    return {key.xpub for _, key in find_keys(text)}


def objects(tree: Tree, place: JsonPath = ()) -> Iterator[tuple[JsonPath, Object]]:
    """Yields (path of field names, object) for each object in a JSON value."""
    if isinstance(tree, dict):
        yield place, tree
        for name, value in tree.items():
            yield from objects(value, (*place, name))
    elif isinstance(tree, list):
        for value in tree:
            yield from objects(value, place)


def _texts(tree: Tree) -> Iterator[tuple[JsonPath, Object, str]]:
    """Yields (path of field names, object that has the field, text) for each text in a value."""
    for path, node in objects(tree):
        for name, value in node.items():
            for text in _texts_of(value):
                yield (*path, name), node, text


def _texts_of(value: Tree) -> Iterator[str]:
    """Yields a field's text, or the texts in its list. Leaves out objects in the list."""
    if isinstance(value, str):
        yield value
    if isinstance(value, list):
        for item in value:
            yield from _texts_of(item)


def _take_descriptors(contents: Contents, trees: list[Tree]) -> bool:
    """Adds the accounts of all descriptors. Returns True if a descriptor has a key.

    Raises TextRefused if a descriptor is damaged.
    """
    described: set[str] = set()
    others: set[str] = set()
    for place, node, text in _texts({"": trees}):
        descriptors = find_descriptors(text)
        if not descriptors:
            if DESCRIPTOR_END.search(text):
                raise TextRefused(CUT, TextProblem.DAMAGED)
            others |= _xpubs_in(text)
        name = _name_of(place, node)
        is_internal = node.get("internal") is True
        for descriptor in descriptors:
            if _POLICY_KEY.search(descriptor.script):  # json_forms.py takes policies
                continue
            described |= _xpubs_in(descriptor.script)
            take_descriptor(contents, descriptor, name, is_internal)
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


def _keys_of(contents: Contents, place: JsonPath, node: Object) -> list[LoneKey]:
    """Returns the keys in the object's fields, with origin, script type and name.

    Raises TextRefused if a key is damaged, or has other text beside it.
    """
    coin = _ledger_coin(node)
    if coin and coin not in LEDGER_COINS:
        contents.leave_out(OTHER_COIN, TextProblem.OTHER_COIN)
        return []
    keys: list[LoneKey] = []
    for field, value in node.items():
        for text in _texts_of(value):
            is_id = field.lower() in ("id", "accountid") and ":" in text
            match = KEY.search(text)
            if match is None or is_id:
                continue
            key = _only_key(text, match)
            if not key.origin:
                key = key._replace(origin=_origin_by_object(node, field))
            script_type = _script_type(node, field, key)
            keys.append(LoneKey(key, script_type, _name_of(place, node)))
    return keys


def _only_key(text: str, match: re.Match[str]) -> WalletKey:
    """Returns the key that `match`, a match of KEY, has found in a field's text.

    Raises TextRefused if the key is damaged, or if the text has more than the key.
    """
    if text.replace(match.group(), "").strip():
        raise TextRefused(
            "a key in the file stands in a text that is not read here: export an output"
            " descriptor, or the account's extended public key"
        )
    return read_key(match["key"], match["origin"] or "")


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
    type_of_field = _SCRIPT_TYPES.get(field.lower())
    if type_of_field:
        return type_of_field
    if _ledger_coin(node):
        last_part_of_id = str(node.get("id", "")).rpartition(":")[2]
        mode = node.get("derivationMode", last_part_of_id)
        return LEDGER_MODES.get(str(mode))
    for name, value in node.items():
        if name.lower() in _KINDS and isinstance(value, str):
            script_type = _SCRIPT_TYPES.get(value.lower())
            if script_type:
                return script_type
    if key.purpose is None:
        return _SCRIPT_TYPES_OF_FIELDS.get(field.lower())
    return None
