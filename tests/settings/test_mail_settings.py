"""The settings of mail: one address, and nothing that would become two."""

import time

import pytest

from btcpay.settings.mail_settings import (
    MailServer,
    Sender,
    checked_address,
    sender,
    smtp_url,
)

SERVERS = {
    "TLS from the start, at its port": ("smtps://me:secret@mail.example.com",
        MailServer("mail.example.com", 465, True, "me", "secret")),
    "STARTTLS, at its port": ("smtp://me:secret@mail.example.com", MailServer("mail.example.com",
        587, False, "me", "secret")),
    "a port of its own": ("smtp://mail.example.com:25", MailServer("mail.example.com", 25, False)),
    "this machine by its number": ("smtp://[::1]:2525/", MailServer("::1", 2525, False)),
    "an address as the user": ("smtps://me@example.com:secret@mail.example.com",
        MailServer("mail.example.com", 465, True, "me@example.com", "secret")),
    "signs in the password": ("smtps://me:a%2Fb%3Ac%40d%25@mail.example.com",
        MailServer("mail.example.com", 465, True, "me", "a/b:c@d%")),
    "a host of other letters": ("smtp://mail.straße.de", MailServer("mail.xn--strae-oqa.de", 587,
        False)),
    "nothing at all": ("", None),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), SERVERS.values(), ids=SERVERS)
def test_an_smtp_url_is_read_as_this_mail_server(text, expected):
    found = smtp_url(text)
    assert found == expected
    assert "secret" not in repr(found) and "d%" not in repr(found)


WRONG_SERVERS = {
    "another protocol": "https://mail.example.com",
    "a user without a password": "smtp://me@mail.example.com",
    "port 0": "smtp://mail.example.com:0",
    "a port beyond the last": "smtp://mail.example.com:65536",
    "a blank in the password": "smtp://me:a b@mail.example.com",
    "a broken percent sign": "smtp://me:100%@mail.example.com",
    "a line end in the password": "smtp://me:a%0D%0AQUIT@mail.example.com",
    "another letter than ASCII": "smtp://me:p%C3%A4ss@mail.example.com",
}


@pytest.mark.parametrize("text", WRONG_SERVERS.values(), ids=WRONG_SERVERS)
def test_an_invalid_smtp_url_is_refused_without_its_password(text):
    with pytest.raises(ValueError, match=r"smtps://user:password@host:port") as raised:
        smtp_url(text)
    assert "100%" not in str(raised.value)


SENDERS = {
    "an address": ("shop@example.com", Sender("", "shop@example.com")),
    "a name and an address": (
        "My shop <shop@example.com>",
        Sender("My shop", "shop@example.com"),
    ),
    "letters of any alphabet in the name": (
        "店 <a@b.example>",
        Sender("店", "a@b.example"),
    ),
    "a domain of other letters": (
        "shop@bücher.example",
        Sender("", "shop@xn--bcher-kva.example"),
    ),
    "a letter that is two letters to the codec of 2003": (
        "chef@straße.de",
        Sender("", "chef@xn--strae-oqa.de"),
    ),
    "full-width letters and dot": (
        "shop@ＥＸＡＭＰＬＥ．com",
        Sender("", "shop@example.com"),
    ),
    "nothing at all": ("", None),
}


@pytest.mark.parametrize(("text", "expected"), SENDERS.values(), ids=SENDERS)
def test_a_sender_is_read_as_name_and_address(text, expected):
    assert sender(text) == expected


# Each would be somebody else's mail, or a header of its own.
WRONG_ADDRESSES = {
    "two of them": "a@example.com, b@example.com",
    "a header behind a line end": "a@example.com\nBcc: b@example.com",
    "a header behind a carriage return": "a@example.com\r\nBcc: b@example.com",
    "a null": "a\x00@example.com",
    "a blank": "a b@example.com",
    "quotes": '"a b"@example.com',
    "a command of SMTP": "a@example.com> SIZE=1",
    "a machine's number": "a@[127.0.0.1]",
    "two dots": "a..b@example.com",
    "a name of other letters": "ädä@example.com",
    "a name of 65 letters": "a" * 65 + "@example.com",
    "255 letters": "a@" + "b." * 125 + "com",
    "a label of 64 letters": "a@" + "b" * 64 + ".com",
    "an empty label of other letters": "a@ü..example",
    "a domain of an emoji, which IDNA 2008 has not": "a@🍕.example",
    "a domain that two would read as two names": "a@xn--strasse-.de",
    "a sign that grows to eighteen": "a@\ufdfa.example",
    "nothing": "",
}


@pytest.mark.parametrize("text", WRONG_ADDRESSES.values(), ids=WRONG_ADDRESSES)
def test_what_is_no_address_is_refused_everywhere(text):
    with pytest.raises(ValueError):
        checked_address(text)
    with pytest.raises(ValueError):
        sender(f"Shop <{text}>")


@pytest.mark.parametrize("sign", ["\ufdfa", "\u0301", "ß", "a.", "@", "xn--a"])
def test_an_address_of_64_kilobytes_is_refused_by_its_length(sign):
    """In 30 s a thousand times: each took ten seconds when its domain was read first."""
    address = "a@" + sign * 21_000
    began = time.process_time()
    for _ in range(1000):
        with pytest.raises(ValueError):
            checked_address(address)
    assert time.process_time() - began < 30


def test_a_senders_name_has_no_line_end():
    with pytest.raises(ValueError):
        sender("Shop\r\nBcc: b@example.com <a@example.com>")
