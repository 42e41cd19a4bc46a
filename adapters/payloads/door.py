"""Who may have payloads decoded: the rules of the codec server, apart from its sockets."""

from __future__ import annotations

import hmac
import ipaddress
from dataclasses import dataclass, field
from email.message import Message
from http.cookies import CookieError, SimpleCookie

from domain.errors import InvalidInput

COOKIE = "mendwork-codec"
_HEADERS = "Content-Type, Authorization, X-Namespace, Authorization-Extras"
_REMEMBERED_SECONDS = 12 * 3600


class Refused(Exception):
    """A request that is not served: the HTTP status, and one sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """``token`` empty asks for none. ``origins`` are the web UIs whose pages may ask."""

    namespace: str
    token: bytes = field(default=b"", repr=False)
    origins: tuple[str, ...] = ()

    def check_host(self, host: str) -> None:
        """Raises InvalidInput for an address that others can reach where no token is asked for."""
        if not self.token and not is_loopback(host):
            raise InvalidInput(
                f"[codec].host: {host} can be reached from other machines, and no [codec].token_file is set: whoever "
                "reaches the codec server reads everything; `mendwork codec token FILE` writes one"
            )

    def admit(self, headers: Message) -> None:
        """Raises Refused for a page of another site, and for a wrong token or none."""
        origin = headers.get("Origin")
        if origin is not None and origin not in self.origins:
            raise Refused(403, "pages of this origin may not ask; [codec].origins names those that may")
        if self.token and not self._knows(headers, from_page=origin is not None):
            raise Refused(401, "a bearer token is needed, the one in [codec].token_file")

    def cross(self, headers: Message) -> dict[str, str]:
        """What lets a page of a known origin read the answer; nothing for any other."""
        origin = headers.get("Origin")
        if origin is None or origin not in self.origins:
            return {"Vary": "Origin"}
        return {
            "Vary": "Origin",
            "Access-Control-Allow-Origin": origin,
            "Access-Control-Allow-Credentials": "true",
            "Access-Control-Allow-Methods": "POST, OPTIONS",
            "Access-Control-Allow-Headers": _HEADERS,
            "Access-Control-Max-Age": "600",
        }

    def work(self, path: str, headers: Message) -> str:
        """ "encode" or "decode", of the path. Raises Refused for another path or another namespace."""
        *named, work = path.partition("?")[0].strip("/").split("/")
        if work not in ("encode", "decode") or len(named) > 1:
            raise Refused(404, "known are /decode, /encode and the same under /NAMESPACE/")
        asked = {*named, *filter(None, [headers.get("X-Namespace", "")])}
        if asked - {self.namespace}:
            raise Refused(403, f"this codec server is for the namespace {self.namespace} alone")
        return work

    def remembered(self, token: bytes) -> str:
        """The cookie that keeps a browser admitted. Raises Refused for a wrong token."""
        if not self.token or not hmac.compare_digest(token, self.token):
            raise Refused(401, "that is not the token")
        return f"{COOKIE}={self._pass()}; HttpOnly; SameSite=Strict; Path=/; Max-Age={_REMEMBERED_SECONDS}"

    def _knows(self, headers: Message, *, from_page: bool) -> bool:
        scheme, _, bearer = headers.get("Authorization", "").partition(" ")
        if scheme.lower() == "bearer" and hmac.compare_digest(_bytes(bearer.strip()), self.token):
            return True
        # Other servers on this host get the cookie too: alone, without a page that may ask, it is worth nothing.
        return from_page and hmac.compare_digest(_bytes(_cookie(headers)), self._pass().encode())

    def _pass(self) -> str:
        """What a browser keeps instead of the token."""
        return hmac.new(self.token, b"a browser that was let in", "sha256").hexdigest()


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches ``host``."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _cookie(headers: Message) -> str:
    try:
        found = SimpleCookie(headers.get("Cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found else ""


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")
