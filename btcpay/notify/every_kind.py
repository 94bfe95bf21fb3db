"""The table of kinds: ours, and those of the resources that parts bring in a module `kinds`."""

from btcpay.notify.kinds import EventKind, Kind
from btcpay.values.parts import brought

# By its resource, the module of a part: `KINDS`; `PROPERTIES`, a JSON schema for each field of the
# resource; `data(db, base_url, event)` and `sample(base_url, kind, at_ms)`, its fields in an event.
OF_PARTS = {part.RESOURCE: part for part in brought("kinds")}
KINDS: dict[str, Kind] = {
    kind.value: kind
    for kinds in (EventKind, *(p.KINDS for p in OF_PARTS.values()))
    for kind in kinds
}
