"""`python -m btcpay.sandbox --port 8001 --state DIR`: the sandbox alone."""

import argparse
import sys
from pathlib import Path

from btcpay.sandbox.errors import JournalError
from btcpay.sandbox.server import create_sandbox, serve


def main() -> int:
    """Exit status 0 after SIGTERM or SIGINT, 1 when it cannot start."""
    parser = argparse.ArgumentParser(
        prog="python -m btcpay.sandbox", description="A regtest chain to pay on."
    )
    parser.add_argument("--port", type=int, default=8001)
    parser.add_argument("--state", type=Path, default=Path("var/sandbox"))
    options = parser.parse_args()
    try:
        serve(create_sandbox(options.state), options.port)
    except (JournalError, OSError) as error:
        print(f"the sandbox cannot start: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
