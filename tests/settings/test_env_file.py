"""`--env-file`: a file of settings is read as systemd and sh read it, or refused."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from btcpay.cli.setup.units import template
from btcpay.settings.env_file import ACCEPTED, changed_text, fill, parse
from btcpay.values.errors import SettingsError
from tests.support.forge import forge
from tests.support.paths import PROJECT
from tests.support.programs import tool

# systemd's own reader of such files; it also replaces $NAME, which EnvironmentFile= does not.
SYSTEMD = Path(
    "/usr/lib/systemd/user-environment-generators/30-systemd-environment-d-generator"
)


def by_sh(folder, text):
    """A shell's environment after `set -a; . FILE`."""
    (folder / "env").write_text(text)
    script = f"set -eu -a; . {folder}/env; exec {tool('env')} -0"
    words = ["sh", "-c", script]
    ended = subprocess.run(
        words, env={}, cwd=folder, capture_output=True, text=True, timeout=60
    )
    assert (ended.returncode, ended.stderr) == (0, ""), (text, ended.stderr)
    environ = dict(item.split("=", 1) for item in ended.stdout.split("\0") if item)
    return {
        name: value
        for name, value in environ.items()
        if name not in ("PWD", "_", "OLDPWD")
    }


def by_systemd(folder, text):
    if not SYSTEMD.exists():
        pytest.skip("systemd is not installed")
    (folder / "environment.d").mkdir(exist_ok=True)
    (folder / "environment.d" / "1.conf").write_text(text)
    environ = {"XDG_CONFIG_HOME": str(folder), "HOME": str(folder)}
    ended = subprocess.run(
        [SYSTEMD], env=environ, capture_output=True, text=True, timeout=60
    )
    lines = (line.partition("=") for line in ended.stdout.splitlines())
    found = {
        name: "".join(shlex.split(value)).replace("\\t", "\t")
        for name, _, value in lines
    }
    # It leaves out what is empty, and finds what other programs have installed.
    ours = dict.fromkeys(re.findall(r"^\s*(\w+)=", text, re.M), "")
    return {name: found.get(name, "") for name in ours}


GOOD = {
    "a plain value": ("A=regtest", "regtest"),
    "nothing": ("A=", ""),
    "nothing in quotes": ('A=""', ""),
    "blanks around a line": ("  A=x \t ", "x"),
    "blanks in double quotes": ('A="1 3@1000  6@10000 "', "1 3@1000  6@10000 "),
    "blanks in single quotes": ("A=' x\ty '", " x\ty "),
    "a number sign in a word": ("A=https://a/b#/usd", "https://a/b#/usd"),
    "a number sign first": ("A=#x", "#x"),
    "a number sign in quotes": ('A="x #y"', "x #y"),
    "a semicolon in quotes": ('A="x;y"', "x;y"),
    "an ampersand in quotes": ('A="http://a/?b=c&d=e"', "http://a/?b=c&d=e"),
    "signs of a pattern": ("A=a?b*c[d]{e,f}!g%25", "a?b*c[d]{e,f}!g%25"),
    "an apostrophe in double quotes": ('A="it\'s"', "it's"),
    "double quotes in single ones": ("A='\"'", '"'),
    "a backslash in single quotes": (r"A='\n\\'", r"\n\\"),
    "letters": ('A="Caf\u00e9 \u20bf"', "Caf\u00e9 \u20bf"),
    "equals signs": ("A=b=c", "b=c"),
    "the last of two": ("A=1\nA=2", "2"),
    "comments and blank lines": ("# x='\n\n \t# \"y\n   \nA=1\n#", "1"),
}
DOLLAR = {"a dollar in single quotes": ("A='$HOME`x`'", "$HOME`x`")}


@pytest.mark.parametrize("name", GOOD | DOLLAR)
def test_a_file_is_read_as_the_shell_reads_it(name, tmp_path):
    text, value = (GOOD | DOLLAR)[name]
    assert parse(text, "f") == {"A": value} == by_sh(tmp_path, text)


@pytest.mark.parametrize("name", GOOD)
def test_a_file_is_read_as_systemd_reads_it(name, tmp_path):
    text, value = GOOD[name]
    assert by_systemd(tmp_path, text) == {"A": value}


