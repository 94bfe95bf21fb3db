"""What stands in deploy/, tried as far as it can be without the machines that it is for."""

import concurrent.futures
import contextlib
import http.client
import os
import re
import shlex
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import requests
import yaml
from builders import Live, until
from databases import about_sqlite
from forge import forge
from merchant_browser import ON
from paths import PROJECT
from ports import free_port
from programs import certificate, done, tool
from project import METADATA, PYTHONS
from wheel import BUILD, BUILT_WITHIN_S, build, files_of

from btcpay import __version__
from btcpay.settings.settings import OF_FILES, VARIABLES, read

DEPLOY = PROJECT / "deploy"
FILES = PROJECT / "btcpay" / "setup" / "files"
UNITS = sorted(path.name for path in FILES.glob("btcpay*.service"))
TIMERS = sorted(path.name for path in FILES.glob("*.timer"))
MOST_EXPOSED = 15  # tenths, of systemd's own scale up to 100; below 20 it says OK


def settings_of(unit: str) -> dict[str, str]:
    text = (FILES / unit).read_text()
    return dict(re.findall(r"^(\w+)=(.*)$", text, re.M))


# systemd


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The units as they would be installed, but for where the program lies."""
    folder = tmp_path_factory.mktemp("units")
    for name in UNITS + TIMERS:
        text = (FILES / name).read_text()
        bin_folder = str(Path(sys.executable).parent)
        (folder / name).write_text(text.replace("/opt/btcpay/bin", bin_folder))
    return folder


def test_there_are_the_units_that_the_documentation_names():
    assert UNITS == ["btcpay-backup.service", "btcpay-check.service", "btcpay.service"]
    assert TIMERS == ["btcpay-backup.timer", "btcpay-check.timer"]


def test_systemd_takes_the_credential_of_the_documentation(installed, tmp_path):
    """The drop-in of docs/settings.md, in each unit that needs the database."""
    page = (PROJECT / "docs" / "settings.md").read_text()
    drop_in = re.search(r"```ini\n(\[Service\]\nLoadCredential=.*?)```", page, re.S)[1]
    for name in UNITS:
        shutil.copy(installed / name, tmp_path)
        (tmp_path / f"{name}.d").mkdir()
        (tmp_path / f"{name}.d" / "secret.conf").write_text(drop_in)
    units = [tmp_path / name for name in UNITS]
    assert done([tool("systemd-analyze"), "verify", "--man=no", *units]) == ""


def test_systemd_has_nothing_to_say_about_the_units(installed):
    units = [installed / name for name in UNITS + TIMERS]
    assert done([tool("systemd-analyze"), "verify", "--man=no", *units]) == ""


@pytest.mark.parametrize("name", UNITS)
def test_systemd_finds_the_units_hardly_exposed(installed, name):
    threshold = f"--threshold={MOST_EXPOSED}"
    words = ["security", "--offline=true", "--no-pager", threshold, installed / name]
    assert "OK" in done([tool("systemd-analyze"), *words]).splitlines()[-1]


@pytest.mark.parametrize("name", TIMERS)
def test_systemd_understands_when(name):
    words = [tool("systemd-analyze"), "calendar", settings_of(name)["OnCalendar"]]
    assert "Next elapse" in done(words)


def test_the_backup_is_called_with_the_day_of_the_week(installed, tmp_path):
    """The line as systemd gives it to the shell, which finds a `btcpay` that says its words."""
    echo = tmp_path / "btcpay"
    echo.write_text('#!/bin/sh\necho "$@"\n')
    echo.chmod(0o755)
    line = settings_of("btcpay-backup.service")["ExecStart"].replace("%%", "%").replace("$$", "$")
    words = shlex.split(line.replace("/opt/btcpay/bin/btcpay", str(echo)))
    day = done(["date", "+%u"]).strip()
    said = done(words)
    backup = f"backup --quiet --force /var/backups/btcpay/btcpay-{day}.db\n"
    assert said == f"--env-file /etc/btcpay.env {backup}"


@about_sqlite
def test_the_backup_of_every_night_says_nothing_while_all_is_well_and_why_when_it_is_not(
    tmp_path, shop
):
    """Its words as they stand in the unit, for another place; cron would mail what is printed."""
    line = settings_of("btcpay-backup.service")["ExecStart"]
    options = re.search(r" backup ((?:--\w+ )+)", line)[1].split()
    for _ in range(2):  # the second one overwrites the first, as after a week
        ended = forge().run(shop.environ, ["backup", *options, str(tmp_path / "copy.db")])
        assert (ended.status, ended.output, ended.errors) == (0, "", "")
    assert (tmp_path / "copy.db").stat().st_size > 4096
    refused = forge().run(shop.environ, ["backup", *options, str(tmp_path / "no" / "copy.db")])
    assert refused.status == 1 and "there is no folder" in refused.errors


def test_every_unit_reads_the_one_file_by_the_one_way():
    for unit in UNITS:
        line = settings_of(unit)["ExecStart"]
        assert line.count("/opt/btcpay/bin/btcpay --env-file /etc/btcpay.env ") == 1
        assert "Environment" not in (FILES / unit).read_text()


# Docker


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions with their arguments, in order."""
    text = re.sub(r"^#.*\n", "", (DEPLOY / "Dockerfile").read_text(), flags=re.M)
    lines = text.replace("\\\n", " ").splitlines()
    return [tuple(line.split(None, 1)) for line in lines if line.strip()]  # type: ignore[misc]


