"""`python -m btcpay.sandbox --port 8001 --state DIR`: the chain, alone or beside a shop."""

import argparse
import sys
import time
from pathlib import Path

from btcpay.sandbox.errors import JournalError
from btcpay.sandbox.server import LOG_FILE, create_app, serve
from btcpay.sandbox.shop import Shop
from btcpay.sandbox.state import EXTENSION, open_sandbox

KEY_FILE = (
    "workbench_key"  # the shop's; in a file, since others can read a command's words
)


def main() -> None:
    """Exit status 0 after SIGTERM or SIGINT, 1 when it cannot start."""
    parser = argparse.ArgumentParser(
        prog="python -m btcpay.sandbox", description="A regtest chain to pay on."
    )
    parser.add_argument("--port", type=int, default=8001)
    parser.add_argument("--state", type=Path, default=Path("var/sandbox"))
    parser.add_argument("--shop", metavar="URL", help="the service that is paid on it")
    options = parser.parse_args()
    try:
        shop = None
        if options.shop:
            shop = Shop(
                options.shop, (options.state / KEY_FILE).read_text("ascii").strip()
            )
            (options.state / LOG_FILE).unlink(missing_ok=True)  # of the start before
        app = create_app()
        app.extensions[EXTENSION] = open_sandbox(
            options.state, lambda: int(time.time()), shop
        )
    except (JournalError, OSError) as error:
        sys.exit(f"the sandbox cannot start: {error}")
    serve(app, options.port)


if __name__ == "__main__":
    main()
