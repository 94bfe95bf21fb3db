"""`blocktill doctor --json` may be shown to strangers, as the form for faults asks."""

import json

from tests.support.fake_esplora import Terminal

TOKEN = "hunter2-of-the-webhook"
PASSWORD = "hunter2-of-the-mail"
# The mail server that is set in Settings. Neither it nor the webhook's host answers.
MAIL_SERVER = (
    "INSERT INTO mail_server VALUES"
    " (1, '127.0.0.1', 9, 0, 'shop', 'hunter2-of-the-mail', '', 'a@b.example')"
)


def test_the_doctors_json_has_no_secret_of_the_database(till):
    blocktill = Terminal(till)
    url = f"http://127.0.0.1:9/hook?token={TOKEN}"
    added = blocktill.json("webhook", "add", "shop", url)
    rotated = blocktill.json("webhook", "rotate", added["id"])
    secrets = {TOKEN, PASSWORD, added["secret"], rotated["secret"]}
    secrets |= {till.shop.read_key, till.shop.write_key}
    till.shop.sql(MAIL_SERVER)
    till.shop.invoice()
    blocktill.run("check")  # nobody takes the webhook's event
    till.shop.sql("UPDATE receiver SET failing_since = 1 WHERE failed_ms IS NOT NULL")

    written = blocktill.run("doctor", "--json", "--integrity")[0]
    colours = {row["name"]: row["colour"] for row in json.loads(written)}
    assert colours["mail server"] == colours[f"webhook {added['id']}"] == "yellow"
    assert [secret for secret in secrets if secret in written] == []
