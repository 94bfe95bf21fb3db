"""No output of any command shows a secret setting."""

import click
import pytest

from btcpay.cli.main import cli
from btcpay.settings.secrets import without_secrets
from btcpay.settings.settings import OF_FILES, read
from tests.support.commands import commands
from tests.support.forge import forge

SECRET = "hunter2-0123456789-hunter2"
# A value of each secret setting that is accepted. Nothing answers at these places.
SECRETS = {
    "BLOCKTILL_DATABASE_URL": f"postgresql://me:{SECRET}@127.0.0.1:1/name",
    "BLOCKTILL_PROXY": f"http://me:{SECRET}@127.0.0.1:1",
    "BLOCKTILL_RATE_LIMIT_STORE": f"redis://me:{SECRET}@127.0.0.1:1/0",
    "BLOCKTILL_SMTP_URL": f"smtp://me:{SECRET}@127.0.0.1:1",
    "BLOCKTILL_SETUP_TOKEN": SECRET,
    "BLOCKTILL_OWNER_PASSWORD": SECRET,
}
# A blank may be in a password, so that it is wrong for another reason.
TOO_LONG = {"BLOCKTILL_OWNER_PASSWORD": SECRET * 8}
MAIL = {"BLOCKTILL_MAIL_FROM": "shop@example.com"}
UNENDING = {"run", "serve", "listen", "sandbox"}  # `serve` has a test of its own


def test_there_is_a_value_of_each_secret_setting():
    assert SECRETS.keys() == OF_FILES.keys()
    assert SECRET not in repr(read(SECRETS | MAIL))


SHOWN = {
    "a token": ("BLOCKTILL_SETUP_TOKEN", "a-token_of-20-letter", "***"),
    "no token": ("BLOCKTILL_SETUP_TOKEN", "", ""),
    "a URL": ("BLOCKTILL_DATABASE_URL", "postgresql://u:p@w:1/x", "postgresql://***@w:1/x"),
    "a password with a slash, a blank and a sign that ends users": ("BLOCKTILL_PROXY",
        "http://u:p/ @q@w:1", "http://***@w:1"),
    "a password in the query": ("BLOCKTILL_RATE_LIMIT_STORE", "redis://w/0?password=p",
        "redis://w/0?***"),
    "a password in the query with a sign that ends users": ("BLOCKTILL_DATABASE_URL",
        "postgresql://w/x?password=p@q", "postgresql://***"),
    "a password in the query with a sign that ends queries": ("BLOCKTILL_DATABASE_URL",
        "postgresql://w/x?password=p#q", "postgresql://w/x?***"),
    "a password in the query with a sign between values": ("BLOCKTILL_DATABASE_URL",
        "postgresql://w/x?user=u&password=p&q r", "postgresql://w/x?***"),
    "a password, and another in the query": ("BLOCKTILL_DATABASE_URL",
        "postgresql://u:p@w/x?password=p@q/r", "postgresql://***"),
    "a user, whose host is missing": ("BLOCKTILL_SMTP_URL", "smtp://u:p#q", "smtp://***"),
    "what follows the path": ("BLOCKTILL_RATE_LIMIT_STORE", "redis://w/0#q", "redis://***"),
    "a place of IPv6": ("BLOCKTILL_SMTP_URL", "smtp://u:p@[::1]:25", "smtp://***@[::1]:25"),
    "a token that looks like a URL": ("BLOCKTILL_SETUP_TOKEN", "a-token://of-letters", "***"),
    "a token that looks like a URL of ours": ("BLOCKTILL_SETUP_TOKEN",
        "smtp://hunter2-hunter2", "***"),
    "a password that looks like a URL": ("BLOCKTILL_OWNER_PASSWORD",
        "https://hunter2/hunter2", "***"),
    "a URL without its scheme": ("BLOCKTILL_SMTP_URL", "me:p@w", "***"),
    "a file": ("BLOCKTILL_DATABASE_URL", "sqlite:////var/lib/a.db", "sqlite:////var/lib/a.db"),
    "the path of a secret's file": ("BLOCKTILL_SETUP_TOKEN_FILE", "/run/token", "/run/token"),
    "no secret": ("BLOCKTILL_CONFIRMATIONS", "1 3@1000", "1 3@1000"),
    "a key in a URL": ("BLOCKTILL_EXPLORERS", "https://a/v1/0a1b2c3d4e5f6071/x", "https://a/v1/***/x"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "text", "expected"), SHOWN.values(), ids=SHOWN)
def test_what_of_a_setting_is_shown(name, text, expected):
    assert without_secrets(name, text) == expected


def words_of_all(folder):
    """The words of each command that ends, with something for each argument that it needs."""
    for name, command in commands(cli):
        if name.split()[0] not in UNENDING:
            needed = [one for one in command.params if isinstance(one, click.Argument)]
            given = [str(folder / "x") for one in needed if one.required]
            yield [*name.split(), *given]
    yield ["doctor", "--json"]


@pytest.mark.parametrize("database", ["of the shop", "of a server that is away"])
def test_no_command_shows_a_secret(till, tmp_path, database):
    secrets = {
        name: text for name, text in SECRETS.items() if name != "BLOCKTILL_DATABASE_URL"
    }
    if database != "of the shop":
        secrets = SECRETS
    environ = {"PATH": "/usr/bin:/bin"} | till.shop.environ | MAIL | secrets
    said = {}
    for words in words_of_all(tmp_path):
        ended = forge().run(environ, words)
        said[" ".join(words)] = ended.output + ended.errors
    assert [name for name, text in said.items() if SECRET in text] == []
    for name in secrets:
        assert f"setting {name}: " in said["doctor"] and "***" in said["doctor"]


@pytest.mark.parametrize("name", SECRETS)
def test_a_wrong_secret_is_refused_without_a_word_of_it(till, tmp_path, name):
    file = tmp_path / "secret"
    more = TOO_LONG.get(name, "")
    file.write_text(
        f"{SECRET} {SECRET}://{SECRET}{more}\udcff".encode("utf-8", "replace").decode()
    )
    for environ in (
        {name: f"{SECRET} {SECRET}{more}"},
        {name: f"https://{SECRET}:{SECRET}@{SECRET}:x/{SECRET}{more}"},
        {f"{name}_FILE": str(file)},
        {name: SECRET, f"{name}_FILE": str(file)},
    ):
        base = {one: text for one, text in till.shop.environ.items() if one != name}
        ended = forge().run(
            {"PATH": "/usr/bin:/bin"} | base | environ, ["merchant", "list"]
        )
        assert ended.status == 2 and name in ended.errors
        assert SECRET not in ended.output + ended.errors
