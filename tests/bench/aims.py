"""What is measured, on which servers, and the aims."""

import json
from dataclasses import dataclass, replace

from tests.bench.servers import Operation

API = "/api/v1/invoices"
ORDER = json.dumps({"amount_usd": 25, "description": "Tea", "expires_in_hours": 1})
BARE = "bare"
SQLITE = "one commit, SQLite"
POSTGRESQL = "one commit, PostgreSQL"
SMALL = "1,000 stored"
LARGE = "1,000,000 stored"
SERVER = "PostgreSQL, 1,000"
BEFORE = "before, 1,000"
BEFORE_SERVER = "before, PostgreSQL"
# What follows the size in the path of a bare route, and what is measured for orders alone.
ROUTES = {BARE: "", SQLITE: "/sqlite", POSTGRESQL: "/postgresql"}
OF_ORDERS = (SQLITE, POSTGRESQL, SERVER, BEFORE_SERVER)

GET = Operation("get-invoice", f"GET {API}/{{id}}")
LIST = Operation("list-invoices, limit 50", f"GET {API}?limit=50")
CREATE = Operation(
    "create-invoice",
    f"POST {API}",
    scope="write",
    per_key=25,
    status=201,
    body=ORDER,
)
OPERATIONS = (
    GET,
    replace(GET, name="get-invoice, 16 connections", connections=16),
    LIST,
    CREATE,
)


@dataclass(frozen=True)
class Aim:
    """A least rate or a greatest p99, as a share of another server's in the same round."""

    operation: str
    of: str
    against: str
    share: float
    what: str = "per_second"

    @property
    def is_most(self) -> bool:
        return self.what == "p99_ms"


AIMS = [
    Aim("get-invoice", SMALL, BARE, 0.80),
    Aim("get-invoice", SMALL, BARE, 3, "p99_ms"),
    Aim("get-invoice, 16 connections", SMALL, BARE, 0.80),
    Aim("list-invoices, limit 50", SMALL, BARE, 0.68),
    Aim("create-invoice", SMALL, BARE, 0.22),
    Aim("create-invoice", SMALL, SQLITE, 0.45),
    Aim("create-invoice", SERVER, POSTGRESQL, 0.35),
    *(Aim(operation.name, LARGE, SMALL, 0.80) for operation in OPERATIONS),
]
