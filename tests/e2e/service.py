"""A small web service as a project: it serves, answers its health check, and can be made slow or failing."""

from __future__ import annotations

SERVE = """import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prices import price


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        try:
            body, status = (b"ok" if self.path == "/health" else f"price {price(2)}".encode()), 200
            if self.path.startswith("/missing"):
                body, status = b"no such page", 404
        except Exception as error:
            body, status = repr(error).encode(), 500
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
"""
PRICES = "def price(count):\n    return 10 * count\n"
TESTS = """import unittest

from prices import price


class PriceTest(unittest.TestCase):
    def test_two(self):
        self.assertGreater(price(2), 0)
"""
INTEGRATION = """import os
import unittest
import urllib.request


class StagingTest(unittest.TestCase):
    def test_it_answers(self):
        with urllib.request.urlopen(os.environ["MENDWORK_TARGET_URL"] + "/health", timeout=5) as answer:
            self.assertEqual(answer.read(), b"ok")
"""
FILES = {
    "serve.py": SERVE,
    "prices.py": PRICES,
    "test_prices.py": TESTS,
    "integration/test_staging.py": INTEGRATION,
    "README.md": "# shop\n",
}

SECOND = {"prices.py": "def price(count):\n    return 20 * count\n"}
MENDED = {"prices.py": "def price(count):\n    return 30 * count\n"}
TELLING = {"serve.py": SERVE.replace("price {price(2)}", "price {price(2)} {os.environ.get('COLOUR', 'none')}")}
"""It tells a variable of its environment."""
FAILING = {"serve.py": SERVE.replace("price(2)", "price(None if self.path == '/sale' else 2)")}
"""One of its paths answers with 500."""
SLOW = {"prices.py": "import time\n\n\ndef price(count):\n    time.sleep(1)\n    return 10 * count\n"}
DYING = {
    "prices.py": "import os\n\nleft = [25]\n\n\ndef price(count):\n    left[0] -= 1\n"
    "    if left[0] < 0 and 'PORT' in os.environ:\n        os._exit(3)\n    return 10 * count\n"
}
"""It serves for a while, counted in prices that it told."""
BORN_DEAD = {"serve.py": 'raise SystemExit("no database")\n'}
SILENT = {"serve.py": SERVE.replace('b"ok" if', 'b"not yet" if')}
RED = {"integration/test_staging.py": INTEGRATION.replace('b"ok"', 'b"fine"')}
QUICK = "seconds = 4\nwindow = 2\nrate = 20\nmin_asked = 20"
PAGES = '{ path = "/", contains = "price" }'


def section(project: str, *, watch: str = "", more: str = "", probes: str = PAGES, start_seconds: int = 20) -> str:
    """The delivery's part of mendwork.toml: a watch of a few seconds, for machines that may be busy."""
    return f"""
[projects.{project}.delivery]
target = "local"
run = "python3 serve.py"
integration = "python3 -m unittest discover -s integration"
health = {{ path = "/health", contains = "ok" }}
start_seconds = {start_seconds}
{more}
[projects.{project}.delivery.watch]
{watch or QUICK}
slow_floor_ms = 500
probes = [{probes}]
"""
