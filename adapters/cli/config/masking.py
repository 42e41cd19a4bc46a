"""What of a configuration may be shown: everything but secrets. Keys that hold names of variables or
of files are no secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from adapters.cli.config.lines import Keys

MASK = "***"

_NAMES_ONLY = frozenset({"api_key_env", "secrets", "keys"})
_SECRET_KEY = re.compile(
    r"(?i)(?:^|_)(?:pass(?:word|wd|phrase)?|secret|token|credentials?|api_?key|private_?key|key)s?$"
)
_WHOLE_LOGIN = re.compile(r"(?i)\b(https?://)[^/\s@]+@")  # a name alone is often a token there
_PASSWORD = re.compile(r"(?i)\b([a-z][a-z0-9+.-]*://[^/\s:@]*:)[^/\s]*@")
_NAMED = re.compile(r"(?i)([\w-]*(?:password|passwd|secret|token|api[_-]?key)=)[^&\s]+")


def masked(keys: Keys, value: Any) -> Any:
    """``value`` as it may be shown, of the same shape. Empty values stay: that nothing is set is no secret."""
    if isinstance(value, Mapping):
        return {name: masked((*keys, str(name)), below) for name, below in value.items()}
    if keys[-1] in _NAMES_ONLY:
        return value
    if isinstance(value, list | tuple):
        return [masked(keys, each) for each in value]
    if isinstance(value, str) and value:
        return MASK if _SECRET_KEY.search(keys[-1]) else without_passwords(value)
    return value


def without_passwords(text: str) -> str:
    """A text with the passwords of addresses and of ``name=value`` masked."""
    text = _WHOLE_LOGIN.sub(rf"\g<1>{MASK}@", text)
    text = _PASSWORD.sub(rf"\g<1>{MASK}@", text)
    return _NAMED.sub(rf"\g<1>{MASK}", text)
