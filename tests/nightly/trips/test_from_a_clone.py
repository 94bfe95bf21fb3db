"""README's lines for production, letter by letter, in a clone that has no tag."""

import os
import re
import subprocess

from btcpay import __version__
from tests.support.paths import PROJECT
from tests.support.programs import asked, done, tool
from tests.support.wheel import copy_sources

(BLOCK,) = re.findall(
    r"^## Production\n.*?```console\n(.*?)```",
    (PROJECT / "README.md").read_text(encoding="utf-8").partition("\n```cron")[0],
    re.M | re.S,
)


def test_the_production_lines_of_readme_work_in_a_clone_without_tags(tmp_path):
    """But for /opt/blocktill, which is the machine's; nobody answers the last question."""
    sources = copy_sources(tmp_path / "sources")
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "All"]):
        who = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
        done([tool("git"), *who, *words], cwd=sources)
    clone = tmp_path / "clone"
    done([tool("git"), "clone", "-q", sources, clone])
    lines = re.findall(r"^\$ (.+)$", BLOCK, re.M)
    assert lines[-1] == "/opt/blocktill/bin/blocktill setup"
    installed = tmp_path / "opt/blocktill"
    environ = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("BLOCKTILL_")
    }
    environ["PATH"] = "/usr/local/bin:/usr/bin:/bin"  # not the tools of the tests

    def in_clone(*lines):
        """Bash's words; it ends at the first line that fails."""
        return [
            "bash",
            "-ec",
            "\n".join(lines).replace("/opt/blocktill", str(installed)),
        ]

    place = {"cwd": clone, "env": environ}
    ended = asked(in_clone(*lines[:-1]), **place)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert f"dist/blocktill-{__version__}-py3-none-any.whl" in ended.stdout
    said = done([installed / "bin/blocktill", "--version"], cwd=tmp_path, env=environ)
    assert f"blocktill, version {__version__}\n" in said
    ended = subprocess.run(
        in_clone(lines[-1]),
        capture_output=True,
        text=True,
        timeout=60,
        input="",
        **place,
    )
    assert ended.returncode == 2 and "there is no terminal to ask" in ended.stderr
