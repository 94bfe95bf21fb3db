"""The table of kinds: ours, and those of the resources that parts bring in a module `kinds`."""

from typing import Any

from btcpay.notify.kinds import EventKind, Kind, Resource
from btcpay.values.parts import brought

# Each part's RESOURCE, from its module `kinds`, by its name.
OF_PARTS: dict[str, Resource[Any]] = {
    part.RESOURCE.name: part.RESOURCE for part in brought("kinds")
}
_ALL: list[Kind] = [*EventKind, *(kind for one in OF_PARTS.values() for kind in one.kinds)]
KINDS: dict[str, Kind] = {kind.value: kind for kind in _ALL}
