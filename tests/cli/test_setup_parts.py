"""The parts of `blocktill setup`: changed lines, units, answers."""

import os
import pwd
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from btcpay.cli.setup.machine import (
    has_right_mode,
    make_folder,
    this_user,
    write_settings,
)
from btcpay.cli.setup.owner_steps import conclusion_of
from btcpay.cli.setup.questions import QUESTIONS, default_of, validate_answer
from btcpay.cli.setup.units import template, units, write
from btcpay.settings.env_file import changed_text
from btcpay.values.errors import CommandError, SettingsError
from btcpay.values.finding import GREEN, RED, YELLOW
from tests.support.paths import PROJECT
from tests.support.programs import done, tool

pytestmark = pytest.mark.slow

BY_NAME = {question.name: question for question in QUESTIONS}
NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root has another user")

CHANGES = {
    "a value stands in the place of the old one": ("#x\nA=1\n\nB=2\n", {"A": "3"},
        "#x\nA=3\n\nB=2\n"),
    "the last of several is changed": ("A=1\nA=2\n", {"A": "3"}, "A=1\nA=3\n"),
    "a new one comes last": ("# x\nA=1", {"B": "2"}, "# x\nA=1\nB=2\n"),
    "one with export is found": ("export A=1\n", {"A": "2"}, "A=2\n"),
    "one that is taken out is gone": ("A=1\n# A\nA=2\nB=1\n", {"A": ""}, "# A\nB=1\n"),
    "a comment is no variable": ("#A=1\n", {"A": "2"}, "#A=1\nA=2\n"),
    "a longer name is another": ("AB=1\n", {"A": "2"}, "AB=1\nA=2\n"),
    "nothing said changes nothing": ("A=1 \n", {}, "A=1 \n"),
    "blanks want quotes": ("", {"A": "1 3@1000"}, 'A="1 3@1000"\n'),
    "no line ends where a file's line does not": ("# x\u2028A=1\nB='\x85C=2'\n", {"A": "3", "D":
        "4\u20285"}, "# x\u2028A=1\nB='\x85C=2'\nA=3\nD=\"4\u20285\"\n"),
    "a dollar wants single quotes": ("", {"A": "p$w"}, "A='p$w'\n"),
}  # fmt: skip


@pytest.mark.parametrize("case", CHANGES)
def test_lines_are_changed_and_all_others_stay(case):
    text, changes, expected = CHANGES[case]
    assert changed_text(text, changes) == expected


def test_what_no_line_can_say_is_refused_without_repeating_it():
    for value in ("a\nb", "it's $5", "\x07"):
        with pytest.raises(SettingsError) as caught:
            changed_text("", {"A": value})
        assert caught.value.mistakes == ["A: a file of settings cannot hold this value"]


def test_the_file_is_the_owners_alone_and_never_half_written(tmp_path):
    me = pwd.getpwuid(os.geteuid())
    file = tmp_path / "a" / "blocktill.env"
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / ".blocktill.env.new").write_text("of a run that was killed")
    write_settings(file, "A=1\n", me)
    assert file.read_text() == "A=1\n" and stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(file.parent.iterdir()) == [file]


class Swapped(type(Path())):  # type: ignore[misc]
    """A folder that is exchanged for a link to `etc` as soon as it is made, if it is `db`."""

    def mkdir(self, *args, **kwargs):
        super().mkdir(*args, **kwargs)
        if self.name == "db":
            self.rmdir()
            self.symlink_to(self.with_name("etc"))


@NEEDS_ROOT
def test_who_swaps_his_new_folder_for_a_link_is_given_nothing_else(tmp_path):
    (tmp_path / "etc").mkdir(0o755)
    make_folder(Swapped(tmp_path / "db"), pwd.getpwnam("nobody"))
    found = (tmp_path / "etc").stat()
    assert (found.st_uid, stat.S_IMODE(found.st_mode)) == (0, 0o755)


@NEEDS_ROOT
def test_whose_settings_are_a_link_is_given_nothing_of_what_it_leads_to(tmp_path):
    (tmp_path / "others.env").write_text("SECRET=1\n")
    (tmp_path / "shop.env").symlink_to("others.env")
    words = [
        sys.executable,
        "-m",
        "btcpay",
        "setup",
        "--env-file",
        f"{tmp_path}/shop.env",
        "--yes",
    ]
    ended = subprocess.run(words, cwd=PROJECT, capture_output=True, text=True)
    assert ended.returncode == 1
    assert ended.stderr.endswith(
        f"Too many levels of symbolic links: '{tmp_path}/shop.env'\n"
    )
    assert (tmp_path / "shop.env").is_symlink()


TRIES = """
import os, pwd
from btcpay.cli.setup.machine import as_user

def work():
    assert os.getresuid() == (user.pw_uid,) * 3 and os.getresgid() == (user.pw_gid,) * 3
    assert os.getgroups() == []
    for way_back in (lambda: os.setuid(0), lambda: os.setresuid(-1, 0, -1), lambda: os.setgid(0)):
        try:
            way_back()
            return 2
        except PermissionError:
            pass
    return 3

user = pwd.getpwnam("nobody")
os.access = lambda *_: True  # this program may lie in root's home
as_user(user, work)
"""


@NEEDS_ROOT
def test_who_works_for_root_as_another_user_cannot_become_root_again():
    assert subprocess.run([sys.executable, "-c", TRIES], cwd=PROJECT).returncode == 3


@NEEDS_ROOT
def test_the_services_user_may_read_what_root_may_write(tmp_path):
    nobody = pwd.getpwnam("nobody")
    write_settings(tmp_path / "e", "A=1\n", nobody)
    found = (tmp_path / "e").stat()
    assert (found.st_uid, found.st_gid) == (0, nobody.pw_gid)
    assert stat.S_IMODE(found.st_mode) == 0o640


