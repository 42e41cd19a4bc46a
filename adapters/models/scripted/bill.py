"""What was asked and how it went, as JSON lines that outlive a killed server."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

from domain.errors import InvalidInput


@dataclass(frozen=True, slots=True, kw_only=True)
class BillLine:
    """One request. ``fault`` is the kind that was played, "" for a true answer; ``at`` is ISO 8601 in UTC."""

    key: str
    role: str
    task: str
    model: str
    fault: str
    input_tokens: int
    output_tokens: int
    at: str


class Bill:
    """Appends to ``path``. Not safe for threads by itself: its user holds a lock."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a+b")
        try:
            self._drop_half_line()
            self._played = Counter(line.key for line in read_bill(path) if line.fault)
        except BaseException:
            self._file.close()
            raise

    def faults_played(self, key: str) -> int:
        """How many faults this logical attempt has seen, over all lives of the server."""
        return self._played[key]

    def append(self, line: BillLine) -> None:
        """On the disk when it returns."""
        self._file.write(json.dumps(asdict(line), ensure_ascii=False).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self._played[line.key] += bool(line.fault)

    def close(self) -> None:
        self._file.close()

    def _drop_half_line(self) -> None:
        """A kill in the middle of a write: that request was not answered."""
        self._file.seek(0)
        self._file.truncate(self._file.read().rfind(b"\n") + 1)


def read_bill(path: Path) -> list[BillLine]:
    """Every whole line, oldest first. Raises InvalidInput for a file that is no bill."""
    *whole, _ = path.read_bytes().split(b"\n") if path.exists() else [b""]
    lines = []
    for number, raw in enumerate(whole, 1):
        try:
            lines.append(BillLine(**json.loads(raw)))
        except (ValueError, TypeError) as error:
            raise InvalidInput(f"{path}: line {number} is no line of a bill") from error
    return lines
