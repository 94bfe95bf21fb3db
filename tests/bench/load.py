"""The load: some kept-alive connections in one epoll loop, about 10 us for each request."""

import gc
import itertools
import selectors
import socket
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Load:
    """What to send where: every target in turn, and each key for `per_key` requests.

    `first_key`: from which one on; keys before it were used a moment ago.
    """

    port: int
    targets: Sequence[str]
    status: int = 200
    keys: Sequence[str] = ("",)
    per_key: int = 1_000_000
    body: str | None = None
    connections: int = 4
    first_key: int = 0

    def requests(self) -> Iterator[bytes]:
        turn = itertools.islice(itertools.cycle(self.keys), self.first_key % len(self.keys), None)
        keys = (key for key in turn for _ in range(self.per_key))
        for target, key in zip(itertools.cycle(self.targets), keys, strict=False):
            head = f"{target} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {key}\r\n"
            if self.body is not None:
                head += f"Content-Type: application/json\r\nContent-Length: {len(self.body)}\r\n"
            yield f"{head}\r\n{self.body or ''}".encode()


@dataclass(frozen=True)
class Measured:
    """The outcome: `busy` is the share of one processor that the client itself took."""

    answers: int
    per_second: float
    p99_ms: float
    busy: float


class Connection:
    def __init__(self, port: int, status: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.first_line = b"HTTP/1.1 %d " % status
        self.sent_s = 0.0

    def send(self, request: bytes) -> None:
        self.answer = b""
        self.sent_s = time.perf_counter()
        self.socket.sendall(request)

    def is_answered(self) -> bool:
        """Takes what has come. Raises RuntimeError for any answer but the expected status."""
        data = self.socket.recv(262_144)
        self.answer = self.answer + data if self.answer else data
        if not data or not self.answer.startswith(self.first_line[: len(self.answer)]):
            raise RuntimeError(f"unexpected answer: {self.answer[:600]!r}")
        head, blank_line, body = self.answer.partition(b"\r\n\r\n")
        if not blank_line:
            return False
        length = head[head.index(b"Content-Length: ") + 16 :].partition(b"\r\n")[0]
        return len(body) >= int(length)


def drive(load: Load, seconds: float) -> Measured:
    """Keeps every connection busy for that long: a new request as soon as an answer is whole."""
    gc.disable()
    requests = load.requests()
    selector = selectors.DefaultSelector()
    connections = [Connection(load.port, load.status) for _ in range(load.connections)]
    for connection in connections:
        selector.register(connection.socket, selectors.EVENT_READ, connection)
        connection.send(next(requests))
    took_s: list[float] = []
    start_s, start_cpu_s = time.perf_counter(), time.process_time()
    while time.perf_counter() - start_s < seconds:
        for ready, _ in selector.select(10):
            if ready.data.is_answered():
                took_s.append(time.perf_counter() - ready.data.sent_s)
                ready.data.send(next(requests))
    elapsed_s, cpu_s = time.perf_counter() - start_s, time.process_time() - start_cpu_s
    for connection in connections:
        connection.socket.close()
    p99_s = sorted(took_s)[len(took_s) * 99 // 100]
    return Measured(len(took_s), len(took_s) / elapsed_s, p99_s * 1000, cpu_s / elapsed_s)
