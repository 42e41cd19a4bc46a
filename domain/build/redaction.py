"""Masks what looks like a secret before text leaves for a model: a seat belt, the renderer itself holds no secret."""

from __future__ import annotations

import re

MASK = "[redacted]"

# The published shapes of tokens that turn up in repositories and logs; each starts with its own fixed prefix.
_TOKENS = re.compile(
    r"\b(?:"
    r"(?:AKIA|ASIA)[A-Z0-9]{16}"
    r"|gh[pousr]_[A-Za-z0-9]{36,255}"
    r"|github_pat_[A-Za-z0-9_]{22,255}"
    r"|glpat-[A-Za-z0-9_-]{20,64}"
    r"|xox[abprs]-[A-Za-z0-9-]{10,255}"
    r"|sk-(?:ant-|proj-)?[A-Za-z0-9_-]{32,255}"
    r"|AIza[A-Za-z0-9_-]{35}"
    r"|pypi-[A-Za-z0-9_-]{64,512}"
    r"|npm_[A-Za-z0-9]{36}"
    r")(?![A-Za-z0-9])"
)
_KEY = "PRIVATE KEY-----"
_KEY_BLOCK = re.compile(rf"(-----BEGIN [A-Z ]{{0,40}}{_KEY})[^-]{{1,20000}}(-----END [A-Z ]{{0,40}}{_KEY})")
_URL_PASSWORD = re.compile(r"(\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@]{0,100}:)[^\s/@]{1,200}(@)")


def redact(text: str) -> str:
    """``text`` with tokens, private keys and passwords in URLs masked; the rest is untouched."""
    text = _KEY_BLOCK.sub(rf"\1{MASK}\2", text)
    text = _URL_PASSWORD.sub(rf"\1{MASK}\2", text)
    return _TOKENS.sub(MASK, text)
