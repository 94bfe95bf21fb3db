"""The cron line of commands.md: a week of it mails nothing while all is well, else why."""

import contextlib
import re
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from btcpay.values.times import boot_mark, time_between
from storage import locks, versions
from storage.database import open_database
from storage.queries import meta
from tests.support.fake_esplora import FakeEsplora, Till, say
from tests.support.forge import forge
from tests.support.paths import PROJECT

COMMANDS = (PROJECT / "docs" / "operators" / "commands.md").read_text(encoding="utf-8")
(LINE,) = re.findall(r"^\* \* \* \* \* (/opt.*)$", COMMANDS, re.M)


@dataclass
class Cron:
    """Runs that line as cron does, with nothing in the environment but what cron sets."""

    till: Till
    folder: Path
    status: int | None = None  # of the last run

    @property
    def file(self):
        return self.folder / "blocktill.env"

    def write(self, **environ):
        values = self.till.shop.environ | environ
        self.file.write_text(
            "".join(f'{name}="{value}"\n' for name, value in values.items())
        )

    def mail(self):
        """The mail that cron would send: everything printed."""
        program, *words = LINE.replace("/etc/blocktill.env", str(self.file)).split()
        assert program == "/opt/blocktill/bin/blocktill"
        environ = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.folder),
            "SHELL": "/bin/sh",
        }
        ended = forge().run(environ, words, folder=str(self.folder))
        self.status = ended.status
        return ended.output + ended.errors


@pytest.fixture
def cron(till, tmp_path):
    cron = Cron(till, tmp_path)
    cron.write()
    return cron


def test_what_happens_in_a_week_is_no_mail(cron, ticker):
    """Sales, payments in part, in full and too late, blocks, an end, a cancellation."""
    till = cron.till
    mails = [cron.mail()]
    for _ in range(3):
        whole, part, unpaid = (till.shop.invoice() for _ in range(3))
        mails.append(cron.mail())
        till.pay(whole), till.pay(part, part["amount_sats"] // 2)
        mails.append(cron.mail())
        till.mine()
        mails.append(cron.mail())
        assert till.look(whole)["status"] == "paid"
        till.shop.sql(f"UPDATE invoice SET expires_ms = 1 WHERE id = '{unpaid['id']}'")  # noqa: S608
        mails += [cron.mail(), cron.mail()]
        assert till.look(unpaid)["status"] == "expired"
        till.pay(unpaid)
        till.mine()
        mails.append(cron.mail())
    ticker.reset()
    assert mails == [""] * len(mails)


def test_an_explorer_that_fails_beside_one_that_answers_is_no_mail(cron):
    cron.till.shop.invoice()
    assert cron.mail() == ""
    with FakeEsplora() as sick:
        sick.instead = lambda _path: say("oops", 500)
        cron.write(BLOCKTILL_EXPLORERS=f"{sick.root} {cron.till.settings.explorers[0]}")
        assert cron.mail() == "" and sick.asked


def no_explorer(cron):
    cron.till.shop.invoice()
    cron.write(BLOCKTILL_EXPLORERS="http://127.0.0.1:9")


def no_merchant(cron):
    url = f"sqlite:///{cron.folder}/other.db"
    versions.migrate(url, "regtest")
    cron.write(BLOCKTILL_DATABASE_URL=url)


WRONG = {
    "no explorer can be asked": (no_explorer, "127.0.0.1"),
    "there is no database": (lambda cron: cron.write(BLOCKTILL_DATABASE_URL="sqlite:///lost.db"),
        "there is no database at"),
    "there is no merchant": (no_merchant, "no merchant"),
    "the file is gone": (lambda cron: cron.file.unlink(), "cannot be read"),
    "the network is another": (lambda cron: cron.write(BLOCKTILL_NETWORK="signet"), "belongs to"),
    "the network is not said": (lambda cron: cron.write(BLOCKTILL_NETWORK=""), "not set: this is"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_cron_mails_the_operator_if(name, cron):
    spoil, said = WRONG[name]
    spoil(cron)
    assert said in cron.mail()


@pytest.mark.parametrize(("minutes", "is_said"), [(4.9, False), (5.1, True)])
def test_a_check_that_hangs_for_more_than_five_minutes_is_an_error(
    cron, minutes, is_said
):
    """By the clock that does not step; and what was noted before a restart says nothing."""
    url = cron.till.settings.database_url
    db = open_database(url)
    now_s, _, boot = boot_mark().partition(" ")
    since_s = int(now_s) - int(60 * minutes)
    with contextlib.closing(db), locks.only_one(db, url, "check"):
        assert cron.mail() == ""
        for start, status in ((boot, int(is_said)), ("another", 0)):
            meta.put(db, meta.Key.RUN_SINCE, f"{since_s} {start}")
            said = cron.mail()
            assert cron.status == status
            assert ("another check has been running for 5 minutes" in said) == bool(
                status
            )


def test_a_check_notes_since_when_another_is_at_it_until_it_takes_its_turn(cron):
    url = cron.till.settings.database_url
    db = open_database(url)
    with contextlib.closing(db), locks.only_one(db, url, "check"):
        before = boot_mark()
        cron.mail()
        since = meta.get(db, meta.Key.RUN_SINCE)
        age = time_between(before, since)
        assert timedelta() <= age <= time_between(before, boot_mark())
        cron.mail()
        assert meta.get(db, meta.Key.RUN_SINCE) == since
    cron.mail()
    assert meta.get(cron.till.shop.service.db, meta.Key.RUN_SINCE) == ""


@pytest.mark.slow  # it waits ten seconds for the other's transaction
def test_a_check_that_is_skipped_does_not_fail_while_the_other_writes_for_long(cron):
    """A large block on an SD card keeps it from noting anything."""
    url = cron.till.settings.database_url
    db = open_database(url)
    with contextlib.closing(db), locks.only_one(db, url, "check"), db.write():
        meta.put(db, meta.Key.TRIAL, "")
        assert "the database cannot be used" not in cron.mail()
        assert cron.status == 0
