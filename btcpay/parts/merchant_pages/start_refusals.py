"""The messages of the first run about a wallet's text that cannot be used."""

from typing import NamedTuple

from btcpay.merchants.secret import SecretShown, SeedWordsShown
from btcpay.merchants.wallet_text.contents import TextProblem, TextRefused
from btcpay.values.errors import CommandError
from btcpay.web.pages.languages import gettext


class Refusal(NamedTuple):
    """A message in the language of the request, and a detail in English; "" if none."""

    message: str
    detail: str = ""


def nothing_given() -> Refusal:
    return Refusal(
        gettext(
            "Please paste what your wallet shows, or choose the file that it saved."
        )
    )


def refusal_of(error: CommandError) -> Refusal:
    """Returns the message for an error about a wallet's text.

    The message may name accounts of the text, but repeats no secret.
    """
    if isinstance(error, SeedWordsShown):
        return Refusal(
            gettext(
                "These look like the seed words of a wallet. Whoever has seen them can take its"
                " money: please make a new wallet and move all money there. A shop needs only"
                " the public key of an account. Nothing of this was kept."
            )
        )
    if isinstance(error, SecretShown):
        return Refusal(
            gettext(
                "This holds a private key. Whoever has seen it can take the money: please make a"
                " new wallet and move all money there. A shop needs only the public key of an"
                " account. Nothing of this was kept."
            )
        )
    problem = TextProblem.OTHER
    if isinstance(error, TextRefused):
        problem = error.problem
    if problem is TextProblem.OTHER:
        message = gettext("The shop cannot use this account:")
        return Refusal(message, f"{error}.")
    return Refusal(_messages()[problem])


def _messages() -> dict[TextProblem, str]:
    """Returns the message for each problem that needs no detail."""
    return {
        TextProblem.REAL_KEYS: gettext(
            "This key is of the real Bitcoin network; this shop is a test shop."
        ),
        TextProblem.TEST_KEYS: gettext(
            "This key is of a test network; this shop takes real bitcoin."
        ),
        TextProblem.ONE_OF_SEVERAL: gettext(
            "This is not the whole wallet: several people sign, and the keys of all of them are"
            " needed. Please export its descriptor or its whole file."
        ),
        TextProblem.DAMAGED: gettext(
            "Something in this is missing or changed. Please copy all of it once more, or choose"
            " the file."
        ),
        TextProblem.ANIMATED_CODE: gettext(
            "This is one picture of a moving code. Please have your wallet show one that stands"
            " still, or export a text or a file."
        ),
        TextProblem.TRANSACTION: gettext("This is a transaction, and no account."),
        TextProblem.ADDRESS: gettext(
            "This is a single address. The shop needs the whole account, so that each payment"
            " gets an address of its own."
        ),
        TextProblem.ENCRYPTED: gettext(
            "This file has a password. Please save it without one, or paste the master public"
            " key that Electrum shows."
        ),
        TextProblem.DATABASE: gettext(
            "This is the wallet's own file, which cannot be read here. Please export the account"
            " as a text or a file."
        ),
        TextProblem.OTHER_COIN: gettext(
            "This is an account of another coin than Bitcoin."
        ),
        TextProblem.TOO_LONG: gettext("This is too long for a wallet's export."),
        TextProblem.NO_ACCOUNT: gettext(
            "No account was found in this. Choose your wallet, and see where it shows the right"
            " text."
        ),
    }