def copied() -> list[tuple[list[str], str]]:
    """What is copied from the project, and where to."""
    words = [argument.split() for name, argument in instructions() if name == "COPY"]
    return [(line[:-1], line[-1]) for line in words if not line[0].startswith("--from")]


def test_hadolint_has_nothing_to_say_about_the_dockerfile():
    assert done([tool("hadolint"), "--no-color", DEPLOY / "Dockerfile"]) == ""


def test_the_image_is_small_and_runs_as_nobody_on_the_newest_python_that_we_know():
    found = instructions()
    bases = [argument.split()[0] for name, argument in found if name == "FROM"]
    assert bases == [f"python:{PYTHONS[-1]}-slim-trixie"] * 2
    names = [name for name, _ in found]
    assert dict(found)["USER"] == "10001:10001"
    assert names.index("USER") > max(n for n, name in enumerate(names) if name in ("RUN", "COPY"))


def test_nothing_unknown_is_installed_into_the_image_and_nothing_is_compiled():
    """From the registry wheels alone, each with a hash; else what was built beside it."""
    runs = [argument.split("&&") for name, argument in instructions() if name == "RUN"]
    pips = [command for run in runs for command in run if "-m pip" in command]
    assert len(pips) == 4
    fetched = "--only-binary :all: --require-hashes"
    assert all(fetched in " ".join(pip.split()) or "--no-index" in pip for pip in pips)


def test_the_image_says_what_it_is():
    said = dict(instructions())["LABEL"]
    labels = dict(re.findall(r'org\.opencontainers\.image\.([\w.]+)="([^"]*)"', said))
    assert labels["version"] == __version__
    assert labels["licenses"] == METADATA["license"]
    assert labels["url"] == METADATA["urls"]["Homepage"]
    assert labels["base.name"] == f"docker.io/library/python:{PYTHONS[-1]}-slim-trixie"


def test_what_the_image_copies_is_all_that_the_wheel_is_made_of(tmp_path):
    """The same files in a folder of their own lead to the same wheel as the whole checkout."""
    root = tmp_path / "build"
    for sources, target in copied():
        for source in (path for pattern in sources for path in PROJECT.glob(pattern)):
            place = root / target / source.name if source.is_file() else root / target
            place.parent.mkdir(parents=True, exist_ok=True)
            if source.is_file():
                shutil.copy(source, place)
            else:
                shutil.copytree(source, place, ignore=shutil.ignore_patterns("__pycache__"))
    done([*BUILD, "--wheel", "--outdir", tmp_path, root], timeout=BUILT_WITHIN_S)
    (made,) = tmp_path.glob("*.whl")
    _, whole = build(tmp_path / "whole")
    assert files_of(made) == files_of(whole)


def test_nothing_but_the_program_can_get_into_the_image():
    lines = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    wanted = {source for sources, _ in copied() for source in sources}
    assert {rule[1:] for rule in rules if rule.startswith("!")} == wanted
    assert all(list(PROJECT.glob(source)) for source in wanted)


COMPOSED = {
    "compose.yaml": {"migrate", "serve", "check", "postgres", "valkey"},
    "compose.single.yaml": {"migrate", "serve", "check"},
}
DATABASES = {
    "compose.yaml": "postgresql://btcpay:THE-SAME@postgres:5432/btcpay",
    "compose.single.yaml": "sqlite:////var/lib/btcpay/testnet4.db",
}


def compose(name: str) -> dict[str, Any]:
    return yaml.safe_load((DEPLOY / name).read_text())


@pytest.mark.parametrize("name", COMPOSED)
def test_the_compose_file_fits_the_schema_of_the_specification(name):
    schema = (PROJECT / "tests" / "vectors" / "compose-spec.json").read_text()
    validator = jsonschema_rs.validator_for(schema)
    assert [error.message for error in validator.iter_errors(compose(name))] == []


