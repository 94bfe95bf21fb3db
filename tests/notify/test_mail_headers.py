"""The headers of a mail are read as they were meant, whatever is in them and however long it is."""

import re
from datetime import UTC, datetime
from email import message_from_bytes, policy
from email.header import decode_header, make_header
from email.utils import getaddresses

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from btcpay.notify.mail.content import MailText, one_line
from btcpay.notify.mail.headers import POLICY
from btcpay.notify.mail.message import message_of
from btcpay.settings.mail_settings import MAX_ADDRESS, MAX_NAME, Sender, sender
from btcpay.settings.parsers import base_url
from storage.queries.merchants import MailBrand

AT = datetime(2026, 11, 22, 7, 0, tzinfo=UTC)
SHOP = Sender("My shop", "shop@example.com")
ENCODED_WORD = re.compile(rb"=\?utf-8\?[bq]\?[^?]*\?=")
# A sign of each script and direction, signs that mean something in a header, and joined ones.
SIGNS = "aZ9 ,;:@()[]\\'.=?_-!#é€жא\u0627ก한漢カ🙂👩\u200d🚀क्\u0301%\t"
# No text of a shop has surrogates: each is refused where it comes in.
ANY_SIGN = st.sampled_from(SIGNS) | st.characters(exclude_categories=["Cs"])
NAMES = st.text(ANY_SIGN, max_size=MAX_NAME)


def raw(subject="Paid", by=SHOP, to="ada@example.com", stop=None, id="evt_1.mail_1"):
    """The header's lines, and the whole mail."""
    mail = MailText("en", subject, ["It is."], stop=stop and ("Stop", stop))
    sent = message_of(mail, MailBrand("Shop"), by, to, id, AT).as_bytes()
    return sent.partition(b"\r\n\r\n")[0].split(b"\r\n"), sent


def names_of(lines):
    """The headers' names, by a reader that knows nothing but lines."""
    return [
        line.partition(b":")[0].decode() for line in lines if not line.startswith(b" ")
    ]


def classic(sent, name):
    """The header as the older parser of Python reads it, which many programs have."""
    return message_from_bytes(sent)[name]


def assert_lines(lines):
    for line in lines:
        assert line.isascii() and 0 < len(line) <= 998
        assert not ENCODED_WORD.search(line) or len(line) <= 76
        assert all(len(word) <= 75 for word in ENCODED_WORD.findall(line))


def assert_one_mailbox(name, address):
    lines, sent = raw(by=Sender(name, address))
    assert_lines(lines)
    assert names_of(lines).count("From") == 1 and "Bcc" not in names_of(lines)
    (found,) = message_from_bytes(sent, policy=policy.default)["From"].addresses
    assert found.addr_spec == address
    # Python's newer parser keeps a blank between two encoded words of a name (RFC 2047, 6.2).
    assert found.display_name.replace(" ", "") == name.replace(" ", "")
    ((phrase, mailbox),) = getaddresses([classic(sent, "From")])
    assert mailbox == address
    assert str(make_header(decode_header(phrase))).strip() == name.strip()


@given(NAMES)
@example("Smith, Jones, Ada & Co, Müller, Söhne, " * 3)
@example(", " * 45)
@example("=?utf-8?q?Two=0ABcc:_eve@example.com?=")
@example("a" * MAX_NAME)
@example("\\" * 90)
def test_a_name_of_any_script_and_length_is_one_mailbox(text):
    name = "".join(
        sign for sign in text if sign.isprintable() and sign not in '<>"'
    ).strip()
    found = sender(f"{name} <shop@example.com>")
    assert found.name == name
    assert_one_mailbox(found.name, found.address)


@pytest.mark.parametrize("length", [1, 20, 60, 64, 65, 66, 70, 90, MAX_NAME])
@pytest.mark.parametrize(
    "sign", ["a", "a ", ", ", "é", "漢", "🙂", "\u0627", "\\", "a, "]
)
def test_a_name_of_one_sign_repeated(sign, length):
    assert_one_mailbox((sign * length)[:length].strip(), "shop@example.com")


def test_a_name_beyond_the_bound_is_refused():
    assert sender("a" * MAX_NAME + " <a@example.com>")
    with pytest.raises(ValueError):
        sender("a" * (MAX_NAME + 1) + " <a@example.com>")


def addresses():
    """One of each length that there may be."""
    for length in range(7, MAX_ADDRESS + 1):
        local = "a" * min(64, length - 6)
        domain = ("b" * 48 + ".") * 5
        yield f"{local}@{domain[: length - len(local) - 5].strip('.')}.com"[
            :MAX_ADDRESS
        ]


@pytest.mark.slow
def test_an_address_of_every_length_stays_whole_in_each_header():
    for address in addresses():
        lines, sent = raw(by=Sender("", address), to=address)
        assert_lines(lines)
        assert (
            f"To: {address}".encode() in lines and f"From: {address}".encode() in lines
        )
        domain = address.partition("@")[2]
        assert f"Message-ID: <evt_1.mail_1@{domain}>".encode() in lines
        for parser in (policy.default, policy.compat32):
            read_back = message_from_bytes(sent, policy=parser)
            assert str(read_back["To"]) == str(read_back["From"]) == address


@given(st.text(ANY_SIGN, max_size=600))
@example("=?utf-8?q?Two=0ABcc:_eve@example.com?=")
@example("Zwei Tassen, für Ada; Order 10442 " * 20)
@example("a" * 2000)
def test_a_subject_of_any_script_and_length_is_read_as_it_was_written(text):
    lines, sent = raw(subject=text)
    assert_lines(lines)
    expected = one_line(text)
    assert (
        message_from_bytes(sent, policy=policy.default)["Subject"].strip()
        == expected.strip()
    )
    assert (
        str(make_header(decode_header(classic(sent, "Subject")))).strip()
        == expected.strip()
    )


def roots():
    """Base URLs of every length up to the bound, and of an onion service, which is long."""
    yield f"http://{'a' * 56}.onion"
    yield from (f"https://pay.example.com/{'x' * length}" for length in range(470))
    yield "https://straße.example/läden, und; mehr".replace(" ", "%20")


@pytest.mark.slow
def test_the_link_that_ends_mails_is_one_line_of_ascii_at_every_length_of_the_base_url():

    for root in roots():
        stop = f"{base_url(root)}/bill/bil_{'0' * 24}/stop/{'x' * 32}"
        lines, sent = raw(stop=stop)
        assert f"List-Unsubscribe: <{stop}>".encode() in lines
        assert b"List-Unsubscribe-Post: List-Unsubscribe=One-Click" in lines
        for parser in (policy.default, policy.compat32):
            assert (
                message_from_bytes(sent, policy=parser)["List-Unsubscribe"]
                == f"<{stop}>"
            )


@pytest.mark.parametrize(
    "value", ["a\nb", "a\r\nBcc: b@c", "a\rb", "é", "a\x00", "a" * 998, "a\r\n "]
)
def test_no_line_goes_out_that_is_no_header(value):
    with pytest.raises(ValueError):
        POLICY.header_store_parse("To", value)
