"""The real `btcpay check`, and what its process held at its peak."""

import json
import re
import subprocess
import sys
from pathlib import Path

from builders import clean_environ
from fake_esplora import Json, LiedTo
from paths import PROJECT

# One run that stays for nobody; writes at its end what the kernel knows of the process.
MEASURED = """
import atexit, importlib, pathlib, sys
status = pathlib.Path(sys.argv.pop(1))
atexit.register(lambda: status.write_bytes(pathlib.Path("/proc/self/status").read_bytes()))
from btcpay.cli.main import main
importlib.import_module("btcpay.cli.check.check").STAYS_S = 0
main()
"""


def check(till: LiedTo, folder: Path, **environ: str) -> tuple[Json, float]:
    """What `btcpay check --json` answers, and the megabytes that it held at its peak."""
    path = folder / "status"
    ended = subprocess.run(
        [sys.executable, "-c", MEASURED, str(path), "check", "--json"],
        env=clean_environ(**(till.shop.environ | {"PYTHONPATH": str(PROJECT)} | environ)),
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert ended.stdout, ended.stderr
    (peak_kb,) = re.findall(r"VmHWM:\s+([0-9]+) kB", path.read_text())
    return json.loads(ended.stdout), int(peak_kb) / 1024
