"""Runs the service and the check until one of them ends.

The command `run` replaces itself with this module. The module stays in memory as long as
the shop runs, so it imports little, and only waits.
"""

import logging
import os
import signal
import sys

from btcpay.cli.children import Children
from btcpay.cli.stop import Stop
from btcpay.settings.logs import to_json
from btcpay.values.errors import CommandError

STOP_TIMEOUT_S = 30  # gunicorn's time limit for requests in progress
LOG_JSON = "--log-json"

log = logging.getLogger(__name__)


def words_of(every_s: int, log_json: bool) -> list[str]:
    """Returns the command line of this program, for `os.execv`."""
    words = [sys.executable, "-P", "-m", "btcpay.cli.supervise", str(every_s)]
    if log_json:
        words.append(LOG_JSON)
    return words


def main() -> None:
    every_s, *options = sys.argv[1:]
    logging.basicConfig(format="%(message)s")
    service = ["btcpay", "serve"]
    if LOG_JSON in options:
        to_json(logging.root)
        service = ["btcpay", LOG_JSON, "serve"]
    # The service logs JSON lines. The check does so too, since both write to one log.
    check = ["btcpay", LOG_JSON, "check", "--watch", every_s]
    stop = Stop(signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    try:
        with Children(os.environ, STOP_TIMEOUT_S) as children:
            children.start("service", *service)
            children.start("check", *check)
            children.watch(stop)
    except CommandError as error:
        log.error("blocktill: %s", error)  # noqa: TRY400
        sys.exit(error.exit_status)


if __name__ == "__main__":
    main()
