"""Where a program is started, others' modules may lie: a shop's own `app.py` is not the service."""

from builders import Live
from playground import start_playground

STRANGERS = ("app.py", "wsgi.py", "schemas.py", "storage.py", "btcpay.py", "gunicorn.conf.py")


def with_strangers(folder):
    for name in STRANGERS:
        (folder / name).write_text("raise SystemExit('of another program')\n")
    return folder


def test_serve_serves_the_service_in_a_folder_that_has_another_program(shop, tmp_path):
    with Live(shop, with_strangers(tmp_path), by_command=True) as live:
        assert live.ask("GET", "/invoices", shop.read_key).json()["data"] == []


def test_the_sandbox_starts_in_a_folder_that_has_another_program(tmp_path):
    started = start_playground(tmp_path, cwd=with_strangers(tmp_path))
    try:
        assert started.get("/invoices")["object"] == "list"
    finally:
        started.stop()
