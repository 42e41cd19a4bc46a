"""One file from a Python package index: PEP 691 JSON or PEP 503 HTML, checked by hash. No pip, no curl."""

from __future__ import annotations

import base64
import hashlib
import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit, urlunsplit

from setup.console import SetupError

PUBLIC = "https://pypi.org/simple"
_ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"
_TRIES = 3
_LIMIT = 200_000_000


class Index:
    """A package index. ``certificates`` is a bundle of authorities; None leaves it to Python's own defaults."""

    def __init__(self, url: str, *, certificates: Path | None) -> None:
        parts = urlsplit(url)
        self._url = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])).rstrip("/")
        self._host = parts.hostname
        self._authorization = ""
        if parts.username:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._authorization = "Basic " + base64.b64encode(pair.encode()).decode()
        context = ssl.create_default_context(cafile=certificates)
        self._opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context))

    def fetch(self, project: str, filename: str, *, sha256: str) -> bytes:
        """The file's bytes. Raises SetupError when it is not there, not reachable or not the pinned one."""
        page = f"{self._url}/{project}/"
        links = _links(self._get(page, accept=_ACCEPT), base=page)
        if filename not in links:
            raise SetupError(f"{self._host} has no {filename}")
        content = self._get(links[filename], accept="*/*")
        if hashlib.sha256(content).hexdigest() != sha256:
            raise SetupError(f"{filename} from {self._host} is not the pinned one: its SHA-256 differs")
        return content

    def _get(self, url: str, *, accept: str) -> bytes:
        if urlsplit(url).scheme not in {"http", "https"}:
            raise SetupError(f"the package index {self._host} leads to what is no web address")
        headers = {"Accept": accept, "User-Agent": "mendwork-setup"}
        request = urllib.request.Request(url, headers=headers)  # noqa: S310 - the scheme is checked
        if self._authorization and urlsplit(url).hostname == self._host:
            request.add_unredirected_header("Authorization", self._authorization)
        for attempt in range(1, _TRIES + 1):
            try:
                with self._opener.open(request, timeout=60) as answer:
                    content: bytes = answer.read(_LIMIT)
                    return content
            except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
                permanent = isinstance(error, urllib.error.HTTPError) and error.code < 500
                if permanent or attempt == _TRIES:
                    raise SetupError(f"the package index {self._host} cannot be read: {error}") from error
                time.sleep(attempt)
        raise AssertionError("the loop returns or raises")


def index_url(environment: Mapping[str, str]) -> str:
    """The index that uv or pip would use, from the environment; the public one by default."""
    names = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL")
    return next((environment[name] for name in names if environment.get(name)), PUBLIC)


class _Anchors(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.targets += [value for name, value in attrs if name == "href" and value]


def _links(page: bytes, *, base: str) -> dict[str, str]:
    """File name to URL."""
    text = page.decode(errors="replace")
    if text.lstrip().startswith("{"):
        targets = [entry["url"] for entry in json.loads(text)["files"]]
    else:
        anchors = _Anchors()
        anchors.feed(text)
        targets = anchors.targets
    absolute = [urldefrag(urljoin(base, target)).url for target in targets]
    return {unquote(urlsplit(url).path.rpartition("/")[2]): url for url in absolute}
