"""PgBouncer in transaction mode, as docs/operators/postgresql.md says, before the tests' server."""

import os
import pwd
import shutil
import subprocess
from pathlib import Path

from tests.support import postgres
from tests.support.builders import until
from tests.support.ports import free_port, is_open

CONFIGURATION = """
[databases]
* = host=127.0.0.1 port={server} user=blocktill
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
auth_type = any
pool_mode = transaction
max_client_conn = 200
default_pool_size = 20
server_login_retry = 1
ignore_startup_parameters = extra_float_digits
unix_socket_dir =
"""


class Pooler:
    PROGRAM = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")

    def __init__(self, server: postgres.Server, folder: Path) -> None:
        self.port = free_port()
        file = folder / "pgbouncer.ini"
        file.write_text(CONFIGURATION.format(server=server.port, port=self.port))
        user = None
        if os.getuid() == 0:
            user = pwd.getpwnam("postgres").pw_uid
            shutil.chown(file, "postgres")
        with (folder / "pgbouncer.log").open("ab") as log:
            self._process = subprocess.Popen(
                [self.PROGRAM or "pgbouncer", str(file)],
                user=user,
                cwd="/",
                stdout=log,
                stderr=log,
            )
        until(lambda: is_open(self.port), "PgBouncer to answer")

    def url(self, name: str) -> str:
        return f"postgresql://{postgres.USER}:{postgres.SECRET}@127.0.0.1:{self.port}/{name}?pooler=transaction"

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(30)
