"""Ends the program with the exit status of a command."""

import logging
import sys
from collections.abc import Callable
from typing import NoReturn

from btcpay.cli.output import say
from btcpay.values.errors import (
    CommandError,
    InvalidRequest,
    PriceUnavailable,
    SettingsError,
)
from storage.database import in_one_line
from storage.faults import PeeweeException


def run_to_exit(command: Callable[[], object]) -> NoReturn:
    """Calls `command`, and exits with status 0, or with the status of its error.

    An expected error is printed on one line to standard error. The exit status is then
    1 or 2, or the `exit_status` of a CommandError.
    """
    try:
        command()  # click exits by itself after a success
        sys.exit(0)
    except SettingsError as error:  # from `setup`, which reads the file that it changes
        messages = error.mistakes
        status = 2
    except PeeweeException as error:
        messages = [f"the database cannot be used: {in_one_line(error)}"]
        status = 1
    except CommandError as error:
        messages = [str(error)]
        status = error.exit_status
    except (InvalidRequest, PriceUnavailable, OSError) as error:
        messages = [str(error)]
        status = 1
    for message in messages:
        say(f"blocktill: {message}", logging.ERROR)
    sys.exit(status)