ME_OR_NOBODY = {
    "as it is written for oneself": ("root", "root", 0o600, True),
    "readable for all": ("root", "root", 0o644, False),
    "as it is written for another user": ("nobody", "nobody", 0o640, True),
    "copied by root from another machine": ("nobody", "root", 0o640, False),
    "closed to its group": ("nobody", "nobody", 0o600, False),
}


@NEEDS_ROOT
@pytest.mark.parametrize("case", ME_OR_NOBODY)
def test_a_file_that_its_user_cannot_read_is_written_again(case, tmp_path):
    user, group, mode, expected = ME_OR_NOBODY[case]
    file = tmp_path / "e"
    assert not has_right_mode(file, pwd.getpwnam(user))
    file.touch()
    os.chown(file, 0, pwd.getpwnam(group).pw_gid)
    file.chmod(mode)
    assert has_right_mode(file, pwd.getpwnam(user)) == expected


@NEEDS_ROOT
def test_who_may_not_write_the_file_is_told_to_be_root(tmp_path):
    nobody = pwd.getpwnam("nobody")
    os.seteuid(nobody.pw_uid)
    try:
        with pytest.raises(CommandError, match="nobody may not write .* as root"):
            write_settings(tmp_path / "e", "A=1\n", nobody)
    finally:
        os.seteuid(0)


@pytest.mark.parametrize(
    ("colours", "expected"),
    [
        (
            {GREEN, YELLOW, RED},
            "Repair what is red, then run `/b/blocktill setup` again.",
        ),
        ({GREEN, YELLOW}, ""),
        ({GREEN}, "All is well."),
    ],
)
def test_a_repair_is_asked_for_only_where_something_is_red(colours, expected):
    assert conclusion_of(colours, "/b/blocktill") == expected


GOOD = {"BLOCKTILL_NETWORK": "testnet4", "BLOCKTILL_BASE_URL": "https://pay.shop.net"}


def test_a_wrong_answer_is_refused_at_its_question():
    relative = "sqlite:///relative.db"
    for name, text in (
        ("network", "bitcoin"),
        ("network", ""),
        ("database_url", relative),
    ):
        with pytest.raises(ValueError):
            validate_answer(BY_NAME[name], text, GOOD)


def test_a_mistake_elsewhere_in_the_file_is_not_this_answers():
    wrong = GOOD | {"BLOCKTILL_CONFIRMATIONS": "many"}
    assert validate_answer(BY_NAME["proxy"], " none ", wrong) == ""
    assert validate_answer(BY_NAME["trusted_proxies"], "1", wrong) == "1"


def test_another_network_gets_another_file_and_what_is_there_stays_otherwise():
    def database(present, network):
        answers = present | {"BLOCKTILL_NETWORK": network}
        return default_of(BY_NAME["database_url"], answers, present, Path("/d"))

    present = {
        "BLOCKTILL_NETWORK": "testnet4",
        "BLOCKTILL_DATABASE_URL": "sqlite:////x/y.db",
    }
    assert database({}, "testnet4") == "sqlite:////d/testnet4.db"
    assert database(present, "testnet4") == "sqlite:////x/y.db"
    assert database(present, "mainnet") == "sqlite:////d/mainnet.db"
    on_server = present | {"BLOCKTILL_DATABASE_URL": "postgresql://h/n"}
    assert database(on_server, "mainnet") == "postgresql://h/n"


def test_systemd_takes_the_units_for_another_place_and_user(tmp_path):
    program = tmp_path / "blocktill"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    texts = units(
        program, Path("/srv/shop.env"), "daemon", Path("/srv/db"), kind="cron"
    )
    assert sorted(write(tmp_path, texts)) == sorted(texts) and len(texts) == 5
    for name, text in texts.items():
        assert "/opt/blocktill" not in text and "/etc/blocktill.env" not in text
        if name.endswith(".service"):
            assert f"{program} --env-file /srv/shop.env " in text
            assert "User=daemon\n" in text and "ReadWritePaths=/srv/db\n" in text
    words = [tool("systemd-analyze"), "verify", "--man=no"]
    assert done([*words, *(tmp_path / name for name in texts)]) == ""
    assert write(tmp_path, texts) == []


def test_units_that_a_package_has_are_written_only_where_they_differ(tmp_path):
    own = tmp_path / "own"
    packaged = tmp_path / "packaged"
    own.mkdir(), packaged.mkdir()
    write(packaged, {"a.service": "a", "b.service": "b"})
    assert write(own, {"a.service": "a", "b.service": "other"}, packaged) == [
        "b.service"
    ]
    assert [file.name for file in own.iterdir()] == ["b.service"]
    assert write(own, {"b.service": "b"}, packaged) == [
        "b.service"
    ]  # it stands before the other


def test_units_are_those_of_the_package_but_for_what_differs_and_name_no_odd_path():
    state = Path("/var/lib/blocktill")
    program = Path("/opt/blocktill/bin/blocktill")
    for name, text in units(
        program, Path("/etc/blocktill.env"), "blocktill", state
    ).items():
        assert text == template(name).replace("Group=blocktill\n", "")
    for path in ("/srv/my shop/blocktill", "/srv/100%/blocktill", "/srv/$x/blocktill"):
        with pytest.raises(CommandError, match="choose a path without"):
            units(Path(path), Path("/etc/blocktill.env"), "blocktill", None)


def test_a_user_without_a_name_is_told_so(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 4_000_000_000)
    with pytest.raises(CommandError, match="no name for the user 4000000000"):
        this_user()
