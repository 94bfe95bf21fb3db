"""`blocktill setup`: a shop from options or a talk, twice, cut off, and by who is not root."""

import json
import os
import pwd
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from functools import partial
from importlib import metadata
from pathlib import Path

import pytest

from tests.support.builders import answers, clean_environ, new_xpub, until
from tests.support.forge import forge
from tests.support.paths import PROJECT
from tests.support.ports import free_port
from tests.support.programs import done
from tests.support.terminal import InTerminal

pytestmark = pytest.mark.slow

PROGRAM = Path(sys.executable).with_name("blocktill")
ME = pwd.getpwuid(os.geteuid()).pw_name
# No explorer and no ticker is asked for long: nobody listens there.
NOBODY = "BLOCKTILL_EXPLORERS=http://127.0.0.1:9\nBLOCKTILL_PRICE_SOURCES=http://127.0.0.1:9#/usd\n"


@pytest.fixture
def folder():
    """One that every user may enter."""
    folder = Path(tempfile.mkdtemp(prefix="setup-"))
    folder.chmod(0o755)
    (folder / "shop.env").write_text(f"# kept\n{NOBODY}")
    yield folder
    shutil.rmtree(folder)


def options(folder, user=ME, **more):
    """All that a shop on regtest needs; None leaves one out."""
    values = {
        "network": "regtest", "base-url": "http://127.0.0.1:8000",
        "database-url": f"sqlite:///{folder}/data/shop.db",
        "env-file": f"{folder}/shop.env", "user": user,
    } | {name.replace("_", "-"): text for name, text in more.items()}  # fmt: skip
    given = [
        word for name, text in values.items() if text for word in (f"--{name}", text)
    ]
    return [*given, "--units", "none"]


@pytest.fixture
def for_all(folder):
    """The program, copied to where every user may run it, by the system's own Python."""
    if os.geteuid() != 0:
        pytest.skip("only root can be somebody else")
    python = Path("/usr/bin/python3")
    asked = "import sys; print(sys.version_info[:2])"
    versions = [done([words, "-c", asked]) for words in (python, sys.executable)]
    if versions[0] != versions[1]:
        pytest.skip("the system's Python is another one")
    done([python, "-m", "venv", "--without-pip", folder / "opt"])
    (site,) = (folder / "opt").glob("lib/python*/site-packages")
    for package in ("btcpay", "schemas", "storage"):
        shutil.copytree(PROJECT / package, site / package)
    for entry in ("app.py", "wsgi.py"):
        shutil.copy(PROJECT / entry, site)
    for name in re.findall(
        r"^([\w.-]+)==", (PROJECT / "requirements.txt").read_text(), re.M
    ):
        for file in metadata.files(name) or ():
            if ".." not in file.parts and file.locate().is_file():
                (site / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file.locate(), site / file)
    program = folder / "opt" / "bin" / "blocktill"
    python = folder / "opt" / "bin" / "python"
    program.write_text(f"#!{python}\nfrom btcpay.cli.main import main\n\nmain()\n")
    program.chmod(0o755)
    return program


def run(words, status=0, program=None, cwd=PROJECT, environ=None, **more):
    """In a process of the forge, unless another `program` is named."""
    environ = clean_environ(HOME="/nowhere") | (environ or {})
    if program is None:
        forged = forge().run(environ, words, folder=str(cwd))
        ended = subprocess.CompletedProcess(
            words, forged.status, forged.output, forged.errors
        )
    else:
        more |= {"capture_output": True, "text": True, "timeout": 300}
        ended = subprocess.run(
            [program, *words], env=environ, cwd=cwd, stdin=subprocess.DEVNULL, **more
        )
    assert ended.returncode == status, ended.stdout + ended.stderr
    return ended


def stored(folder, *words):
    ended = run(["--env-file", f"{folder}/shop.env", *words, "--json"])
    return json.loads(ended.stdout)


def add_merchant(folder, *more):
    words = ["merchant", "add", "My shop", "--xpub", new_xpub(), "--skip", "0", "--yes"]
    run(["--env-file", f"{folder}/shop.env", *words, *more])


