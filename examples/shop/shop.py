"""A complete shop on Flask: orders, invoices, signed webhooks, and polling.

BLOCKTILL_URL=http://127.0.0.1:8000 BLOCKTILL_KEY=sk_... WEBHOOK_SECRET=whsec_... python shop.py
"""

import base64
import hashlib
import hmac
import json
import os
import secrets
import sqlite3
import threading
import time
from urllib.request import Request, urlopen

from flask import Flask, redirect, request

API, KEY = os.environ["BLOCKTILL_URL"] + "/api/v1", os.environ["BLOCKTILL_KEY"]
SECRET = base64.b64decode(os.environ["WEBHOOK_SECRET"].removeprefix("whsec_"))
PRICES_USD = {"mug": 25}
app = Flask(__name__)
FORM = '<form method="post"><button name="number" value="{}">Buy a mug</button></form>'


def sql(statement, *values):
    """The rows of a statement, or how many it has changed."""
    with sqlite3.connect(os.environ.get("SHOP_DATABASE", "shop.db"), timeout=10) as db:
        cursor = db.execute(statement, values)
        return cursor.fetchall() if cursor.description else cursor.rowcount


def ask(path, body=None, **headers):
    """The JSON answer of the API; a POST with a body."""
    headers |= {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(API + path, data, headers), timeout=20) as answer:
        return json.load(answer)


def order(number, article):
    """Takes an order once; answers where to pay it, the same after a crash anywhere."""
    sql("INSERT OR IGNORE INTO orders (number, article) VALUES (?, ?)", number, article)
    ((article, url),) = sql("SELECT article, pay_url FROM orders WHERE number = ?", number)
    if url is None:
        body = {"amount_usd": PRICES_USD[article], "description": article, "expires_in_hours": 1}
        invoice = ask("/invoices", body, **{"Idempotency-Key": number})
        url = invoice["pay_url"]
        note = "UPDATE orders SET invoice = ?, pay_url = ? WHERE number = ?"
        sql(note, invoice["id"], url, number)
    return url


def set_paid(invoice, paid):
    """Delivers or holds back if the state changed: an UPDATE of one row happens once."""
    if sql("UPDATE orders SET paid = ? WHERE invoice = ? AND paid <> ?", paid, invoice, paid):
        print("deliver" if paid else "hold back", invoice, flush=True)


def poll():
    """The second line of defence: finds what was paid while no webhook came."""
    while True:
        time.sleep(int(os.environ.get("POLL_SECONDS", "600")))
        try:
            for payment in ask("/payments?limit=100")["data"]:
                set_paid(payment["invoice_id"], 1)
        except OSError as error:
            print("cannot poll:", error, flush=True)


@app.get("/")
def form():
    return FORM.format(secrets.token_hex(16))


@app.post("/")
def buy():
    return redirect(order(request.form["number"], "mug"), 303)


@app.post("/hooks")
def hear():
    """A webhook only says where to look, so one that comes late or twice does no harm."""
    id, at = (request.headers.get(f"webhook-{name}", "") for name in ("id", "timestamp"))
    ours = hmac.digest(SECRET, f"{id}.{at}.".encode() + request.get_data(), hashlib.sha256)
    signed = b"v1," + base64.b64encode(ours)
    signatures = request.headers.get("webhook-signature", "").encode().split()
    is_signed = any(hmac.compare_digest(signed, one) for one in signatures)
    if not is_signed or abs(time.time() - int(at)) > 300:
        return "", 401
    if (invoice := request.json["data"].get("invoice")) and not request.json.get("test"):
        set_paid(invoice["id"], ask(f"/invoices/{invoice['id']}")["status"] == "paid")
    return "", 204


sql("""CREATE TABLE IF NOT EXISTS orders (number TEXT PRIMARY KEY, article TEXT NOT NULL,
invoice TEXT UNIQUE, pay_url TEXT, paid INTEGER NOT NULL DEFAULT 0)""")
threading.Thread(target=poll, daemon=True).start()
app.run(port=int(os.environ.get("SHOP_PORT", "5000")))
