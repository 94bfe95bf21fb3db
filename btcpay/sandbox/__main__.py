"""`python -m btcpay.sandbox --port 8001 --state DIR`: runs the sandbox's server.

With `--shop`, the page of the sandbox also shows and uses a running service.
"""

import argparse
import sys
import time
from pathlib import Path

from btcpay.sandbox.errors import JournalError
from btcpay.sandbox.server import LOG_FILE, create_app, serve
from btcpay.sandbox.shop import Shop
from btcpay.sandbox.state import EXTENSION, open_sandbox

# The shop's API key is in a file, since other users can read a process's arguments.
KEY_FILE = "workbench_key"


def main() -> None:
    """Runs the sandbox until SIGTERM or SIGINT, then exits with status 0.

    The exit status is 1 if the sandbox cannot start.
    """
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
            key = (options.state / KEY_FILE).read_text("ascii").strip()
            shop = Shop(options.shop, key)
            (options.state / LOG_FILE).unlink(missing_ok=True)  # of the previous run
        app = create_app()
        sandbox = open_sandbox(options.state, lambda: int(time.time()), shop)
        app.extensions[EXTENSION] = sandbox
    except (JournalError, OSError) as error:
        sys.exit(f"the sandbox cannot start: {error}")
    serve(app, options.port)


if __name__ == "__main__":
    main()