def test_options_alone_make_a_shop_and_a_second_run_changes_what_is_said(folder):
    first = run(["setup", *options(folder)])
    assert first.stdout == ""
    assert "What `blocktill doctor` finds:\n" in first.stderr
    again = f"run `{PROGRAM} --env-file {folder}/shop.env setup` again"
    assert again in first.stderr
    start = f"Start it: {PROGRAM} --env-file {folder}/shop.env run\n"
    assert f"{start}Then make the merchant in a browser: " in first.stderr
    text = (folder / "shop.env").read_text()
    assert text.startswith(f"# kept\n{NOBODY}BLOCKTILL_NETWORK=regtest\n")
    assert stat.S_IMODE((folder / "shop.env").stat().st_mode) == 0o600
    (folder / "shop.env").chmod(0o644)
    again = run(
        ["setup", "--env-file", f"{folder}/shop.env", "--units", "none", "--user", ME]
    )
    assert again.stdout == "" and (folder / "shop.env").read_text() == text
    assert stat.S_IMODE((folder / "shop.env").stat().st_mode) == 0o600
    add_merchant(folder)
    changed = run(["setup", *options(folder), "--email-retention-days", "30"])
    assert changed.stdout == "" and "make the merchant" not in changed.stderr
    assert (
        folder / "shop.env"
    ).read_text() == f"{text}BLOCKTILL_EMAIL_RETENTION_DAYS=30\n"
    assert [row["name"] for row in stored(folder, "merchant", "list")] == ["My shop"]


FIRST_STEPS = {
    "by the link that the shop prints": ("", [],
        "make the merchant in a browser: the shop prints the link when it starts\n"),
    "by the owner's password": ("BLOCKTILL_OWNER_PASSWORD=correct-horse-battery\n", [],
        "in a browser: http://127.0.0.1:8000/merchant asks for BLOCKTILL_OWNER_PASSWORD.\n"),
    "by a command, without a browser": ("", ["--merchant-pages", "off"],
        "shop.env merchant add NAME --xpub -\n"),
}  # fmt: skip


@pytest.mark.parametrize("way", FIRST_STEPS)
def test_how_the_merchant_is_made_is_said(way, folder):
    settings, more, expected = FIRST_STEPS[way]
    (folder / "shop.env").write_text(NOBODY + settings)
    assert expected in run(["setup", *options(folder), *more]).stderr


def test_yes_asks_nothing_and_keeps_what_was_answered(folder):
    """A shop of play money is this machine's own; the second run keeps another address."""
    words = ["setup", *options(folder, base_url=None), "--yes"]
    in_terminal = partial(
        InTerminal, folder=folder, environ=clean_environ(HOME="/nowhere")
    )
    terminal = in_terminal([PROGRAM, *words])
    assert terminal.wait() == 0, terminal.text
    file = folder / "shop.env"
    assert "BLOCKTILL_BASE_URL=http://127.0.0.1:8000\n" in file.read_text()
    file.write_text(file.read_text().replace(":8000", ":8123"))
    run(words)
    assert "BLOCKTILL_BASE_URL=http://127.0.0.1:8123\n" in file.read_text()


