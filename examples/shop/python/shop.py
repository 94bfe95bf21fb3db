"""A shop that sells mugs for bitcoin: orders, invoices, webhooks, a return page, polling.

python3 shop.py       serves http://127.0.0.1:5000/
python3 shop.py poll  looks once for orders that were paid
"""

import base64
import hashlib
import hmac
import json
import os
import re
import secrets
import sys
import time
from pathlib import Path
from urllib.request import Request, urlopen

from flask import Flask, redirect, request

for name in ("BLOCKTILL_URL", "BLOCKTILL_KEY", "WEBHOOK_SECRET"):
    if name not in os.environ:
        sys.exit(f"{name} is not set: README.md says where its value is")
API = os.environ["BLOCKTILL_URL"] + "/api/v1"
KEY = os.environ["BLOCKTILL_KEY"]
SECRET = base64.b64decode(os.environ["WEBHOOK_SECRET"].removeprefix("whsec_"))
FOLDER = Path(os.environ.get("SHOP_FOLDER", "orders"))
PORT = int(os.environ.get("SHOP_PORT", "5000"))
MUG = {"description": "A mug", "amount_usd": 25, "expires_in_hours": 1}
TOLERANCE_S = 300
MAX_BODY_BYTES = 65536
NUMBER = re.compile("[0-9a-f]{32}")
NAME = re.compile("[A-Za-z0-9_]{1,64}")

app = Flask(__name__)
app.config["MAX_CONTENT_LENGTH"] = MAX_BODY_BYTES


def ask(path, body=None, idempotency_key=""):
    """Returns the API's answer. A request with a body is a POST, and needs the key."""
    headers = {"Authorization": f"Bearer {KEY}"}
    data = None
    if body is not None:
        headers["Content-Type"] = "application/json"
        headers["Idempotency-Key"] = idempotency_key
        data = json.dumps(body).encode()
    with urlopen(Request(API + path, data, headers), timeout=20) as answer:
        return json.load(answer)


# This shop keeps its orders as files. In yours they are rows of a database.


def load(name):
    """Returns what was saved under an order's number or an invoice's id, or None."""
    if not NAME.fullmatch(name):
        return None
    try:
        return json.loads((FOLDER / name).read_text())
    except FileNotFoundError:
        return None


def save(name, value):
    """Saves all of the value or, after a crash, nothing."""
    draft = FOLDER / f"{secrets.token_hex(8)}.draft"
    draft.write_text(json.dumps(value))
    draft.replace(FOLDER / name)


def place_order(number):
    """Returns the order with its invoice, the same one after a crash at any line."""
    order = load(number)
    if order is None:
        order = {"number": number, "wanted": MUG}
        save(number, order)
    if "pay_url" not in order:
        invoice = ask("/invoices", order["wanted"], number)
        save(invoice["id"], {"number": number})
        order["pay_url"] = invoice["pay_url"]
        save(number, order)
    return order


def number_of(invoice_id):
    """Returns the number of the order that has this invoice, or None."""
    found = load(invoice_id)
    return found and found["number"]


def is_paid(number):
    return (FOLDER / f"{number}.paid").exists()


def set_paid(number, paid):
    """Notes the state. Of several calls at once, only one makes or removes the file."""
    mark = FOLDER / f"{number}.paid"
    try:
        if paid:
            mark.touch(exist_ok=False)
        else:
            mark.unlink()
    except (FileExistsError, FileNotFoundError):
        return
    print("deliver" if paid else "hold back", number, flush=True)


def is_signed(headers, body):
    """True if the webhook comes from Blocktill, and is not an old one sent again."""
    sent_at = headers.get("webhook-timestamp", "")
    start = f"{headers.get('webhook-id', '')}.{sent_at}."
    digest = hmac.digest(SECRET, start.encode() + body, hashlib.sha256)
    ours = b"v1," + base64.b64encode(digest)
    theirs = headers.get("webhook-signature", "").encode().split()
    if not any(hmac.compare_digest(ours, one) for one in theirs):
        return False
    age_s = abs(time.time() - int(sent_at))
    return age_s <= TOLERANCE_S


def invoice_id_of(body):
    """Returns the id of an event's invoice: "" if it has none, None if it is malformed."""
    try:
        data = json.loads(body)["data"]
        id = data["invoice"]["id"] if "invoice" in data else ""
    except (ValueError, LookupError, TypeError):
        return None
    return id if isinstance(id, str) else None


@app.get("/")
def show_form():
    button = f'<button name="number" value="{secrets.token_hex(16)}">Buy a mug</button>'
    return f'<form method="post">{button}</form>'


@app.post("/")
def buy():
    number = request.form.get("number", "")
    if not NUMBER.fullmatch(number):
        return "Press the button of this shop.", 400
    return redirect(place_order(number)["pay_url"], 303)


@app.get("/return")
def show_order():
    number = number_of(request.args.get("invoice", ""))
    if number is None:
        return "There is no such order.", 404
    state = "paid" if is_paid(number) else "waiting for payment"
    return f"<p>Order {number}: {state}</p>", 200, {"Cache-Control": "no-store"}


@app.post("/hooks")
def receive_webhook():
    """Asks what is true now, so a webhook that comes late or twice does no harm."""
    body = request.get_data()
    if not is_signed(request.headers, body):
        return "", 401
    invoice_id = invoice_id_of(body)
    if invoice_id is None:
        return "", 400
    number = number_of(invoice_id)
    if number is not None:
        set_paid(number, ask(f"/invoices/{invoice_id}")["status"] == "paid")
    return "", 204


def poll():
    """Finds what was paid while no webhook came. Run it every ten minutes, by cron."""
    for payment in ask("/payments?limit=100")["data"]:
        number = number_of(payment["invoice_id"] or "")
        if number is not None:
            set_paid(number, True)


FOLDER.mkdir(exist_ok=True)
if sys.argv[1:] == ["poll"]:
    poll()
else:
    app.run(port=PORT)
