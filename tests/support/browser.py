"""Debian's Chromium, headless, as a process of the tests: one browser, a clean context per tab.

It is spoken to in the DevTools protocol, over the pipe that --remote-debugging-pipe makes: no port
that others could reach, no driver, no package. When the pipe closes the browser ends, so that it
ends however the tests do.
"""

import base64
import contextlib
import io
import json
import os
import re
import select
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit

import pytest
import zxingcpp
from PIL import Image

from tests.support.builders import until
from tests.support.fonts import fonts_file

Json = dict[str, Any]
# The second is the same engine without windows; it takes 4/7 of the time, but now and then a tab
# of it that runs no script does not close.
PROGRAMS = ("chromium", "chromium-headless-shell")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--no-startup-window",  # each context has its own
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-breakpad",
    # A camera that shows a test picture; no page may use it but in a browser with LETS_USE_CAMERA.
    "--use-fake-device-for-media-stream",
    "--remote-debugging-pipe",
    # Its own background requests find nobody; shop.test is a host that is not "secure".
    "--host-resolver-rules=MAP shop.test 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]
LETS_USE_CAMERA = "--use-fake-ui-for-media-stream"
# The pipe is file descriptors 3 and 4 of the browser.
PIPED = 'exec "$0" "$@" 3<&0 4>&1 0</dev/null 1>&2'
ANSWER_S = 40  # generous: other work may run on the machine
# inches
A4 = (8.27, 11.69)
LETTER = (8.5, 11)
PHONE = (390, 844)
SMALL = (320, 568)
TABLET = (768, 1024)
DESK = (1280, 800)
# Chromium logs each page that is answered with one of these as an error of its console.
TOLD_AS_PAGES = (400, 401, 403, 404, 410, 429, 503)
CENTRE = """(selector) => {
    const it = document.querySelector(selector);
    it.scrollIntoView({block: 'center', behavior: 'instant'});
    const box = it.getBoundingClientRect();
    return [box.x + box.width / 2, box.y + box.height / 2];
}"""
KEYS: dict[str, dict[str, Any]] = {
    "Tab": {"windowsVirtualKeyCode": 9},
    "Enter": {"windowsVirtualKeyCode": 13, "text": "\r"},
    "Space": {"windowsVirtualKeyCode": 32, "text": " ", "key": " "},
}


def lack(reason: str) -> NoReturn:
    """Skips the test; fails it where .ci/run has promised everything that is needed."""
    if os.environ.get("TESTS_MUST_NOT_SKIP"):
        pytest.fail(reason)
    pytest.skip(reason)


class Moving(Exception):
    """The page is on its way to another one and cannot be asked now."""


@dataclass
class Context:
    """A browser context that knows of no other, with a window that an empty page keeps open.

    A window takes Chromium longer than all that a test does in it: it is cleaned and used again.
    """

    id: str
    keeper: str  # the empty page's session


