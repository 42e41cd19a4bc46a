"""Sizes for people."""

from __future__ import annotations

_UNITS = ("B", "kB", "MB", "GB", "TB")


def readable(size: int) -> str:
    """Three digits and a unit of a thousand: 999 B, 1.23 kB, 45.6 MB."""
    value, unit = float(size), 0
    while round(value, 2) >= 1000 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    if unit == 0:
        return f"{size} B"
    return f"{value:.3g} {_UNITS[unit]}" if value < 999.5 else f"{value:.0f} {_UNITS[unit]}"
