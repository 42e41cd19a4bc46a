"""Terminal output as plain text."""

from __future__ import annotations

import re

# Bounded and without overlapping repeats: time stays linear in the text, whatever the text is.
_ESCAPE = re.compile(
    r"\x1b\[[0-?]{0,64}[ -/]{0,8}[@-~]?"  # colours, cursor
    r"|\x1b[\]PX^_][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?"  # titles, links
    r"|\x1b[ -/]{0,8}[0-~]?"
)
# Controls but tab and newline; characters that are invisible or change the direction; what UTF-8 cannot hold.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)


def plain(text: str) -> str:
    """Without escape codes, controls and invisible characters; of a line that was drawn over, what was seen last."""
    text = _ESCAPE.sub("", text).replace("\r\n", "\n")
    if "\r" in text:
        text = "\n".join(_last_drawn(line) for line in text.split("\n"))
    return _HIDDEN.sub("", text)


def _last_drawn(line: str) -> str:
    return line.rstrip("\r").rpartition("\r")[2]
