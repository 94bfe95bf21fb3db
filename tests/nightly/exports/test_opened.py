"""The exports, opened by the programs that they are for: LibreOffice and bean-check."""

import os
import re
import subprocess
import sys
from decimal import Decimal
from html import unescape

import pytest
from browser import lack
from builders import pay
from paths import PROJECT
from programs import done, tool

from btcpay.exports.ledgers import FORMATS
from btcpay.exports.payments import received
from btcpay.values.times import zone_of
from storage.queries import merchants

LEDGER = PROJECT / ".venv/ledger"
# The language and country that a machine of that language is set to.
LOCALES = {"en": "en-US", "de": "de-DE", "fr": "fr-FR", "ar": "ar-EG"}
PROFILE = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry">
<item oor:path="/org.openoffice.Setup/L10N"><prop oor:name="ooSetupSystemLocale" oor:op="fuse">
<value>{}</value></prop></item></oor:items>"""


@pytest.fixture
def records(shop):
    """Payments, large and small, for odd things."""
    shop.sql("UPDATE merchant SET timezone = 'Europe/Berlin'")
    for number, text in enumerate(('Käse; "zwei"', "قهوة", "=1+1", 'a\\b\n"c"', "-")):
        pay(shop, shop.invoice(1234.5 * 8**number / 7, description=text))
    return list(received(shop.service.db, shop.service.db.only(merchants.BY_ID, id=1)))


def written(folder, name, records, language="en"):
    path = folder / f"payments{FORMATS[name].ending}"
    lines = FORMATS[name].lines(records, language, zone_of("Europe/Berlin"))
    path.write_bytes("".join(lines).encode())
    return path


@pytest.mark.parametrize("language", LOCALES)
def test_a_spreadsheet_of_each_language_reads_the_same_sums_days_and_texts(
    tmp_path, records, language
):
    """By the separator and the characters that its dialog finds, and by its own marks."""
    sheet = written(tmp_path, "spreadsheet", records, language)
    user = tmp_path / "profile/user"
    user.mkdir(parents=True)
    (user / "registrymodifications.xcu").write_text(PROFILE.format(LOCALES[language]))
    separator = ord(";" if b";" in sheet.read_bytes().splitlines()[0] else ",")
    words = [tool("soffice"), f"-env:UserInstallation=file://{tmp_path}/profile", "--headless"]
    words += [f"--infilter=CSV:{separator},34,UTF8", "--convert-to", "fods", "--outdir", tmp_path]
    done([*words, sheet], timeout=240, env=os.environ | {"HOME": str(tmp_path)})
    opened = unescape(sheet.with_suffix(".fods").read_text(encoding="utf-8"))
    numbers = [Decimal(text) for text in re.findall(r'office:value="([-\d.E]+)"', opened)]
    sums = [Decimal(row["value_at_receipt"]) for row in records]
    coins = [Decimal(row["amount_btc"]) for row in records]
    assert sorted(numbers) == sorted([*sums, *coins])
    days = re.findall(r'office:date-value="([\d-]+)"', opened)
    assert days == [row["day"] for row in records]
    assert all(text in opened for text in ("قهوة", 'Käse; "zwei"', "'=1+1"))


def test_bean_check_accepts_the_ledger(tmp_path, records):
    if not LEDGER.is_dir():
        lack("needs beancount in .venv/ledger")
    unpriced = records[0] | {"value_at_receipt": None, "settled": False}
    refund = records[0] | {"amount_btc": "-0.00001000", "value_at_receipt": "-0.50"}
    ledger = written(tmp_path, "beancount", [*records, unpriced, refund])
    words = [sys.executable, "-m", "beancount.scripts.check", ledger]
    check = {"env": os.environ | {"PYTHONPATH": str(LEDGER)}, "capture_output": True}
    ended = subprocess.run(words, **check)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")
    ledger.write_text(ledger.read_text().replace("-0.02", "-0.03"))
    ledger.write_text(re.sub(r"Income:Sales  -\d", "Income:Sales  -9", ledger.read_text()))
    assert subprocess.run(words, **check).returncode == 1  # it can fail
