"""Finds the first address of a shop in its account: in the chain, else asks the owner."""

from functools import partial

import click

from btcpay.bitcoin.descriptor import Descriptor
from btcpay.chain.account_start import (
    COMMAND_S,
    MOST_SKIPPED,
    AccountStart,
    find_account_start,
)
from btcpay.chain.used_addresses import AddressSearch
from btcpay.cli.output import say
from btcpay.settings.settings import Settings
from btcpay.values.errors import CommandError
from btcpay.values.times import utc_now
from storage.database import Database

PROGRESS_EVERY = 100  # addresses
A_NUMBER = click.IntRange(0, MOST_SKIPPED)
skip_option = partial(
    click.option,
    "--skip",
    type=A_NUMBER,
    metavar="N",
    help="Leave out the account's first N addresses, used or not.",
)
WHEN_TO_SKIP = (
    "Try again later, or say --skip N: how many of the account's first addresses are left out."
    " That is one more than the number of the last address that the wallet shows as used, or"
    " that another shop has given out; 0 if nothing has ever used the account."
)
OPEN_ORDERS = (
    "If another shop still waits for payments to this account, say --skip N with a number behind"
    " its last order."
)


def choose_account_start(
    db: Database,
    settings: Settings,
    account: Descriptor,
    skip: int | None,
    asks: bool,
) -> AccountStart:
    """Finds the shop's first address in its account, and prints how it was found.

    `skip` is the number of addresses that the owner leaves out; None if the owner has
    named none. If not all addresses of the account could be looked up, this number is
    needed. If the needed number is missing or too low, prompts the owner for it if
    `asks` is True, else raises CommandError.
    """
    say("Asking which addresses of this account were used before ...")
    while True:
        start = find_account_start(
            db,
            settings,
            account,
            skip=skip,
            now=utc_now,
            seconds=COMMAND_S,
            on_progress=_say_progress,
        )
        if start.problem:
            say(_failure(start))
        if start.is_decided:
            say(_decision(start))
            return start
        if not asks:
            raise CommandError(f"nothing was added. {WHEN_TO_SKIP}")
        say(WHEN_TO_SKIP)
        skip = click.prompt("Addresses to skip", type=A_NUMBER, err=True)


def _say_progress(search: AddressSearch) -> None:
    """Prints the state of the search, each time PROGRESS_EVERY more are looked up."""
    looked_up = search.position - search.start
    if looked_up % PROGRESS_EVERY == 0:
        used = "none is used"
        if search.used:
            used = f"used up to number {search.used[-1]}"
        say(f"  {looked_up} addresses looked at, {used}")


def _failure(start: AccountStart) -> str:
    """Returns the sentences about a look-up that has failed: what is known nevertheless."""
    if not start.looked_up:
        return f"It is not known whether this account was used before: {start.problem}."
    used = "none of them was used"
    if start.used_before:
        used = f"it was used up to number {start.used_before - 1} at least"
    return (
        f"Not all of this account could be looked at, only {start.looked_up} addresses:"
        f" {used}. Go on from number {start.used_before}. The reason: {start.problem}."
    )


def _decision(start: AccountStart) -> str:
    """Returns the sentences about where in its account the shop begins, and why."""
    is_unused = start.used_before == 0 and not start.problem
    if is_unused and start.index == 0:
        return f"None of its first {start.looked_up} addresses was used."
    begins = f"the shop begins at {start.index}"
    if start.problem or start.index > start.used_before:
        begins += ", as --skip says"
    gap_limit = (
        f"A wallet that is restored from its backup shows that address with a gap limit of"
        f" {start.gap_limit} or more; most have 20."
    )
    if start.used_before:
        last_used = start.used_before - 1
        return (
            f"This account was used up to number {last_used}: {begins}."
            f" {gap_limit} {OPEN_ORDERS}"
        )
    if start.looked_up:
        return f"No used address was seen: {begins}. {gap_limit}"
    return f"{begins.capitalize()}. {gap_limit}"
