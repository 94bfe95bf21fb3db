"""The sandbox's receiver of webhooks: it prints what it is sent into a file, once it is genuine."""

import hmac
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from btcpay.merchants.merchants import find_merchant
from btcpay.notify.webhooks import endpoints
from btcpay.notify.webhooks.signature import sign
from btcpay.values.times import utc_now
from storage.database import Database
from storage.queries import webhooks

PATH = "/the-sandbox-prints-it"


class PrintingReceiver:
    """Listens on a free port of this machine while the context lasts, and prints into `file`.

    It is an endpoint of the merchant's, with a new secret at each start.
    """

    def __init__(self, db: Database, merchant: str, file: Path) -> None:
        self._db, self._merchant, self._file = db, merchant, file
        file.unlink(missing_ok=True)  # of the start before
        file.touch(mode=0o600)
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                genuine = outer.is_genuine(self.headers, body)
                self.send_response(204 if genuine else 401)
                self.end_headers()
                outer.tell(body, genuine)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True

    def __enter__(self) -> "PrintingReceiver":
        for row in self._db.rows(webhooks.LIST):  # of the start before
            if row["url"] and row["url"].endswith(PATH):
                endpoints.remove(self._db, row["id"])
        owner_id = find_merchant(self._db, self._merchant)["id"]
        url = f"http://127.0.0.1:{self._server.server_port}{PATH}"
        added = endpoints.add(self._db, owner_id, url, None, [], utc_now())
        self._secret = added.secret or ""
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def is_genuine(self, headers: Any, body: bytes) -> bool:
        """Whether the service has signed it."""
        id, at = headers["webhook-id"], headers["webhook-timestamp"]
        if not (id and at and at.isdecimal()):
            return False
        ours = sign(self._secret, id, int(at), body)
        theirs = (headers["webhook-signature"] or "").split()
        return any(hmac.compare_digest(ours, one) for one in theirs)

    def tell(self, body: bytes, genuine: bool) -> None:
        """One line for what came."""
        line = b"signed " + body if genuine else b"NOT SIGNED by this shop, and refused"
        with self._file.open("ab") as file:
            file.write(line + b"\n")