@pytest.mark.parametrize("name", COMPOSED)
def test_the_services_of_the_compose_file_are_hardened_and_publish_one_port(name):
    services = compose(name)["services"]
    assert set(services) == COMPOSED[name]
    for part, service in services.items():
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service.get("read_only", False) or part == "postgres"
    assert [s["ports"] for s in services.values() if "ports" in s] == [["127.0.0.1:8000:8000"]]


def test_the_single_file_keeps_its_database_in_the_one_volume():
    found = compose("compose.single.yaml")
    assert list(found["volumes"]) == ["btcpay"]
    for service in found["services"].values():
        assert service["volumes"] == ["btcpay:/var/lib/btcpay"]


@pytest.mark.parametrize("name", COMPOSED)
@pytest.mark.parametrize("part", ["migrate", "serve", "check"])
def test_the_settings_of_the_compose_file_are_settings(name, part, tmp_path):
    service = compose(name)["services"][part]
    written, values = dict(service["environment"]), {"BTCPAY_BASE_URL": "https://pay.example.com"}
    for secret in service.get("secrets", ()):
        assert secret in compose(name)["secrets"]
        assert written["BTCPAY_DATABASE_URL_FILE"] == f"/run/secrets/{secret}"
        example = re.search(rf"deploy/{secret} +(\S+)", (DEPLOY / name).read_text())[1]
        (tmp_path / secret).write_text(f"{example}\n")
        written["BTCPAY_DATABASE_URL_FILE"] = f"{tmp_path}/{secret}"

    def filled(text: str) -> str:
        return re.sub(
            r"\$\{(\w+)(:-|:\?)([^}]*)\}",
            lambda m: values.get(m[1], m[3] if m[2] == ":-" else ""),
            text,
        )

    settings = read({key: filled(value) for key, value in written.items()})
    assert settings.database_url == DATABASES[name]
    assert (settings.trusted_proxies, settings.bind) == (1, "0.0.0.0:8000")
    known = {*VARIABLES.values(), *OF_FILES.values()}
    assert set(written) - {"GUNICORN_CMD_ARGS"} <= known


# Proxies


class Nginx:
    """deploy/nginx.conf between two ports of this machine, certificates and folders its own."""

    def __init__(self, folder: Path, upstream: int) -> None:
        self.folder, self.plain, self.tls = folder, free_port(), free_port()
        certificate(folder)
        text = (DEPLOY / "nginx.conf").read_text()
        for old, new in (
            ("listen 80;", f"listen 127.0.0.1:{self.plain};"),
            ("listen 443 ssl;", f"listen 127.0.0.1:{self.tls} ssl;"),
            ("127.0.0.1:8000", f"127.0.0.1:{upstream}"),
            ("/etc/letsencrypt/live/pay.example.com", str(folder)),
        ):
            assert text.count(old) == (1 if "letsencrypt" not in old else 2), old
            text = text.replace(old, new)
        (folder / "site.conf").write_text(text)
        temporary = "".join(
            f"{name}_temp_path {folder}/{name};"
            for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        (folder / "nginx.conf").write_text(
            f"{'user root;' if os.geteuid() == 0 else ''} pid {folder}/pid; daemon off;"
            f"error_log {folder}/error.log; worker_processes 1; events {{}}"
            f"http {{ access_log {folder}/access.log; {temporary} include {folder}/site.conf; }}"
        )
        self.words = [tool("nginx"), "-p", folder, "-e", folder / "error.log"]
        self.words += ["-c", folder / "nginx.conf"]
        self.url = f"https://127.0.0.1:{self.tls}"

    def ask(self, method: str, path: str, source: str = "127.0.0.1", **kwargs: Any):
        """A request from this address of the loopback, which has many."""
        with requests.Session() as session:
            session.mount("https://", From(source))
            return session.request(method, self.url + path, verify=False, timeout=20, **kwargs)


class From(requests.adapters.HTTPAdapter):
    """Connects from one address."""

    def __init__(self, source: str) -> None:
        self._source = source
        super().__init__()

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, source_address=(self._source, 0), **kwargs)


@pytest.fixture
def nginx(tmp_path: Path, live: Live) -> Iterator[Nginx]:
    folder = tmp_path / "nginx"
    folder.mkdir()
    proxy = Nginx(folder, live.port)
    with subprocess.Popen(proxy.words) as process:
        try:
            until(lambda: is_open(proxy.tls), "nginx to listen")
            yield proxy
        finally:
            process.terminate()