def test_what_setup_writes_is_read_alike(tmp_path):
    begun = template("blocktill.env")
    text = changed_text(begun, {"A": "signet", "B": "1 3@1000"})
    assert parse(begun, "f") == {} and parse(text, "f") == {
        "A": "signet",
        "B": "1 3@1000",
    }
    assert parse(text, "f") == by_sh(tmp_path, text) == by_systemd(tmp_path, text)


def test_an_export_before_it_does_not_matter(tmp_path):
    text = "export A=1\n  export  B='x y'\n"
    assert parse(text, "f") == {"A": "1", "B": "x y"} == by_sh(tmp_path, text)


BAD = {
    "a blank in a plain value": "A=x y",
    "a comment behind a value": "A=x # y",
    "blanks around the sign": "A = x",
    "a name that is none": "1A=x",
    "a quote that is not closed": 'A="x',
    "a quote over two lines": 'A="x\ny"',
    "a quote amid a word": 'A=x"y"',
    "something behind a quote": 'A="x"y',
    "a dollar": "A=$B",
    "a dollar in double quotes": 'A="$B"',
    "a backslash": r"A=a\b",
    "a backslash in double quotes": r'A="a\b"',
    "a line that goes on": "A=x\\\ny",
    "a comment that goes on for systemd": "# x\\\nA=1",
    "an ampersand": "A=http://a/?b&c",
    "a control character": "A='\x1b'",
    "NUL": "A='\0'",
}


@pytest.mark.parametrize("name", BAD)
def test_what_would_be_read_differently_is_refused_with_its_line_and_without_its_value(
    name,
):
    with pytest.raises(SettingsError) as caught:
        parse(f"OK=1\n{BAD[name]}\n", "/etc/x.env")
    (mistake,) = caught.value.mistakes
    assert re.fullmatch(f"/etc/x.env, line 2(, 3)?: {re.escape(ACCEPTED)}", mistake)


def test_every_wrong_line_is_named_and_line_ends_of_windows_once():
    with pytest.raises(SettingsError) as caught:
        parse("A=1\r\n\r\nB = 2\nC=3\r\nD=$\n", "f")
    mistakes = ["f has Windows line endings (CRLF)", f"f, line 3, 5: {ACCEPTED}"]
    assert caught.value.mistakes == mistakes


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(st.text("Aab=\"' \t#;\\{}[]*?!%^,:@/.-+1\u00e9", max_size=14))
def test_of_random_lines_those_that_are_taken_are_read_alike(tmp_path_factory, text):
    try:
        found = parse(f"A={text}", "f")
    except SettingsError:
        return
    folder = tmp_path_factory.getbasetemp()
    assert found == by_sh(folder, f"A={text}")
    assert found == by_systemd(folder, f"A={text}")


def test_the_environment_stands_before_the_file(tmp_path):
    """The file of a secret and the secret are one setting: nothing is set twice."""
    file = tmp_path / "env"
    file.write_text(
        "A=file\nB=file\nC=file\nBLOCKTILL_METRICS_BIND=file\nURL=file\nSTORE_FILE=file\n"
    )
    environ = {"BLOCKTILL_ENV_FILE": str(file), "A": "environment", "B": " "}
    environ["BLOCKTILL_METRICS_BIND"] = (
        ""  # the one that says something when it is empty
    )
    environ |= {"URL_FILE": "environment", "STORE": "environment"}
    before = dict(environ)
    fill(environ)
    assert environ == before | {"B": "file", "C": "file"}


