"""The exports, opened by the programs that they are for: LibreOffice and bean-check."""

import os
import re
import subprocess
import sys
from decimal import Decimal
from html import unescape

import pytest

from btcpay.exports.ledgers import FORMATS
from btcpay.exports.payments import payment_records
from btcpay.values.times import zone_of
from storage.queries import merchants
from tests.support.browser import lack
from tests.support.builders import pay
from tests.support.paths import PROJECT
from tests.support.programs import done, tool

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
    return list(
        payment_records(shop.service.db, shop.service.db.get(merchants.BY_ID, id=1))
    )


def written(folder, name, records, language="en"):
    path = folder / f"payments{FORMATS[name].ending}"
    lines = FORMATS[name].lines(records, language, zone_of("Europe/Berlin"))
    path.write_bytes("".join(lines).encode())
    return path


def opened_as_sheets(folder, files, how, locale="en-US"):
    """LibreOffice opens them as CSV by these options and stores each as a flat document."""
    user = folder / "profile/user"
    user.mkdir(parents=True, exist_ok=True)
    (user / "registrymodifications.xcu").write_text(PROFILE.format(locale))
    words = [
        tool("soffice"),
        f"-env:UserInstallation=file://{folder}/profile",
        "--headless",
    ]
    words += [f"--infilter=CSV:{how}", "--convert-to", "fods", "--outdir", folder]
    done([*words, *files], timeout=240, env=os.environ | {"HOME": str(folder)})


@pytest.mark.parametrize("language", LOCALES)
def test_a_spreadsheet_of_each_language_reads_the_same_sums_days_and_texts(
    tmp_path, records, language
):
    """By the separator and the characters that its dialog finds, and by its own marks."""
    sheet = written(tmp_path, "spreadsheet", records, language)
    separator = ";" if b";" in sheet.read_bytes().splitlines()[0] else ","
    opened_as_sheets(tmp_path, [sheet], f"{ord(separator)},34,UTF8", LOCALES[language])
    opened = unescape(sheet.with_suffix(".fods").read_text(encoding="utf-8"))
    numbers = [
        Decimal(text) for text in re.findall(r'office:value="([-\d.E]+)"', opened)
    ]
    sums = [Decimal(row["value_at_receipt"]) for row in records]
    coins = [Decimal(row["amount_btc"]) for row in records]
    assert sorted(numbers) == sorted([*sums, *coins])
    days = re.findall(r'office:date-value="([\d-]+)"', opened)
    assert days == [row["day"] for row in records]
    assert all(text in opened for text in ("قهوة", 'Käse; "zwei"', "'=1+1"))


ATTACKS = (
    "thanks;\"=cmd|' /C calc'!A0;",
    "thanks,\"=cmd|' /C calc'!A0,",
    'thanks\t"=1+1\t',
    'thanks; " "" +1+1',
    'thanks\n"=1+1',
    'thanks;\u200b"@SUM(A1:A2);-1+2;',
)


@pytest.mark.parametrize(
    "separator", [",", ";", "\t"], ids=["comma", "semicolon", "tab"]
)
def test_libreoffice_calculates_no_text_whichever_separator_it_reads_with(
    tmp_path, records, separator
):
    """Even where it is set to calculate what looks like a formula."""
    attacked = [
        records[0] | dict.fromkeys(("reference", "description", "customer_note"), text)
        for text in ATTACKS
    ]
    files = []
    for name, language in (("csv", "en"), ("koinly", "en"), ("spreadsheet", "de")):
        files.append(
            written(tmp_path, name, attacked, language).rename(tmp_path / f"{name}.csv")
        )
    raw = tmp_path / "raw.csv"
    raw.write_text(f"a{separator}=1+1\n")
    how = f"{ord(separator)},34,UTF8,1,,1033,false,true,false,false,false,-1,true"
    opened_as_sheets(tmp_path, [*files, raw], how)
    assert "table:formula" in raw.with_suffix(".fods").read_text(
        encoding="utf-8"
    )  # it can fail
    for file in files:
        opened = unescape(file.with_suffix(".fods").read_text(encoding="utf-8"))
        assert "thanks" in opened and "table:formula" not in opened
        texts = re.findall(
            r'office:value-type="string"[^>]*>\s*<text:p>([^<]*)', opened
        )
        assert texts and not [
            text for text in texts if text.startswith(tuple("=+-@\t\r"))
        ]


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
    ledger.write_text(
        re.sub(r"Income:Sales  -\d", "Income:Sales  -9", ledger.read_text())
    )
    assert subprocess.run(words, **check).returncode == 1  # it can fail
