"""The live page in headless Chromium, over its DevTools protocol.

    page.py URL REDIS_PORT SERVER_PID PICTURES

Looks at the page idle and under load, light and dark, wide and as narrow as a phone, and again while the server
is stopped. Fails if a figure does not move, if something is said on the console, if the page asks for anything
but its own server, or if it is wider than the screen. Leaves its screenshots in the folder PICTURES.
"""

import base64
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

import websocket

URL, REDIS_PORT, SERVER_PID, PICTURES = sys.argv[1], sys.argv[2], int(sys.argv[3]), pathlib.Path(sys.argv[4])
START_S, WAIT_S = 30, 30
WIDE, PHONE = (1280, 1500), (390, 844)


class Browser:
    """One tab of one browser."""

    def __init__(self):
        name = next(n for n in ("chromium", "chromium-browser", "google-chrome") if shutil.which(n))
        self.profile = tempfile.mkdtemp(prefix="sheafdb-page-")
        self.process = subprocess.Popen(
            [name, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars",
             "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update",
             "--disable-sync", "--disable-extensions", "--remote-debugging-port=0",
             "--remote-allow-origins=*", f"--user-data-dir={self.profile}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.socket = websocket.create_connection(self._tab(), timeout=WAIT_S)
        self.last = 0
        self.console, self.asked = [], []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def _tab(self):
        port_file = pathlib.Path(self.profile, "DevToolsActivePort")
        end = time.monotonic() + START_S
        while time.monotonic() < end:
            if port_file.exists() and port_file.read_text().strip():
                port = port_file.read_text().split()[0]
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=WAIT_S) as answer:
                    tabs = [tab for tab in json.load(answer) if tab["type"] == "page"]
                if tabs:
                    return tabs[0]["webSocketDebuggerUrl"]
            time.sleep(0.05)
        raise SystemExit("chromium does not start")

    def call(self, method, **params):
        self.last += 1
        self.socket.send(json.dumps({"id": self.last, "method": method, "params": params}))
        while True:
            message = json.loads(self.socket.recv())
            if message.get("id") == self.last:
                assert "error" not in message, message
                return message["result"]
            self._event(message)

    def _event(self, message):
        params = message.get("params", {})
        match message.get("method"):
            case "Runtime.consoleAPICalled":
                self.console.append(" ".join(str(a.get("value", a.get("description"))) for a in params["args"]))
            case "Runtime.exceptionThrown":
                self.console.append(json.dumps(params["exceptionDetails"]))
            case "Log.entryAdded":
                self.console.append(params["entry"]["text"] + " " + params["entry"].get("url", ""))
            case "Network.requestWillBeSent":
                self.asked.append(params["request"]["url"])

    def js(self, text):
        result = self.call("Runtime.evaluate", expression=text, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def look(self, dark, size):
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=scheme)
        self.call("Emulation.setDeviceMetricsOverride", width=size[0], height=size[1], deviceScaleFactor=1, mobile=False)

    def picture(self, name):
        time.sleep(0.3)  # transitions
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=False)
        (PICTURES / f"{name}.png").write_bytes(base64.b64decode(shot["data"]))

    def close(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)


