"""Starts what a sandbox is made of: the chain with its workbench, the service, the check."""

import contextlib
import threading
from collections.abc import Iterator

from btcpay.cli.sandbox.children import Children
from btcpay.cli.sandbox.demo import MERCHANT, Demo, write_key
from btcpay.cli.sandbox.place import Place
from btcpay.cli.sandbox.receiver import PrintingReceiver
from storage.database import Database

# The workbench reads its key there. It is another than the developer's: limits count by key.
WORKBENCH_KEY = "workbench_key"


@contextlib.contextmanager
def started(place: Place, db: Database, stop: threading.Event) -> Iterator[tuple[Demo, Children]]:
    """All of it, once it answers or `stop` is set; it ends with the context.

    Raises CommandError when something does not start.
    """
    key = write_key(db, place.settings, place.state / "write_key")
    write_key(db, place.settings, place.state / WORKBENCH_KEY)
    demo = Demo(f"{place.service_url}/api/v1", key)
    receiver = PrintingReceiver(db, MERCHANT, place.told)
    with receiver, Children(place.programs_environ, place.log) as children:
        where = ("--port", str(place.port), "--state", str(place.state))
        children.start("chain", "btcpay.sandbox", *where, "--shop", place.service_url)
        children.wait_for(f"{place.chain_url}/sandbox/state", stop)
        if not stop.is_set():
            place.require_same_age(db)
        children.start("service", "btcpay", "serve")
        children.wait_for(f"{place.service_url}/healthz", stop)
        children.start("check", "btcpay", "check", "--watch", "2")
        yield demo, children
