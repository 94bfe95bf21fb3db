"""The wheel has the whole program; tests/nightly/trips tries what it does."""

from tests.support.paths import PROJECT
from tests.support.programs import done
from tests.support.wheel import BUILD, BUILT_WITHIN_S, copy_sources, files_of


def test_the_wheel_has_every_file_of_the_program(tmp_path):
    source = copy_sources(tmp_path / "source")
    done([*BUILD, "--wheel", "--outdir", tmp_path, source], timeout=BUILT_WITHIN_S)
    (wheel,) = tmp_path.glob("*.whl")
    folders = ("btcpay", "schemas", "storage")
    there = {
        path
        for name in folders
        for path in (PROJECT / name).rglob("*")
        if path.is_file()
    }
    wanted = {
        path.relative_to(PROJECT).as_posix() for path in there if path.suffix != ".pyc"
    }
    assert set(files_of(wheel)) == wanted | {"app.py", "wsgi.py"}
