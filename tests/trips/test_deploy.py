"""The files in deploy/, tried as far as possible without the machines that they are for."""

import gzip
import re
import shlex
import shutil
import sys
from pathlib import Path

import jsonschema_rs
import pytest
import yaml

from btcpay import __version__
from btcpay.cli.main import cli
from btcpay.settings.settings import OF_FILES, VARIABLES, read
from tests.support import proxies
from tests.support.forge import forge
from tests.support.paths import PROJECT
from tests.support.programs import done, tool
from tests.support.project import METADATA, PYTHONS, copied, instructions

DEPLOY = PROJECT / "deploy"
FILES = PROJECT / "btcpay/cli/setup/files"
UNITS = sorted(path.name for path in FILES.glob("blocktill*.service"))
TIMERS = sorted(path.name for path in FILES.glob("*.timer"))
MOST_EXPOSED = 15  # tenths, of systemd's own scale up to 100; below 20 it says OK


def settings_of(unit):
    text = (FILES / unit).read_text()
    return dict(re.findall(r"^(\w+)=(.*)$", text, re.M))


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The units as they would be installed, but for where the program lies."""
    folder = tmp_path_factory.mktemp("units")
    for name in UNITS + TIMERS:
        text = (FILES / name).read_text()
        bin_folder = str(Path(sys.executable).parent)
        (folder / name).write_text(text.replace("/opt/blocktill/bin", bin_folder))
    return folder


def test_systemd_takes_the_credential_of_the_documentation(installed, tmp_path):
    """The drop-in of docs/operators/settings.md, in each unit that needs the database."""
    page = (PROJECT / "docs/operators/settings.md").read_text()
    drop_in = re.search(r"```ini\n(\[Service\]\nLoadCredential=.*?)```", page, re.S)[1]
    for name in UNITS:
        shutil.copy(installed / name, tmp_path)
        (tmp_path / f"{name}.d").mkdir()
        (tmp_path / f"{name}.d" / "secret.conf").write_text(drop_in)
    units = [tmp_path / name for name in UNITS]
    assert done([tool("systemd-analyze"), "verify", "--man=no", *units]) == ""


def test_systemd_finds_the_units_hardly_exposed(installed):
    words = ["security", "--offline=true", "--no-pager", f"--threshold={MOST_EXPOSED}"]
    for name in UNITS:
        said = done([tool("systemd-analyze"), *words, installed / name])
        assert "OK" in said.splitlines()[-1], name


def test_systemd_reads_when_each_timer_elapses():
    for name in TIMERS:
        words = [tool("systemd-analyze"), "calendar", settings_of(name)["OnCalendar"]]
        assert "Next elapse" in done(words)


def test_the_backup_is_called_with_the_day_of_the_week(installed, tmp_path):
    """The line as systemd gives it to the shell, which finds a `blocktill` that says its words."""
    echo = tmp_path / "blocktill"
    echo.write_text('#!/bin/sh\necho "$@"\n')
    echo.chmod(0o755)
    line = (
        settings_of("blocktill-backup.service")["ExecStart"]
        .replace("%%", "%")
        .replace("$$", "$")
    )
    words = shlex.split(line.replace("/opt/blocktill/bin/blocktill", str(echo)))
    day = done(["date", "+%u"]).strip()
    said = done(words)
    backup = f"backup --quiet --force /var/backups/blocktill/blocktill-{day}.db\n"
    assert said == f"--env-file /etc/blocktill.env {backup}"


def test_the_backup_of_every_night_says_nothing_while_all_is_well_and_why_when_it_is_not(
    tmp_path, shop
):
    """Its words as they stand in the unit, for another place; cron would mail what is printed."""
    line = settings_of("blocktill-backup.service")["ExecStart"]
    options = re.search(r" backup ((?:--\w+ )+)", line)[1].split()
    for _ in range(2):  # the second one overwrites the first, as after a week
        ended = forge().run(
            shop.environ, ["backup", *options, str(tmp_path / "copy.db")]
        )
        assert (ended.status, ended.output, ended.errors) == (0, "", "")
    assert (tmp_path / "copy.db").stat().st_size > 4096
    refused = forge().run(
        shop.environ, ["backup", *options, str(tmp_path / "no" / "copy.db")]
    )
    assert refused.status == 1 and "there is no folder" in refused.errors


def test_hadolint_has_nothing_to_say_about_the_dockerfile():
    assert done([tool("hadolint"), "--no-color", DEPLOY / "Dockerfile"]) == ""


def test_the_image_is_small_and_runs_as_nobody_on_the_newest_python_that_we_know():
    found = instructions()
    bases = [argument.split()[0] for name, argument in found if name == "FROM"]
    assert bases == ["${BASE}"] * 2
    assert found[0] == (
        "ARG",
        f"BASE=docker.io/library/python:{PYTHONS[-1]}-slim-trixie",
    )
    assert dict(found)["CMD"] == '["run"]'
    names = [name for name, _ in found]
    assert dict(found)["USER"] == "10001:10001"
    assert names.index("USER") > max(
        n for n, name in enumerate(names) if name in ("RUN", "COPY")
    )


def test_nothing_unknown_is_installed_into_the_image_and_nothing_is_compiled():
    """From the registry wheels alone, each with a hash; else what was built beside it."""
    runs = [argument.split("&&") for name, argument in instructions() if name == "RUN"]
    pips = [command for run in runs for command in run if "/pip " in command]
    assert len(pips) == 4
    fetched = "--only-binary :all: --require-hashes"
    assert all(fetched in " ".join(pip.split()) or "--no-index" in pip for pip in pips)


def test_the_image_says_what_it_is():
    said = dict(instructions())["LABEL"]
    labels = dict(re.findall(r'org\.opencontainers\.image\.([\w.]+)="([^"]*)"', said))
    assert labels["version"] == __version__
    assert labels["licenses"] == METADATA["license"]
    assert labels["url"] == METADATA["urls"]["Homepage"]
    assert labels["base.name"] == "${BASE}"


def test_nothing_but_the_program_can_get_into_the_image():
    lines = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    wanted = {source for sources, _ in copied() for source in sources}
    assert {rule[1:] for rule in rules if rule.startswith("!")} == wanted
    assert all(list(PROJECT.glob(source)) for source in wanted)


# The services that are ours, the others, and the database.
COMPOSED = {
    "compose.yaml": (
        {"migrate", "serve", "check"},
        {"postgres", "valkey"},
        "postgresql://blocktill:THE-SAME@postgres:5432/blocktill",
    ),
    "compose.single.yaml": (
        {"shop"},
        set(),
        "sqlite:////var/lib/blocktill/testnet4.db",
    ),
}


def compose(name):
    return yaml.safe_load((DEPLOY / name).read_text())


@pytest.mark.parametrize("name", COMPOSED)
def test_a_compose_file_fits_its_schema_is_hardened_and_publishes_one_port(name):
    schema = (PROJECT / "tests" / "vectors" / "compose-spec.json").read_text()
    validator = jsonschema_rs.validator_for(schema)
    assert [error.message for error in validator.iter_errors(compose(name))] == []
    services = compose(name)["services"]
    assert set(services) == COMPOSED[name][0] | COMPOSED[name][1]
    for part, service in services.items():
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service.get("read_only", False) or part == "postgres"
    assert [s["ports"] for s in services.values() if "ports" in s] == [
        ["127.0.0.1:8000:8000"]
    ]


def test_the_single_file_keeps_its_database_in_the_one_volume():
    found = compose("compose.single.yaml")
    assert list(found["volumes"]) == ["blocktill"]
    for service in found["services"].values():
        assert service["volumes"] == ["blocktill:/var/lib/blocktill"]


@pytest.mark.parametrize(
    "name, part",
    [(name, part) for name, (ours, *_) in COMPOSED.items() for part in sorted(ours)],
)
def test_the_settings_of_the_compose_file_are_settings(name, part, tmp_path):
    service = compose(name)["services"][part]
    written = dict(service["environment"])
    values = {"BLOCKTILL_BASE_URL": "https://pay.example.com"}
    for secret in service.get("secrets", ()):
        assert secret in compose(name)["secrets"]
        assert written["BLOCKTILL_DATABASE_URL_FILE"] == f"/run/secrets/{secret}"
        example = re.search(rf"deploy/{secret} +(\S+)", (DEPLOY / name).read_text())[1]
        (tmp_path / secret).write_text(f"{example}\n")
        written["BLOCKTILL_DATABASE_URL_FILE"] = f"{tmp_path}/{secret}"

    image = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    of_image = dict(re.findall(r"^ .*\b(BLOCKTILL_\w+)=([^\s\\]+)", image, re.M))
    assert "BLOCKTILL_DATABASE_URL" in of_image
    of_env_file = {
        "BLOCKTILL_DATABASE_URL": "sqlite:////of/env.db",
        "BLOCKTILL_DATABASE_URL_FILE": str(tmp_path / "of env"),
    }

    def filled(text):
        in_place = lambda m: values.get(m[1], m[3] if m[2] == ":-" else "")  # noqa: E731
        return re.sub(r"\$\{(\w+)(:-|:\?)([^}]*)\}", in_place, text)

    own = {key: filled(value) for key, value in written.items()}
    settings = read(of_image | of_env_file | own)
    assert settings.database_url == COMPOSED[name][2]
    assert (settings.trusted_proxies, settings.bind) == (1, "0.0.0.0:8000")
    known = {*VARIABLES.values(), *OF_FILES.values()}
    assert set(written) - {"GUNICORN_CMD_ARGS"} <= known


@pytest.mark.parametrize("name", COMPOSED)
def test_every_setting_of_the_document_reaches_the_container(name):
    """From deploy/.env; the database and what belongs to it are the file's own."""
    page = (PROJECT / "docs/operators/settings.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"^\| `(BLOCKTILL_\w+)`", page, re.M))
    assert documented == set(VARIABLES.values())
    for part in COMPOSED[name][0]:
        service = compose(name)["services"][part]
        assert service["env_file"] == ".env"
        fixed = {
            variable
            for variable, text in service["environment"].items()
            if not text.startswith(f"${{{variable}:")
        }
        assert fixed <= {
            "BLOCKTILL_DATABASE_URL",
            "BLOCKTILL_DATABASE_URL_FILE",
            "BLOCKTILL_RATE_LIMIT_STORE",
            "GUNICORN_CMD_ARGS",
        }


# Proxies: tests/nightly/trips/test_proxies.py runs them
def test_the_package_gets_a_man_page_of_every_command_and_its_unit(tmp_path):
    done([sys.executable, "-B", DEPLOY / "debian/generate.py", tmp_path])
    page = gzip.decompress(
        (tmp_path / "usr/share/man/man1/blocktill.1.gz").read_bytes()
    )
    for heading in (
        "BLOCKTILL",
        *(f"BLOCKTILL {name.upper()}" for name in cli.commands),
    ):
        assert f"\n.SH {heading}\n" in page.decode()
    unit = tmp_path / "usr/lib/systemd/system/blocktill.service"
    assert "/etc/blocktill.env run\n" in unit.read_text()


def test_nginx_understands_the_example(tmp_path):
    assert "test is successful" in done([*proxies.nginx(tmp_path, 8000).words, "-t"])
    assert "[warn]" not in (tmp_path / "error.log").read_text()


def test_nginx_understands_the_example_for_tor(tmp_path):
    (tmp_path / "nginx.conf").write_text(
        f"pid {tmp_path}/pid; error_log {tmp_path}/error.log; events {{}}"
        f" http {{ access_log off; include {PROJECT}/deploy/onion.conf; }}"
    )
    assert "test is successful" in done(
        [tool("nginx"), "-c", tmp_path / "nginx.conf", "-t"]
    )


def test_the_caddy_of_debian_12_understands_the_example(tmp_path):
    (tmp_path / "Caddyfile").write_text(proxies.caddyfile())
    words = ["validate", "--adapter", "caddyfile", "--config", tmp_path / "Caddyfile"]
    said = done([tool("caddy"), *words], env={"HOME": str(tmp_path)})
    assert "Valid configuration" in said