@pytest.fixture
def live(tmp_path: Path, shop) -> Iterator[Live]:
    with Live(shop, tmp_path, BTCPAY_TRUSTED_PROXIES="1", **ON) as started:
        yield started


def is_open(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


pytestmark = pytest.mark.filterwarnings("ignore:Unverified HTTPS request")


def test_nginx_understands_the_example(tmp_path):
    assert "test is successful" in done([*Nginx(tmp_path, 8000).words, "-t"])
    assert "[warn]" not in (tmp_path / "error.log").read_text()


def test_through_nginx_an_invoice_is_made_and_its_page_is_shown(nginx, shop):
    headers = {"Authorization": f"Bearer {shop.write_key}"}
    answer = nginx.ask("POST", "/api/v1/invoices", json={"amount_usd": 25}, headers=headers)
    assert answer.status_code == 201
    assert nginx.ask("GET", f"/pay/{answer.json()['id']}").status_code == 200
    plain = requests.get(
        f"http://127.0.0.1:{nginx.plain}/pay/x?y", allow_redirects=False, timeout=20
    )
    assert (plain.status_code, plain.headers["Location"]) == (
        301,
        "https://pay.example.com/pay/x?y",
    )
    large = nginx.ask("POST", "/api/v1/invoices", data=b"x" * 100_000, headers=headers)
    assert large.json()["error"]["code"] == "payload_too_large"


def remaining(answer: requests.Response) -> int:
    assert answer.status_code == 401
    return int(answer.headers["X-RateLimit-Remaining"])


def test_the_visitors_address_is_believed_through_nginx_and_a_forged_one_is_not(nginx, live):
    def fails(source: str, forged: str | None = None) -> int:
        """Invalid keys that this visitor may still send."""
        headers = {"Authorization": "Bearer sk_test_wrong"}
        if forged:
            headers |= {"X-Forwarded-For": forged, "X-Real-IP": forged, "Forwarded": forged}
        return remaining(nginx.ask("GET", "/api/v1/balance", source, headers=headers))

    assert [fails("127.0.0.1"), fails("127.0.0.1"), fails("127.0.0.2")] == [19, 18, 19]
    # Neither does a forged address give the visitor a new window, nor does it use up another's.
    assert [fails("127.0.0.1", "127.0.0.2"), fails("127.0.0.1", "203.0.113.7, 10.0.0.1")] == [
        17,
        16,
    ]
    assert fails("127.0.0.2") == 18


def test_clients_that_drip_their_requests_occupy_nginx_alone(nginx, live, shop):
    head = "POST /api/v1/invoices HTTP/1.1\r\nHost: pay.example.com\r\nContent-Length: 100\r\n\r\n{"
    with contextlib.ExitStack() as stack:
        for _ in range(20):  # the service has eight threads
            raw = socket.create_connection(("127.0.0.1", nginx.tls), 5)
            insecure = requests.packages.urllib3.util.ssl_.create_urllib3_context()
            insecure.check_hostname, insecure.verify_mode = False, 0
            dripping = stack.enter_context(insecure.wrap_socket(raw))
            dripping.sendall(head.encode())
        started_s = time.monotonic()
        headers = {"Authorization": f"Bearer {shop.read_key}"}
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            asked = [pool.submit(nginx.ask, "GET", "/api/v1/balance", headers=headers)] * 4
            assert [one.result().status_code for one in asked] == [200] * 4
        assert time.monotonic() - started_s < 3


# Ways to write the same path, which a proxy and the service might not understand alike.
INSIDE = {"/merchant": 401, "/merchant/sessions": 401, "/merchant/login/x": 410}
WRITTEN = (
    *INSIDE,
    *("/merchant/", "/merchant?x", "/%6derchant", "/mercha%6Et/sessions", "//merchant"),
    *("/./merchant", "/pay/../merchant", "/pay/%2e%2e/merchant", "/merchant%2fsessions"),
    *("/merchant;x", "/merchant/./login/x", "/x/merchant", "/MERCHANT"),
)


def status_of(connection: http.client.HTTPConnection, path: str) -> int:
    """The status of a path that is sent as it is written, as one below the folder /x."""
    with contextlib.closing(connection):
        connection.request("GET", path, headers={"SCRIPT_NAME": "/x"})
        return connection.getresponse().status


def is_for_the_house_alone(connect: Callable[[str], http.client.HTTPConnection]) -> None:
    """`connect` makes a connection from this address; of the loopback the first is the house's."""
    assert {path: status_of(connect("127.0.0.1"), path) for path in INSIDE} == INSIDE
    found = {path: status_of(connect("127.0.0.2"), path) for path in WRITTEN}
    assert {path: found[path] for path in INSIDE} == dict.fromkeys(INSIDE, 403)
    assert {path: status for path, status in found.items() if status not in (400, 403, 404)} == {}
    assert status_of(connect("127.0.0.2"), "/readyz") in (200, 503)  # the rest is for everybody


def test_through_nginx_the_merchants_pages_are_for_the_house_alone(nginx):
    insecure = ssl._create_unverified_context()

    def connect(source: str) -> http.client.HTTPConnection:
        to = ("127.0.0.1", nginx.tls)
        return http.client.HTTPSConnection(
            *to, timeout=20, source_address=(source, 0), context=insecure
        )

    is_for_the_house_alone(connect)


def test_nginx_writes_no_login_link_into_its_log(nginx):
    nginx.ask("GET", "/merchant/login/secret")
    nginx.ask("GET", "/merchant/sessions")
    log = nginx.folder / "access.log"
    until(lambda: "/merchant/sessions" in log.read_text(), "the request to be logged")
    assert "secret" not in log.read_text()


def caddyfile_for(version: str) -> str:
    """The example as it is for Debian's and Ubuntu's Caddy, for a newer one as its comment says."""
    text = (DEPLOY / "Caddyfile").read_text()
    if re.match(r"v?2\.6\.2\b", version):
        return text
    old = "buffer_requests\n\t\tmax_buffer_size 1MB"
    assert old in text and "request_buffers 1MB" in text
    return text.replace(old, "request_buffers 1MB")


def test_the_caddy_of_debian_12_understands_the_example(tmp_path):
    caddy = tool("caddy")
    (tmp_path / "Caddyfile").write_text(caddyfile_for(done([caddy, "version"])))
    words = ["validate", "--adapter", "caddyfile", "--config", tmp_path / "Caddyfile"]
    assert "Valid configuration" in done([caddy, *words], env={"HOME": str(tmp_path)})


@pytest.fixture
def caddy(tmp_path: Path, live: Live) -> Iterator[int]:
    """The example before the service, without a certificate; its port."""
    port, program = free_port(), tool("caddy")
    text = caddyfile_for(done([program, "version"]))
    for old, new in (
        ("pay.example.com {", f"http://127.0.0.1:{port} {{"),
        ("127.0.0.1:8000", f"127.0.0.1:{live.port}"),
    ):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (tmp_path / "Caddyfile").write_text(f"{{\n\tadmin off\n}}\n{text}")
    words = ["run", "--adapter", "caddyfile", "--config", tmp_path / "Caddyfile"]
    environ = {"HOME": str(tmp_path)}
    with subprocess.Popen([program, *words], env=environ, stderr=subprocess.DEVNULL) as process:
        try:
            until(lambda: is_open(port), "Caddy to listen")
            yield port
        finally:
            process.terminate()


def test_through_caddy_an_invoice_is_made_while_dripping_clients_occupy_caddy_alone(caddy, shop):
    head = "POST /api/v1/invoices HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{"
    headers = {"Authorization": f"Bearer {shop.write_key}"}
    url = f"http://127.0.0.1:{caddy}"
    with contextlib.ExitStack() as stack:
        for _ in range(20):  # the service has eight threads
            dripping = stack.enter_context(socket.create_connection(("127.0.0.1", caddy), 5))
            dripping.sendall(head.encode())
        started_s = time.monotonic()
        body = {"amount_usd": 25}
        made = requests.post(f"{url}/api/v1/invoices", json=body, headers=headers, timeout=20)
        assert made.status_code == 201
        assert requests.get(f"{url}/pay/{made.json()['id']}", timeout=20).status_code == 200
        assert time.monotonic() - started_s < 3
    large = requests.post(f"{url}/api/v1/invoices", b"x" * 100_000, headers=headers, timeout=20)
    assert large.json()["error"]["code"] == "payload_too_large"


def test_through_caddy_the_merchants_pages_are_for_the_house_alone(caddy):
    is_for_the_house_alone(
        lambda source: http.client.HTTPConnection(
            "127.0.0.1", caddy, timeout=20, source_address=(source, 0)
        )
    )


def test_a_forged_address_is_not_believed_through_caddy(caddy):
    def fails(**forged: str) -> int:
        headers = {"Authorization": "Bearer sk_test_wrong"} | forged
        url = f"http://127.0.0.1:{caddy}/api/v1/balance"
        return remaining(requests.get(url, headers=headers, timeout=20))

    assert [fails(), fails(**{"X-Forwarded-For": "203.0.113.7"})] == [19, 18]