def wait(what, test, seconds=WAIT_S):
    """Until `test` says something true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        said = test()
        if said:
            return said
        time.sleep(0.1)
    raise SystemExit(f"the page: {what}: not within {seconds} s")


def main():
    PICTURES.mkdir(parents=True, exist_ok=True)
    browser = Browser()
    load = None
    try:
        text = lambda id: browser.js(f"document.getElementById('{id}').textContent")
        browser.look(False, WIDE)
        browser.call("Page.navigate", url=URL)
        wait("the page", lambda: browser.js("!!document.getElementById('status')"))
        wait("live", lambda: text("status") == "live")
        wait("the uptime is shown", lambda: "up " in text("facts"))
        assert text("ops") == "0" and text("p50") == "–" and text("events-per-poll") in ("–", "1.00"), text("ops")
        first = browser.js("last.now_ns")
        wait("asks again by itself", lambda: browser.js("last.now_ns") > first)
        browser.picture("idle-light")

        redis = lambda *words: subprocess.run(["redis-cli", "-p", REDIS_PORT, *words], check=True, capture_output=True)
        redis("CONFIG", "SET", "slowlog-log-slower-than", "0")
        redis("SET", "<script>alert(1)</script>", "x")
        redis("CONFIG", "SET", "slowlog-log-slower-than", "10000")
        wait("the slow log", lambda: "<script>alert(1)</script>" in text("slow"))
        assert browser.js("document.querySelectorAll('#slow script').length") == 0

        load = subprocess.Popen(
            ["redis-benchmark", "-p", REDIS_PORT, "-t", "set,get,incr,lpush", "-P", "16", "-c", "20", "-r", "10000",
             "-n", "400000", "-l"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait("throughput under load", lambda: browser.js("charts.ops.data[0].at(-1)") > 1000)
        moving = ["ops", "p50", "p99", "service-p50", "service-p99", "connections", "memory", "commands-per-receive", "replies-per-send", "events-per-poll"]
        for id in moving:
            wait(f"{id} has a value", lambda: text(id) not in ("–", "0"))
        for line, what in ((1, "receive"), (2, "send")):
            wait(f"a pipeline of 16 in one {what}", lambda: (browser.js(f"charts.batches.data[{line}].at(-1)") or 0) > 1.5)
        wait("connections are counted", lambda: int(text("connections")) >= 20)
        before = {id: text(id) for id in ("ops", "net-in")}
        for id in before:
            wait(f"{id} moves by the second", lambda: text(id) != before[id], 10)
        first = "document.querySelector('#top tbody tr').cells[0].textContent"
        wait("the top command", lambda: browser.js(first) in ("SET", "GET", "INCR", "LPUSH"))
        browser.js("heated = 0")  # the map is asked for every half minute
        label = "document.querySelector('#heat canvas').getAttribute('aria-label')"
        wait("the map of service times", lambda: browser.js(label).startswith("from "))
        painted = "heat.canvas.getContext('2d').getImageData(0, 0, 288, 24).data.some(x => x > 0)"
        assert browser.js(painted), "the map is empty"
        browser.js("""(() => { const box = heat.host.getBoundingClientRect();
            heat.host.dispatchEvent(new PointerEvent("pointermove", { clientX: box.right - 1, clientY: box.top + 40 })); })()""")
        assert "requests" in browser.js("heat.tip.textContent"), browser.js("heat.tip.textContent")
        browser.js("heat.host.dispatchEvent(new PointerEvent('pointerleave'))")
        time.sleep(12)  # charts with something on them
        browser.picture("load-light")
        browser.look(True, WIDE)
        browser.picture("load-dark")
        for dark, name in ((False, "phone-light"), (True, "phone-dark")):
            browser.look(dark, PHONE)
            browser.picture(name)
            wide = browser.js("document.documentElement.scrollWidth")
            assert wide <= PHONE[0], f"{wide} pixels wide on a phone"
        size = browser.js("document.documentElement.scrollHeight")
        browser.look(False, (PHONE[0], size))
        browser.picture("phone-whole")
        load.kill()
        load.wait()
        load = None
        browser.look(False, WIDE)
        wait("calm after the load", lambda: text("ops") == "0")
        hidden = lambda: browser.js("document.getElementById('journal').hidden && document.getElementById('journal-lag').hidden")
        assert hidden(), "there is no append-only file"
        redis("CONFIG", "SET", "appendonly", "yes")
        info = lambda: redis("INFO", "persistence").stdout
        wait("its base", lambda: b"aof_rewrite_in_progress:0" in info() and b"aof_base_size:0\r" not in info())
        redis("SET", "key", "value")  # behind the base, which would have it otherwise
        wait("the append-only file", lambda: not hidden() and "its base" in text("journal"))
        wait("a sync of it", lambda: " ago" in text("journal-sync") and text("journal-lag").startswith("0"))
        browser.look(False, PHONE)
        wide = browser.js("document.documentElement.scrollWidth")
        assert wide <= PHONE[0], f"{wide} pixels wide on a phone"
        browser.look(False, WIDE)
        browser.picture("journal-light")
        redis("CONFIG", "SET", "appendonly", "no")
        wait("the append-only file is gone", hidden)
        assert not browser.console, browser.console

        # A stopped process takes connections and answers nothing: the worst kind of silence.
        os.kill(SERVER_PID, signal.SIGSTOP)
        try:
            wait("says that the server is unreachable", lambda: browser.js("document.body.classList.contains('lost')"))
            assert "does not answer" in text("trouble") and browser.js("document.title").startswith("unreachable")
            shown = browser.js("getComputedStyle(document.getElementById('trouble')).display")
            assert shown == "block", shown
            browser.picture("unreachable-light")
            browser.look(True, WIDE)
            browser.picture("unreachable-dark")
        finally:
            os.kill(SERVER_PID, signal.SIGCONT)
        wait("live again", lambda: text("status") == "live" and not browser.js("document.body.classList.contains('lost')"))
        foreign = [url for url in browser.asked if not url.startswith((URL.split("?")[0], "data:", "about:"))]
        assert not foreign, foreign
        said = [line for line in browser.console if "Failed to load resource" not in line]
        assert not said, said
    finally:
        if load:
            load.kill()
            load.wait()
        browser.close()
    print("the page is alive")


main()
