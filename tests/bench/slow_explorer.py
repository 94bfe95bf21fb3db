"""An explorer some milliseconds away, in a process of its own: every address is empty.

`python slow_explorer.py MS` prints its port; /stats tells connections and most calls at once.
"""

import asyncio
import json
import sys

opened = 0
in_flight = 0
most_in_flight = 0


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One connection: answers each request after the delay."""
    global opened, in_flight, most_in_flight
    counted = False
    while head := await reader.readuntil(b"\r\n\r\n"):
        path = head.split(b" ", 2)[1].decode()
        if path == "/stats":
            body = json.dumps({"connections": opened, "in_flight": most_in_flight})
        else:
            opened, counted = opened + (not counted), True
            in_flight += 1
            most_in_flight = max(most_in_flight, in_flight)
            await asyncio.sleep(int(sys.argv[1]) / 1000)
            in_flight -= 1
            body = "1000" if path == "/blocks/tip/height" else "[]"
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        await writer.drain()


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Until the client hangs up."""
    try:
        await serve(reader, writer)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main() -> None:
    """Listens on a free port."""
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