def test_commands_and_doctor_read_the_file_of_a_secret_and_show_its_path_alone(
    tmp_path,
):
    (tmp_path / "url").write_text(f"sqlite:///{tmp_path}/hunter2.db\n")
    file = tmp_path / "blocktill.env"
    file.write_text(
        f"BLOCKTILL_NETWORK=signet\nBLOCKTILL_DATABASE_URL_FILE={tmp_path}/url\n"
    )
    assert run(f"--env-file {file} migrate", tmp_path).errors == ""
    explorer = {
        "BLOCKTILL_EXPLORERS": "http://127.0.0.1:9",
        "BLOCKTILL_PRICE_SOURCES": "http://a:9#/a",
    }
    said = run(f"--env-file {file} doctor", tmp_path, **explorer).output
    assert "setting BLOCKTILL_EXPLORERS: http://127.0.0.1:9 (environment)" in said
    assert f"setting BLOCKTILL_DATABASE_URL_FILE: {tmp_path}/url ({file})" in said
    assert "nothing reads this variable" not in said
    (tmp_path / "url").unlink()
    ended = run(f"--env-file {file} check", tmp_path)
    assert ended.status == 2 and "BLOCKTILL_DATABASE_URL_FILE: " in ended.errors


def run(words, folder, **environ):
    environ = {"PATH": os.environ["PATH"]} | environ
    return forge().run(environ, words.split(), folder=str(folder))


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "blocktill.env"
    database = f"export BLOCKTILL_DATABASE_URL=sqlite:///{tmp_path}/x.db\n"
    file.write_text(f"BLOCKTILL_NETWORK=signet\n{database}")
    return file


def test_the_word_and_the_variable_do_the_same_and_the_word_comes_first(file, tmp_path):
    (other := tmp_path / "other.env").write_text("BLOCKTILL_NETWORK=wrong\n")
    assert run(f"--env-file {file} migrate", tmp_path).output.startswith(
        "made a new database"
    )
    for words, environ in [
        (f"--env-file {file} merchant list", {"BLOCKTILL_ENV_FILE": str(other)}),
        ("merchant list", {"BLOCKTILL_ENV_FILE": str(file)}),
        ("--env-file blocktill.env merchant list", {}),
    ]:
        ended = run(words, tmp_path, **environ)
        assert (ended.status, ended.errors) == (0, ""), words
    ended = run("merchant list", tmp_path, BLOCKTILL_ENV_FILE=str(other))
    assert ended.status == 2 and "BLOCKTILL_NETWORK accepts one of" in ended.errors


def test_a_file_that_is_not_there_or_has_mistakes_ends_every_command_with_status_2(
    file, tmp_path
):
    ended = run("--env-file none.env check", tmp_path)
    assert ended.status == 2 and "none.env cannot be read: No such file" in ended.errors
    file.write_bytes(b"BLOCKTILL_NETWORK=a b\nB=1\nC=$x\n")
    ended = run(f"--env-file {file} check --quiet", tmp_path)
    assert ended.status == 2 and ", line 1, 3: " in ended.errors
    file.write_bytes(b"A=\xff\n")
    assert "not in UTF-8" in run(f"--env-file {file} check", tmp_path).errors


def test_gunicorn_without_the_command_line_reads_the_file_too(file, tmp_path):
    text = file.read_text() + "BLOCKTILL_BIND=127.0.0.1:0\nBLOCKTILL_METRICS_BIND=\n"
    file.write_text(text)
    environ = {"PATH": os.environ["PATH"], "BLOCKTILL_ENV_FILE": str(file)}
    words = ["-c", str(PROJECT / "deploy/gunicorn.conf.py"), "wsgi:app"]
    ended = forge().run(environ, words, program="gunicorn", folder=str(tmp_path))
    assert (
        ended.status == 1 and f"there is no database at {tmp_path}/x.db" in ended.errors
    )


@pytest.mark.parametrize("missing", ["BLOCKTILL_NETWORK", "BLOCKTILL_DATABASE_URL"])
def test_a_command_on_a_default_says_which_network_and_database_it_is(
    missing, tmp_path
):
    said = {"BLOCKTILL_NETWORK": "regtest"}
    said |= {"BLOCKTILL_DATABASE_URL": f"sqlite:///{tmp_path}/var/blocktill.db"}
    assert run("migrate", tmp_path, **said).errors == ""
    del said[missing]
    for words in ("migrate", "merchant list", "key list"):
        ended = run(words, tmp_path, **said)
        expected = f"{missing} not set: this is regtest, {tmp_path}/var/blocktill.db\n"
        assert (ended.status, ended.errors) == (0, expected), words