class Browser:
    """The process and its pipe; a context manager. Not for more than one thread."""

    def __init__(self, folder: Path, *flags: str) -> None:
        self.tabs: dict[str, Tab] = {}
        self._clean: list[Context] = []
        self._unread = b""
        self._calls = 0
        program = next(filter(None, map(shutil.which, PROGRAMS)), None)
        if program is None:
            lack("needs Debian's chromium")
        words = [program, *FLAGS, *flags, f"--user-data-dir={folder}/profile"]
        with (folder / "chromium.log").open("wb") as log:
            self.process = subprocess.Popen(
                ["/bin/sh", "-c", PIPED, *words],
                env={
                    name: value
                    for name, value in os.environ.items()
                    if name != "DISPLAY"
                }
                | {"HOME": str(folder), "FONTCONFIG_FILE": str(fonts_file(folder))},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )

    def call(self, method: str, session: str = "", **params: Any) -> Json:
        self._calls += 1
        number = self._calls
        message = {"id": number, "method": method, "params": params}
        message |= {"sessionId": session} if session else {}
        self.process.stdin.write(json.dumps(message).encode() + b"\0")
        self.process.stdin.flush()
        while (answer := self.hear(method)).get("id") != number:
            pass
        if "error" in answer:
            raise Moving(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def hear(self, what: str) -> Json:
        """The next message, waited for as long as `what` may take."""
        deadline_s = time.monotonic() + ANSWER_S
        pipe = self.process.stdout.fileno()
        while b"\0" not in self._unread:
            ready, _, _ = select.select([pipe], [], [], deadline_s - time.monotonic())
            assert ready, f"the browser did not answer {what} within {ANSWER_S} s"
            chunk = os.read(pipe, 1 << 20)
            assert chunk, f"the browser ended at {what}"
            self._unread += chunk
        raw, _, self._unread = self._unread.partition(b"\0")
        message = json.loads(raw)
        if tab := self.tabs.get(message.get("sessionId", "")):
            tab.heed(message.get("method", ""), message.get("params", {}))
        if message.get("method") == "Target.detachedFromTarget":
            self.tabs.pop(message["params"]["sessionId"], None)
        return message

    def open(self, root: str, language: str = "en", **environment: Any) -> "Tab":
        """A tab in a context of its own, where nothing is remembered; `environment` as of Tab.

        Everything that its pages load has to come from `root`.
        """
        if self._clean:
            context = self._clean.pop()
        else:
            id = self.call("Target.createBrowserContext")["browserContextId"]
            context = Context(id, self._new_page(id)[1])
        target, session = self._new_page(context.id)
        tab = Tab(self, context, target, session, root)
        self.tabs[tab.session] = tab
        for domain in ("Page", "Network", "Runtime", "Log", "Audits"):
            tab.call(f"{domain}.enable")
        tab.call("Emulation.setFocusEmulationEnabled", enabled=True)
        tab.call("Network.setExtraHTTPHeaders", headers={"Accept-Language": language})
        tab.emulate(**environment)
        return tab

    def _new_page(self, context: str) -> tuple[str, str]:
        made = self.call(
            "Target.createTarget", url="about:blank", browserContextId=context
        )
        it = self.call("Target.attachToTarget", targetId=made["targetId"], flatten=True)
        return made["targetId"], it["sessionId"]

    def forget(self, context: Context, origins: set[str]) -> None:
        """Makes a context whose tab is closed as new, with all that these have left there."""
        self.call("Storage.clearCookies", browserContextId=context.id)
        self.call("Browser.resetPermissions", browserContextId=context.id)
        self.call("Network.clearBrowserCache", context.keeper)
        for origin in origins:
            all_of = {"origin": origin, "storageTypes": "all"}
            self.call("Storage.clearDataForOrigin", context.keeper, **all_of)
        self._clean.append(context)

    def close(self) -> None:
        with contextlib.suppress(
            AssertionError, Moving, OSError, subprocess.TimeoutExpired
        ):
            self.call("Browser.close")
            self.process.wait(60)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def __enter__(self) -> "Browser":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


class Tab:
    """A page and what became known of it: `requests` (URLs), `strangers` and `complaints`.

    `strangers` are requests to another host, `complaints` all errors and warnings of the console,
    violations of the page's policy among them.
    """

    def __init__(
        self, browser: Browser, context: Context, target: str, session: str, root: str
    ) -> None:
        self._browser = browser
        self.context = context
        self._target = target
        self.session = session
        self.root = root
        self.status = 0
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.neighbours: list[str] = []
        self._pages: dict[str, int] = {}
        self._time_is_up = self._was_put_away = False

    def call(self, method: str, **params: Any) -> Json:
        return self._browser.call(method, self.session, **params)

    def heed(self, event: str, said: Json) -> None:
        match event:
            case "Network.requestWillBeSent":
                self.requests.append(said["request"]["url"])
            case "Network.responseReceived" if said["type"] == "Document":
                self.status = said["response"]["status"]
                self._pages[said["response"]["url"]] = self.status
            case "Log.entryAdded" if said["entry"]["level"] in ("error", "warning"):
                entry = said["entry"]
                if self._pages.get(entry.get("url", "")) not in TOLD_AS_PAGES:
                    self.complaints.append(f"{entry['text']} {entry.get('url', '')}")
            case "Runtime.exceptionThrown" | "Audits.issueAdded":
                self.complaints.append(json.dumps(said))
            case "Runtime.consoleAPICalled" if said["type"] in (
                "error",
                "warning",
                "assert",
            ):
                self.complaints.append(json.dumps(said["args"]))
            case "Emulation.virtualTimeBudgetExpired":
                self._time_is_up = True

    @property
    def strangers(self) -> list[str]:
        """Requests to anywhere but the service, and to neighbours that the test allows."""
        own = [urlsplit(root).netloc for root in (self.root, *self.neighbours)]
        urls = (
            url for url in self.requests if not url.startswith("data:")
        )  # the browser's own
        return [url for url in urls if urlsplit(url).netloc not in own]

    @property
    def polls(self) -> int:
        return sum(url.endswith("/status") for url in self.requests)

    def emulate(
        self,
        size: tuple[int, int] = PHONE,
        theme: str = "light",
        still: bool = False,
        media: str = "",
        script: bool = True,
        scale: float = 1,
    ) -> None:
        """Width and height in CSS pixels, colour scheme, reduced motion, medium, JavaScript."""
        motion = "reduce" if still else "no-preference"
        features = [
            {"name": "prefers-color-scheme", "value": theme},
            {"name": "prefers-reduced-motion", "value": motion},
        ]
        screen = {"width": size[0], "height": size[1], "mobile": size[0] < 600}
        self.call(
            "Emulation.setDeviceMetricsOverride", deviceScaleFactor=scale, **screen
        )
        self.call("Emulation.setEmulatedMedia", media=media, features=features)
        self.call("Emulation.setScriptExecutionDisabled", value=not script)

    def cut_off(self, offline: bool) -> None:
        limits = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        self.call("Network.emulateNetworkConditions", offline=offline, **limits)

    def put_away(self, hidden: bool) -> None:
        """Hides the page as another window over it would, or shows it again."""
        self._was_put_away = True
        window = self._browser.call("Browser.getWindowForTarget", targetId=self._target)
        bounds = {"windowState": "minimized" if hidden else "normal"}
        # it would stay visible
        self.call("Emulation.setFocusEmulationEnabled", enabled=False)
        self._browser.call(
            "Browser.setWindowBounds", windowId=window["windowId"], bounds=bounds
        )
        self.until(f"document.hidden === {json.dumps(hidden)}")

    def pass_time(self, seconds: float) -> None:
        """Lets this much time pass for the page, at once; it stands still afterwards."""
        self._time_is_up = False
        policy = {"policy": "pauseIfNetworkFetchesPending", "budget": seconds * 1000}
        self.call("Emulation.setVirtualTimePolicy", **policy)
        while not self._time_is_up:
            self._browser.hear(f"the passing of {seconds} s")

    def go(self, url: str) -> int:
        failed = self.call("Page.navigate", url=url).get("errorText")
        assert failed in (None, "net::ERR_HTTP_RESPONSE_CODE_FAILURE"), (
            f"{url}: {failed}"
        )
        self.until("document.body")
        return self.status

    def click(self, selector: str) -> None:
        x, y = self.ask(f"({CENTRE})({json.dumps(selector)})")
        for kind in ("mousePressed", "mouseReleased"):
            self.call(
                "Input.dispatchMouseEvent",
                type=kind,
                x=x,
                y=y,
                button="left",
                clickCount=1,
            )

    def choose_file(self, selector: str, file: Path) -> None:
        field = f"document.querySelector({json.dumps(selector)})"
        where = self.call("Runtime.evaluate", expression=field)["result"]["objectId"]
        self.call("DOM.setFileInputFiles", files=[str(file)], objectId=where)

    def download_to(self, folder: Path) -> None:
        place = {"browserContextId": self.context.id, "downloadPath": str(folder)}
        self._browser.call("Browser.setDownloadBehavior", behavior="allow", **place)

    def press(self, *keys: str) -> None:
        for key in keys:
            named = {"key": key, "code": key} | KEYS[key]
            self.call("Input.dispatchKeyEvent", type="keyDown", **named)
            named.pop("text", None)
            self.call("Input.dispatchKeyEvent", type="keyUp", **named)

    def grant(self, *permissions: str) -> None:
        """Grants these to all pages of the tab, as its user would."""
        context = {"browserContextId": self.context.id}
        self._browser.call(
            "Browser.grantPermissions", permissions=list(permissions), **context
        )

    def run_first(self, script: str) -> None:
        """Runs the script in each page to come, before those of the page."""
        self.call("Page.addScriptToEvaluateOnNewDocument", source=script)

    def insert(self, text: str) -> None:
        """Puts a whole text where the focus is, as a paste does."""
        self.call("Input.insertText", text=text)

    def type(self, text: str) -> None:
        for character in text:
            self.call("Input.dispatchKeyEvent", type="char", text=character)

    def fill(self, **fields: str) -> None:
        """Types a text into each of these fields, named by their ids, in place of the old one."""
        for id, text in fields.items():
            self.ask(f"document.getElementById('{id}').focus()")
            self.ask(f"document.getElementById('{id}').select()")
            self.type(text)

    def paste(self) -> str:
        for command in ("selectAll", "paste"):
            self.call("Input.dispatchKeyEvent", type="keyDown", commands=[command])
        return self.ask("document.activeElement.value")

    def ask(self, expression: str) -> Any:
        """The value of a JavaScript expression, awaited. Raises Moving between two pages."""
        how = {"returnByValue": True, "awaitPromise": True}
        answer = self.call("Runtime.evaluate", expression=expression, **how)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def until(self, expression: str) -> None:
        """Waits for the expression to become true, on a page that is all there."""
        self.until_seen(f"document.readyState === 'complete' && ({expression})")

    def until_seen(self, expression: str) -> None:
        """Waits for the expression to become true, on a page of which a part may never come."""

        def holds() -> bool:
            try:
                return self.ask(f"!!({expression})")
            except Moving:
                return False

        until(holds, expression, ANSWER_S)

    def until_state(self, state: str) -> None:
        self.until(
            f"document.getElementById('main').dataset.state === {json.dumps(state)}"
        )

    def text(self, id: str) -> str | None:
        return self.ask(f"document.getElementById({json.dumps(id)})?.textContent")

    def is_shown(self, id: str) -> bool:
        return self.ask(
            f"!!document.getElementById({json.dumps(id)})?.checkVisibility()"
        )

    def focus(self) -> str:
        """The id of what has the focus, else its language (of the picker), else its tag."""
        named = "({id, hreflang, tagName}) => id || hreflang || tagName"
        return self.ask(f"({named})(document.activeElement)")

    def picture(self, whole: bool = True) -> Image.Image:
        """Of the whole page, or of what the window shows of it."""
        page = self.call("Page.getLayoutMetrics")["cssContentSize"] | {"scale": 1}
        more: Json = {"captureBeyondViewport": True, "clip": page} if whole else {}
        shot = self.call("Page.captureScreenshot", **more)
        return Image.open(io.BytesIO(base64.b64decode(shot["data"])))

    def paper(self, size: tuple[float, float] = A4) -> bytes:
        """The page as it is printed, a PDF, on paper of that width and height in inches."""
        printed = self.call("Page.printToPDF", paperWidth=size[0], paperHeight=size[1])
        return base64.b64decode(printed["data"])

    def paper_pages(self, size: tuple[float, float] = A4) -> int:
        """On how many pages it is printed."""
        return len(re.findall(rb"/Type\s*/Page\b", self.paper(size)))

    def qr(self) -> zxingcpp.Barcode:
        """The code on the screen."""
        (code,) = zxingcpp.read_barcodes(self.picture().convert("L"))
        return code

    def close(self) -> None:
        if self.session not in self._browser.tabs:
            return
        self._browser.call("Target.closeTarget", targetId=self._target)
        while self.session in self._browser.tabs:
            self._browser.hear("the end of a tab")
        if self._was_put_away:
            self._browser.call(
                "Target.disposeBrowserContext", browserContextId=self.context.id
            )
            return
        urls = [urlsplit(url) for url in self.requests if url.startswith("http")]
        self._browser.forget(
            self.context, {f"{url.scheme}://{url.netloc}" for url in urls}
        )
