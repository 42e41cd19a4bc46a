"""From method and path to the function that answers."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from notes.errors import MethodNotAllowed, NotFound
from notes.web.messages import Request, Response

Handler = Callable[[Request], Response]


class Router:
    """Routes like ``/notes/{id}``; a variable part is anything but a slash."""

    def __init__(self) -> None:
        self._routes: list[tuple[re.Pattern[str], dict[str, Handler]]] = []

    def add(self, method: str, template: str, handler: Handler) -> None:
        pattern = re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", template))
        for known, handlers in self._routes:
            if known.pattern == pattern.pattern:
                handlers[method] = handler
                return
        self._routes.append((pattern, {method: handler}))

    def dispatch(self, request: Request) -> Response:
        """Raises NotFound and MethodNotAllowed, and whatever the handler raises. HEAD is answered by GET."""
        for pattern, handlers in self._routes:
            match = pattern.fullmatch(request.path)
            if match is None:
                continue
            handler = handlers.get("GET" if request.method == "HEAD" else request.method)
            if handler is None:
                raise _not_allowed(request, handlers)
            return handler(replace(request, parameters=match.groupdict()))
        raise NotFound(f"there is nothing at {request.path}")


def _not_allowed(request: Request, handlers: dict[str, Handler]) -> MethodNotAllowed:
    allowed = sorted({*handlers, *(["HEAD"] if "GET" in handlers else [])})
    return MethodNotAllowed(
        f"{request.method} is not possible on {request.path}", headers={"Allow": ", ".join(allowed)}
    )
