"""Servers in processes of their own: started, asked for a first answer, weighed, stopped."""

import os
import re
import resource
import runpy
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
START_S = 30
WITHOUT_EXTRAS = {"PYTHONPATH": str(Path(__file__).parent / "without_extras")}
# gunicorn's threads as its manual has them; connections are kept as long as the load's.
PLAIN = ("--threads", "8", "--keep-alive", "65", "--no-control-socket")
CONFIGURED = ("worker_class", "threads", "worker_connections", "backlog", "keepalive")
PINNED = """
from btcpay.web.process import keep_to_one_processor
control_socket_disable = True
def post_fork(server, worker):
    keep_to_one_processor(str(server.cfg.bind))
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def python_of(root: Path) -> str:
    """The interpreter of a checkout: this one's, or that of another's `.venv`."""
    return sys.executable if root == ROOT else str(root / ".venv/bin/python")


class Server:
    """A Python module that serves on `port`; `environ` is added to this process's environment."""

    def __init__(
        self,
        port: int,
        module: Sequence[str],
        folder: Path,
        environ: dict[str, str],
        python: str = sys.executable,
    ) -> None:
        self.port = port
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self._started_s = time.perf_counter()
        self._process = subprocess.Popen(
            [python, "-m", *module],
            cwd=folder,
            env=os.environ | environ,
            stdout=subprocess.DEVNULL,
            stderr=self._log,
        )

    def ask(self, line: str, key: str = "", body: str | None = None) -> bytes:
        head = f"{line} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {key}\r\n"
        head += "Connection: close\r\nContent-Type: application/json\r\n"
        request = f"{head}Content-Length: {len(body or '')}\r\n\r\n{body or ''}"
        with socket.create_connection(("127.0.0.1", self.port), START_S) as connection:
            connection.sendall(request.encode())
            with connection.makefile("rb") as answer:
                return answer.read()

    def first_answer(self, line: str = "GET /", key: str = "") -> bytes:
        """Waits until there is one, whatever it says. Raises RuntimeError."""
        while time.perf_counter() - self._started_s < START_S and self._process.poll() is None:
            try:
                return self.ask(line, key)
            except ConnectionError:
                time.sleep(0.002)
        raise RuntimeError(f"no answer from {self._process.args}: {self.last_words()}")

    def first_answer_s(self, line: str, key: str = "") -> float:
        """Seconds from the start to the first answer, which must be a 200. Raises RuntimeError."""
        answer = self.first_answer(line, key)
        if not answer.startswith((b"HTTP/1.1 200 ", b"HTTP/1.0 200 ")):
            raise RuntimeError(f"unexpected answer: {answer[:600]!r}")
        return time.perf_counter() - self._started_s

    def last_words(self) -> str:
        self._log.seek(0)
        return self._log.read()[-4000:]

    def memory_mib(self) -> float:
        """The worker's proportional set size: pages shared with the master count half."""
        rollup = self._of_worker("smaps_rollup")
        return int(re.search(r"^Pss: +(\d+) kB", rollup, re.MULTILINE)[1]) / 1024

    def processor_s(self) -> float:
        """Processor time that the worker has taken so far, its own and the kernel's (proc(5))."""
        user, system = self._of_worker("stat").rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def _of_worker(self, name: str) -> str:
        pid = self._process.pid
        (worker,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return Path(f"/proc/{worker}/{name}").read_text()

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: Any) -> None:
        self._process.terminate()
        self._process.wait(START_S)
        self._log.close()


def processor_ms(words: str, environ: dict[str, str]) -> float:
    """Processor time of a command of ours, which must end well."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "btcpay", *words.split()]
    subprocess.run(
        command, cwd=ROOT, env=os.environ | environ, stdout=subprocess.DEVNULL, check=True
    )
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime)


class Servers:
    """Makes the servers of one bench; they end with `stack`."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._stack = stack
        # The service's threads and so on, and its processor, without any other of its modules.
        settings = runpy.run_path(str(ROOT / "gunicorn.conf.py"))
        self._conf = folder / "gunicorn.conf.py"
        self._conf.write_text(
            "".join(f"{name} = {settings[name]!r}\n" for name in CONFIGURED) + PINNED
        )
        (folder / "price.json").write_text('{"usd": "60000.00"}')
        port = free_port()
        ticker = Server(port, ["http.server", "--bind", "127.0.0.1", str(port)], folder, {})
        self.kept(ticker)
        self._price_source = f"http://127.0.0.1:{port}/price.json#/usd"

    def bare(self, sizes: Sequence[int]) -> Server:
        """Bare routes that answer so many bytes, under the service's own configuration."""
        return self._bare(sizes, "-c", str(self._conf))

    def plain(self, sizes: Sequence[int]) -> Server:
        """The same under a gunicorn that was told no more than its number of threads."""
        return self._bare(sizes, "-c", "/dev/null", *PLAIN)

    def _bare(self, sizes: Sequence[int], *how: str) -> Server:
        port = free_port()
        module = ["gunicorn", *how, "-b", f"127.0.0.1:{port}", "bare:app"]
        environ = {"BARE_BYTES": " ".join(map(str, sizes))}
        return Server(port, module, Path(__file__).parent, environ)

    def service(self, database_url: str, root: Path = ROOT) -> Server:
        """The service of a checkout with its own configuration, as the README starts it."""
        port = free_port()
        environ = {
            "BTCPAY_DATABASE_URL": database_url,
            "BTCPAY_PRICE_SOURCES": self._price_source,
            "BTCPAY_BASE_URL": f"http://127.0.0.1:{port}",
            **WITHOUT_EXTRAS,
        }
        return Server(port, ["gunicorn", "wsgi:app"], root, environ, python_of(root))

    def kept(self, server: Server) -> Server:
        self._stack.enter_context(server).first_answer()
        return server