WRONG = {
    "network and address missing": ({"network": None, "base_url": None}, [], 2,
        "--network and --base-url must be given"),
    "no address for real money": ({"network": "mainnet", "base_url": None}, ["--yes"], 2,
        "--base-url must be given, since --yes asks nothing"),
    "no network": ({"network": None, "base_url": None}, ["--yes"], 2,
        "--network and --base-url must be given, since --yes asks nothing"),
    "a start of nothing": ({}, ["--start"], 2, "--start needs units"),
    "a question that only the browser asks": ({}, ["--xpub", "x"], 2, "No such option"),
    "a value that a script has not set": ({}, ["--proxy", ""], 2, "--proxy is followed by an"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_option_makes_nothing(case, folder):
    change, more, status, expected = WRONG[case]
    before = (folder / "shop.env").read_text()
    ended = run(["setup", *options(folder, **change), *more], status=status)
    assert expected in ended.stderr
    assert (folder / "shop.env").read_text() == before and not (
        folder / "data"
    ).exists()


def test_a_file_with_mistakes_is_refused_and_left(folder):
    (folder / "shop.env").write_text("A=$x\n")
    ended = run(["setup", *options(folder)], status=2)
    assert f"{folder}/shop.env, line 1: " in ended.stderr and "$x" not in ended.stderr
    assert (folder / "shop.env").read_text() == "A=$x\n"


def test_a_run_that_was_killed_is_made_again(folder):
    words = options(folder)
    for cut in ("at version", "doctor` finds"):
        nothing = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
        with subprocess.Popen(
            [PROGRAM, "setup", *words], env=clean_environ(HOME="/nowhere"), **nothing,
            stderr=subprocess.PIPE, text=True, start_new_session=True,
        ) as process:  # fmt: skip
            assert any(cut in line for line in process.stderr)
            os.killpg(process.pid, signal.SIGKILL)
    run(["setup", *words])
    add_merchant(folder)
    assert len(stored(folder, "merchant", "list")) == 1


def test_roots_shop_belongs_to_its_user_who_can_serve_it_from_wherever_root_is(
    folder, for_all
):
    said = run(["setup", *options(folder, user="nobody")], program=for_all).stderr
    nobody = pwd.getpwnam("nobody")
    env = (folder / "shop.env").stat()
    data = (folder / "data").stat()
    assert (env.st_uid, env.st_gid, stat.S_IMODE(env.st_mode)) == (
        0,
        nobody.pw_gid,
        0o640,
    )
    assert (data.st_uid, stat.S_IMODE(data.st_mode)) == (nobody.pw_uid, 0o700)
    assert {path.stat().st_uid for path in (folder / "data").iterdir()} == {
        nobody.pw_uid
    }
    command = re.search(
        r"^Start it: (cd / && runuser -u nobody -- .* run)$", said, re.M
    )[1]
    (folder / "closed").mkdir(mode=0o700)
    bind = f"127.0.0.1:{free_port()}"
    with subprocess.Popen(
        ["sh", "-c", command],
        cwd=folder / "closed",
        env=clean_environ(BLOCKTILL_BIND=bind, BLOCKTILL_METRICS_BIND=""),
        start_new_session=True,
    ) as process:
        until(
            lambda: process.poll() is not None or answers(f"http://{bind}/healthz"),
            "an answer",
        )
        assert process.poll() is None
        os.killpg(process.pid, signal.SIGTERM)
    (folder / "opt").chmod(0o700)
    ended = run(["setup", *options(folder, user="nobody")], status=1, program=for_all)
    assert f"nobody may not run {for_all}: install it outside of a home" in ended.stderr


def test_who_is_not_root_has_the_shop_in_the_folder(folder, for_all):
    place = folder / "place"
    place.mkdir()
    shutil.chown(place, "nobody", "nogroup")
    words = ["--network", "regtest", "--base-url", "http://127.0.0.1:8000"]
    as_nobody = {"user": "nobody", "group": "nogroup", "extra_groups": []}
    setup = ["setup", *words, "--yes"]
    ended = run(setup, program=for_all, cwd=place, **as_nobody)
    assert (place / "var/regtest.db").exists()
    assert f"--env-file {place}/blocktill.env run\n" in ended.stderr
    assert "units" not in ended.stderr
    refused = run(["setup", "--user", "root"], 2, for_all, cwd=place, **as_nobody)
    assert "only root can make a shop for root" in refused.stderr


def test_units_are_written_and_started_when_they_are_asked_for(folder):
    (folder / "tools").mkdir()
    systemctl = folder / "tools" / "systemctl"
    systemctl.write_text(f'#!/bin/sh\necho "$@" >> {folder}/told\n')
    systemctl.chmod(0o755)
    (folder / "units").mkdir()
    words = options(folder)[:-2]
    more = ["--units-folder", f"{folder}/units", "--backups", f"{folder}/b"]
    environ = {"PATH": f"{folder}/tools:/usr/bin:/bin"}
    said = run(["setup", *words, *more, "--units"], environ=environ).stderr
    assert told(folder) == ["daemon-reload"]
    assert said.count("it starts: journalctl --unit blocktill.service\n") == 1
    run(["setup", *words, *more, "--units", "--yes"], environ=environ)
    units = folder / "units"
    of_one = {"blocktill.service", "blocktill-backup.service", "blocktill-backup.timer"}
    assert {path.name for path in units.iterdir()} == of_one
    command = f"ExecStart={PROGRAM} --env-file {folder}/shop.env"
    assert f"{command} run\n" in (units / "blocktill.service").read_text()
    assert told(folder) == [
        "daemon-reload",
        "enable --now blocktill.service blocktill-backup.timer",
        "restart blocktill.service",
    ]
    run(["setup", *words, *more, "--units", "cron", "--start"], environ=environ)
    of_cron = {"blocktill-check.service", "blocktill-check.timer"}
    assert {path.name for path in units.iterdir()} == of_one | of_cron
    assert f"{command} serve\n" in (units / "blocktill.service").read_text()
    assert (
        told(folder)[1]
        == "enable --now blocktill.service blocktill-check.timer blocktill-backup.timer"
    )
    run(["setup", *words, *more, "--units", "--start"], environ=environ)
    assert {path.name for path in units.iterdir()} == of_one
    assert told(folder)[:2] == [f"disable --now {name}" for name in sorted(of_cron)]


def test_without_systemd_nothing_is_made_and_what_to_do_is_said(folder):
    """A container, or a system with another init."""
    environ = {"PATH": f"{folder}/tools"}
    for more in (["--start"], ["--units"], ["--units", "cron", "--start"]):
        words = ["setup", *options(folder)[:-2], *more, "--units-folder", str(folder)]
        ended = run(words, 1, environ=environ)
        start = f"{PROGRAM} --env-file {folder}/shop.env run"
        said = (
            "blocktill: this machine has no systemd (no systemctl): "
            "say --units none --no-start, "
        )
        assert ended.stderr.endswith(f"{said}and start the shop by {start}\n")
        assert not (folder / "data").exists()


def told(folder):
    """The commands that systemctl was given since the last time."""
    file = folder / "told"
    lines = file.read_text().splitlines()
    file.unlink()
    return lines


def test_a_developers_shop_lies_in_the_folder_and_one_command_starts_it(folder):
    (folder / "regtest.env").write_text(NOBODY)
    asked = ["--network", "regtest", "--base-url", f"http://127.0.0.1:{free_port()}"]
    said = run(["setup", "--here", *asked], cwd=folder).stderr
    command = re.search(r"^Start it: (.*)$", said, re.M)[1].split()
    assert command == [str(PROGRAM), "--env-file", f"{folder}/regtest.env", "run"]
    begun = started(folder, command, "To begin, open ")
    assert re.search(
        rf"^To begin, open {asked[3]}/merchant/start/\w{{24}}$", begun, re.M
    )
    (folder / "regtest.env").rename(folder / "shop.env")
    add_merchant(folder)
    (folder / "shop.env").rename(folder / "regtest.env")
    begun = started(folder, command, "An invoice:")
    assert f"The shop's pages: {asked[3]}/merchant/login/" in begun
    assert re.search(r"Bearer sk_test_\w+", begun)
    assert stat.S_IMODE((folder / "var/write_key").stat().st_mode) == 0o600
    refused = run(["setup", "--here", "--network", "mainnet"], 2, cwd=folder)
    assert "--here is for play money" in refused.stderr


def started(folder, command, awaited):
    """The output of a command until it has said that, and its service listens."""
    environ = clean_environ(HOME="/nowhere", BLOCKTILL_METRICS_BIND="")
    with subprocess.Popen(
        command, cwd=folder, env=environ, stderr=subprocess.PIPE, text=True
    ) as process:
        lines = []
        for line in process.stderr:
            lines.append(line)
            if "Listening at" in line and any(awaited in said for said in lines):
                break
        process.terminate()
        lines += process.stderr.readlines()
    assert process.returncode == 0, lines
    return "".join(lines)


@pytest.mark.parametrize(
    "name, file", [("nginx", "nginx.conf"), ("caddy", "Caddyfile")]
)
def test_the_proxies_examples_are_printed(name, file):
    printed = run(["setup", "--proxy-config", name]).stdout
    assert printed == (PROJECT / "deploy" / file).read_text()


def test_a_talk_asks_again_until_each_answer_is_good(folder):
    port = free_port()
    words = f"{PROGRAM} setup --env-file {folder}/shop.env --units none --user {ME}"
    terminal = InTerminal(words.split(), folder, clean_environ(HOME="/nowhere"))

    def is_asked(question, times):
        return (
            terminal.text.count(question) == times
            or terminal.process.poll() is not None
        )

    for question, text, times in (
        ("Network (", "bitcoin", 1),
        ("Network (", "regtest", 2),
        ("Public address", "shop.net", 1),
        ("Public address", f"http://127.0.0.1:{port}", 2),
        ("Database [", f"sqlite:///{folder}/data/shop.db", 1),
    ):
        until(partial(is_asked, question, times), question)
        terminal.type(f"{text}\n")
    assert terminal.wait() == 0, terminal.text
    text = (folder / "shop.env").read_text()
    assert f"BLOCKTILL_BASE_URL=http://127.0.0.1:{port}\n" in text
    assert "BLOCKTILL_MERCHANT_PAGES=on\n" in text and "PROXY" not in text
    assert "Error: BLOCKTILL_NETWORK accepts one of" in terminal.text
