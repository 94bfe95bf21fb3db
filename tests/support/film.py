"""`python film.py FOLDER FILM`: pictures of the workbench in every scene, and README's film of one.

What is filmed is `btcpay sandbox` itself, played by its own scenes in a browser.
"""

import base64
import io
import itertools
import sys
import tempfile
import time
from pathlib import Path

import requests
from browser import DESK, PHONE, Browser, Tab
from builders import until
from PIL import Image, ImageChops
from playground import Playground, start_playground

FILMED, STAGE = "paid-in-time", (1120, 700)
FIRST_S, EVERY_S, LAST_S = 1.5, 0.5, 4.0
# A clock that goes on is no new frame; a new line, or another page of the customer's, is.
LEAST_PIXELS = 1500
QUALITY, MOST_BYTES = 70, 500_000
WITHIN_S = 120


def state_of(playground: Playground) -> dict:
    return requests.get(f"{playground.chain}/sandbox/state", timeout=60).json()["scene"]


def shot(tab: Tab) -> Image.Image:
    """What the window shows now, and nothing below it."""
    data = tab.call("Page.captureScreenshot")["data"]
    return Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")


def is_new(frame: Image.Image, before: Image.Image) -> bool:
    changed = ImageChops.difference(frame, before).convert("L").point(lambda it: 255 * (it > 24))
    return sum(changed.histogram()[255:]) >= LEAST_PIXELS


def film(tab: Tab, playground: Playground, file: Path) -> None:
    """One scene as an animated WebP, each frame as long as it stood."""
    tab.emulate(STAGE, still=True)
    frames, began_s = [shot(tab)], [time.monotonic() - FIRST_S]
    tab.click(f"#scene-{FILMED}")
    tab.until("document.querySelector('#story li')")
    while state_of(playground)["state"] == "playing":
        if is_new(frame := shot(tab), frames[-1]):
            frames.append(frame)
            began_s.append(time.monotonic())
        time.sleep(EVERY_S)
    tab.until("document.querySelector('#story .end')")
    frames.append(shot(tab))
    began_s += [time.monotonic(), time.monotonic() + LAST_S]
    lasted_ms = [int(1000 * (end - begin)) for begin, end in itertools.pairwise(began_s)]
    frames[0].save(
        file,
        save_all=True,
        append_images=frames[1:],
        duration=lasted_ms,
        loop=0,
        quality=QUALITY,
        method=6,
        minimize_size=True,
    )
    size = file.stat().st_size
    print(f"{file}: {len(frames)} frames, {sum(lasted_ms) / 1000:.0f} s, {size:,} bytes")
    assert size < MOST_BYTES


def picture_all(tab: Tab, playground: Playground, folder: Path) -> None:
    """The workbench at the end of each scene: on a desk and on a phone, light and dark."""
    names = tab.ask("[...document.querySelectorAll('[name=scene]')].map((it) => it.value)")
    for name in names:
        fields = {"scene": name, "quick": "1"}
        assert requests.post(f"{playground.chain}/sandbox/scene", data=fields, timeout=60).ok
        over = lambda: state_of(playground)["state"] == "over"  # noqa: E731
        until(over, name, WITHIN_S)
        tab.until("document.querySelector('#story .end')")
        for size in (DESK, PHONE):
            for theme in ("light", "dark"):
                tab.emulate(size, theme, still=True)
                where = "desk" if size == DESK else "phone"
                tab.picture().save(folder / f"sandbox-{name}-{where}-{theme}.png")


def main(folder: Path, file: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, Browser(Path(place)) as browser:
        playground = start_playground(Path(place))
        try:
            tab = browser.open(playground.chain, size=STAGE)
            tab.call("Emulation.setScrollbarsHidden", hidden=True)
            tab.go(f"{playground.chain}/")
            tab.until("document.getElementById('customer').dataset.page")
            film(tab, playground, file)
            picture_all(tab, playground, folder)
        finally:
            playground.stop()


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
