"""`python -m btcpay.sandbox --port 8001 --state DIR`: the chain, alone or beside a shop."""

import argparse
import sys
from pathlib import Path

from btcpay.sandbox.errors import JournalError
from btcpay.sandbox.server import create_sandbox, serve
from btcpay.sandbox.shop import Shop

KEY_FILE = "workbench_key"


def main() -> int:
    """Exit status 0 after SIGTERM or SIGINT, 1 when it cannot start."""
    parser = argparse.ArgumentParser(
        prog="python -m btcpay.sandbox", description="A regtest chain to pay on."
    )
    parser.add_argument("--port", type=int, default=8001)
    parser.add_argument("--state", type=Path, default=Path("var/sandbox"))
    parser.add_argument("--shop", metavar="URL", help="the service that is paid on it")
    options = parser.parse_args()
    try:
        shop = Shop(options.shop, _key(options.state)) if options.shop else None
        serve(create_sandbox(options.state, shop=shop), options.port)
    except (JournalError, OSError) as error:
        print(f"the sandbox cannot start: {error}", file=sys.stderr)
        return 1
    return 0


def _key(state_dir: Path) -> str:
    """The shop's key: in a file, since others can read a command line."""
    return (state_dir / KEY_FILE).read_text(encoding="ascii").strip()


if __name__ == "__main__":
    sys.exit(main())
