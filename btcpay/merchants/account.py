"""Wallet accounts: their public keys, descriptors and addresses.

Sources: BIP32, BIP44, BIP49, BIP84, BIP86, SLIP-132, BIP380; Bitcoin Core's
descriptors.md.
"""

import functools

from btcpay.bitcoin.address import DUST_LIMITS_SATS, address_of
from btcpay.bitcoin.descriptor import Descriptor, parse
from btcpay.bitcoin.descriptor_checksum import checksum
from btcpay.bitcoin.extended_key import HARDENED, InvalidChild
from btcpay.bitcoin.keys import InvalidDescriptor
from btcpay.values.errors import BadRow, CommandError
from btcpay.values.networks import Network
from storage.database import Row
from storage.models import Merchant

# The maximum length of a range in Bitcoin Core's importdescriptors.
MOST_IN_RANGE = 1_000_000
# The number of scripts that are derived together. With more, the first address takes longer, and
# little time is saved.
RUN = 8
# By script type: the descriptor that is used if only an account key is given.
DESCRIPTORS = {
    "p2wpkh": "wpkh({}/0/*)",  # BIP84
    "p2sh-p2wpkh": "sh(wpkh({}/0/*))",  # BIP49
    "p2pkh": "pkh({}/0/*)",  # BIP44
    "p2tr": "tr({}/0/*)",  # BIP86
}
SCRIPT_TYPES = tuple(DESCRIPTORS)
ONE_OF_SEVERAL = (
    "this is one key of several: the wallet's descriptor is needed, which has the keys of all"
    " signers and says how many of them must sign"
)
# The length of an account's scripts in bytes, by its descriptor's outermost function.
_SCRIPT_BYTES = {"wpkh": 22, "sh": 23, "pkh": 25, "tr": 34, "wsh": 34}


def refuse_other_network(account: Descriptor, network: Network) -> None:
    """Raises CommandError if the account's keys are of another network."""
    if account.is_main != network.main_keys:
        raise CommandError(
            f"its keys are for {network_kind(account.is_main)},"
            f" but BLOCKTILL_NETWORK is {network.name}"
        )


def network_kind(is_main: bool) -> str:
    if is_main:
        return "mainnet"
    return "a test network"


@functools.lru_cache(maxsize=1024)
def stored_account(descriptor: str) -> Descriptor:
    """Returns a parsed descriptor, from a cache. Raises CommandError if it is invalid."""
    try:
        return parse(descriptor)
    except InvalidDescriptor as error:
        raise CommandError(str(error)) from None


class ScriptRun:
    """Derives the scripts of one account.

    If the caller asks for an index slightly above the one before (by less than RUN), the
    next indexes will probably follow. Then the scripts of RUN indexes are derived
    together, which takes less time per script. Threads need no lock: at worst two of
    them derive the same scripts.
    """

    def __init__(self, account: Descriptor) -> None:
        self._account = account
        self._last = -RUN
        self._scripts: dict[int, bytes] = {}

    def script(self, index: int) -> bytes:
        """Returns the script at `index`.

        Raises InvalidChild if `index` is 2**31 or more, or if the derived key is invalid
        (BIP32), which has a probability of 2**-127.
        """
        is_slightly_above_last = 0 < index - self._last < RUN
        self._last = index
        script = self._scripts.get(index)
        if script is not None:
            return script
        if not is_slightly_above_last or index + RUN > HARDENED:
            return self._account.script(index)
        indexes = range(index, index + RUN)
        try:
            scripts = dict(zip(indexes, self._account.scripts(indexes), strict=True))
        except InvalidChild:  # perhaps only the key of a later index is invalid
            return self._account.script(index)
        self._scripts = scripts
        return scripts[index]


@functools.lru_cache(maxsize=1024)
def _script_run(descriptor: str) -> ScriptRun:
    return ScriptRun(stored_account(descriptor))


def derive(descriptor: str, index: int, network: Network) -> str:
    """Returns the address at `index` of the descriptor.

    Raises CommandError if the descriptor is invalid. Raises InvalidChild if `index` is
    2**31 or more, or if the derived key is invalid (BIP32), which has a probability of
    2**-127.
    """
    _, address = at_index(descriptor, index, network)
    return address


def at_index(descriptor: str, index: int, network: Network) -> tuple[bytes, str]:
    """Returns the script and the address at `index` of the descriptor.

    Raises CommandError if the descriptor is invalid, and InvalidChild if `index` is
    2**31 or more, or if the derived key is invalid (BIP32).
    """
    script = _script_run(descriptor).script(index)
    return script, address_of(script, network)


def dust_limit_of(script: str) -> int:
    """Returns the lowest amount in satoshis that nodes relay to a script.

    `script` is an invoice's scriptPubKey in hex. Raises BadRow if its length is not
    that of a known script type.
    """
    script_bytes = len(script) // 2
    if script_bytes not in DUST_LIMITS_SATS:
        raise BadRow(f"{script!r} is no script of ours")
    return DUST_LIMITS_SATS[script_bytes]


def dust_limit_of_account(descriptor: str) -> int:
    """Returns the lowest amount in satoshis that nodes relay to the account's addresses.

    Raises CommandError if the descriptor is invalid.
    """
    outermost = stored_account(descriptor).form[0]
    return DUST_LIMITS_SATS[_SCRIPT_BYTES[outermost]]


def import_request(merchant: Merchant, indexes: range) -> Row:
    """Returns a request for Bitcoin Core's importdescriptors, to watch addresses.

    `indexes` are the indexes of these addresses. In the request, `active` is False, so
    that the node does not hand the addresses out itself. `timestamp` is the time in Unix
    seconds at which the merchant was created: no address was paid before, so Bitcoin Core
    need not search older blocks.
    """
    account = str(stored_account(merchant.descriptor))
    return {
        "desc": f"{account}#{checksum(account)}",
        "active": False,
        "range": [indexes[0], indexes[-1]],
        "timestamp": merchant.created_ms // 1000,
        "internal": False,
    }
