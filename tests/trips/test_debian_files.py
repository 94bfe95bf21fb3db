"""What the Debian package has beside the program: its man page and its units."""

import gzip
import sys

from btcpay.cli.setup.units import PACKAGED
from tests.support.paths import PROJECT
from tests.support.programs import done


def test_the_package_has_a_man_page_of_every_command_and_the_units(tmp_path):
    done([sys.executable, PROJECT / "deploy/debian/generate.py", tmp_path], cwd=PROJECT)
    pages = list((tmp_path / "usr/share/man").rglob("*.gz"))
    assert [page.name for page in pages] == ["blocktill.1.gz"]
    page = gzip.decompress(pages[0].read_bytes()).decode()
    assert "\n.SH BLOCKTILL MERCHANT ADD\n" in page
    units = tmp_path / PACKAGED.relative_to("/")
    text = (units / "blocktill.service").read_text()
    assert "/opt/blocktill/bin/blocktill --env-file /etc/blocktill.env run\n" in text
