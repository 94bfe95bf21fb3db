"""Base58Check, the encoding of older addresses and of extended keys."""

from btcpay.bitcoin.wire import DecodeError, hash256

BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
CHECKSUM_BYTES = 4
# Extended keys are the longest texts to decode: they have 111 characters.
MAX_BASE58_CHARS = 120


def b58check_encode(payload: bytes) -> str:
    """Returns the payload in Base58Check.

    The checksum is the first 4 bytes of the payload's double SHA-256.
    """
    data = payload + hash256(payload)[:CHECKSUM_BYTES]
    number = int.from_bytes(data, "big")
    text = ""
    while number:
        number, digit = divmod(number, 58)
        text = BASE58[digit] + text
    # The number has lost the leading zero bytes. Each of them is written as the digit 0.
    leading_zeros = len(data) - len(data.lstrip(b"\x00"))
    return BASE58[0] * leading_zeros + text


def b58check_decode(text: str) -> bytes:
    """Returns the payload of a Base58Check text, without the checksum.

    Raises DecodeError if the text is too long, has an invalid character or a wrong
    checksum.
    """
    # Limits the time, which grows with the square of the length.
    if len(text) > MAX_BASE58_CHARS:
        raise DecodeError("more characters than an extended key has")
    number = 0
    for char in text:
        digit = BASE58.find(char)
        if digit < 0:
            raise DecodeError("a character that Base58 lacks")
        number = number * 58 + digit
    leading_zeros = len(text) - len(text.lstrip(BASE58[0]))
    size = (number.bit_length() + 7) // 8  # in bytes, rounded up
    data = bytes(leading_zeros) + number.to_bytes(size, "big")
    payload = data[:-CHECKSUM_BYTES]
    checksum = data[-CHECKSUM_BYTES:]
    if hash256(payload)[:CHECKSUM_BYTES] != checksum:
        raise DecodeError("a wrong checksum")
    return payload
