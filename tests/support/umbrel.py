"""The app of deploy/umbrel as umbrelOS starts it, and the paths that its proxy lets pass.

How umbrelOS does it is public: packages/umbreld/source/modules/apps (variables, container names,
the folder of data) and containers/app-proxy/utils/auth.js (paths) of github.com/getumbrel/umbrel.
"""

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.support.paths import PROJECT

APP = PROJECT / "deploy/umbrel/blocktill"
SERVICE = "web"
DOMAIN = "umbrel.local"
# 64 hexadecimal digits, derived from the machine's seed.
PASSWORD = "0f" * 32
# The innermost ${NAME} or ${NAME:-default}.
_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^${}]*))?\}")


def read_yaml(name: str) -> dict[str, Any]:
    return dict(yaml.safe_load((APP / name).read_text(encoding="utf-8")))


def services() -> dict[str, Any]:
    return dict(read_yaml("docker-compose.yml")["services"])


def base_url(data: Path) -> str:
    """Returns the variable that exports.sh sets. `data` is the app's folder of data."""
    environ = {"DEVICE_DOMAIN_NAME": DOMAIN, "EXPORTS_APP_DATA_DIR": str(data)}
    script = f". {APP}/exports.sh; printf %s $APP_BLOCKTILL_BASE_URL"
    words = ["bash", "-euo", "pipefail", "-c", script]
    return subprocess.check_output(words, env=environ, text=True)


def fill(text: str, variables: Mapping[str, str]) -> str:
    """Returns the text with its variables filled in, as Compose does.

    Raises KeyError for a variable that umbrelOS would not set, unless it has a default.
    """

    def value(match: re.Match[str]) -> str:
        name, default = match.groups()
        return variables.get(name) or (variables[name] if default is None else default)

    while _VARIABLE.search(text):
        text = _VARIABLE.sub(value, text)
    return text


def environment(data: Path, **node: str) -> dict[str, str]:
    """Returns the variables of the service; `node` has those of the app `bitcoin`."""
    variables = {
        "APP_BLOCKTILL_BASE_URL": base_url(data),
        "APP_PASSWORD": PASSWORD,
        **node,
    }
    written = services()[SERVICE]["environment"]
    return {name: fill(text, variables) for name, text in written.items()}


def white_list() -> list[str]:
    """Returns the rules. umbrelOS separates them at commas and blanks."""
    text = services()["app_proxy"]["environment"]["PROXY_AUTH_WHITELIST"]
    return [rule for rule in re.split(r"[, ]+", text) if rule]


def is_open(path: str) -> bool:
    """True if the path wants no login of umbrelOS: /x/* is what is below, /x is /x alone."""
    path = path.rstrip("/") or "/"
    return any(
        path.startswith(rule[:-1]) if rule.endswith("/*") else path == rule
        for rule in white_list()
    )


def was_open(path: str) -> bool:
    """The same in older umbrelOS, where Express compared the paths: /x is also what is below."""
    patterns = (re.escape(rule).replace(r"\*", ".*") for rule in white_list())
    return any(re.match(rf"{rule.rstrip('/')}(/|$)", path) for rule in patterns)
