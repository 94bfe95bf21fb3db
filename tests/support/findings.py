"""The doctor's findings in a shop."""

from btcpay.health.doctor.run import examine
from btcpay.settings import settings
from btcpay.values.finding import Finding
from tests.support.fake_esplora import Till

PLENTY = 10**12


def found(till: Till, free_bytes: int = PLENTY, **environ: str) -> dict[str, Finding]:
    """All findings by name, with other settings where they are named."""
    environ = till.shop.environ | environ
    examined = examine(
        settings.read(environ), environ, till.clock, lambda _: free_bytes, True
    )
    return {finding.name: finding for finding in examined}
