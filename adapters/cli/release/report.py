"""The report of a release: one page of HTML that needs nothing else. No scripts, nothing from afar, text escaped."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any

from adapters.cli.release.facts import integration_lines, terms_of
from adapters.cli.release.showing import moments_in, record_of, watch_of
from adapters.cli.release.svg import ERRORS, SLOWNESS, picture
from domain.ports.releases import Release
from domain.trace.delivery.series import Point, number_in
from domain.trace.delivery.told import texts

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1c1c1c; }
h1 { font-size: 1.4rem } h2 { font-size: 1.1rem; margin-top: 2rem }
table { border-collapse: collapse } td, th { padding: .2rem .8rem .2rem 0; text-align: left; vertical-align: top }
td.number { text-align: right; font-variant-numeric: tabular-nums } code { overflow-wrap: anywhere }
.status { padding: .1rem .5rem; border-radius: .3rem; background: #ddd }
.promoted { background: #cfe8cf } .rolled-back, .unclear { background: #f3cccc } .undelivered { background: #f5e6b8 }
svg { width: 100%; max-width: 720px; display: block; margin: 1rem 0; font-size: 11px }
svg .grid { stroke: #ddd } svg text { fill: #333 } svg .title { font-size: 13px; font-weight: 600 }
svg .end { text-anchor: end } svg .middle { text-anchor: middle }
svg polyline { fill: none; stroke-width: 2 } svg polyline.candidate { stroke: #c03030 }
svg circle.candidate { fill: #c03030 } svg polyline.baseline { stroke: #3060a0; stroke-dasharray: 5 4 }
svg circle.baseline { fill: #3060a0 } svg .mark { stroke-width: 1.5; stroke: #666 } svg .back { stroke: #c03030 }
svg .mark.promoted { stroke: #2a7a2a } .key { font-size: .85rem } .new { color: #c03030 } .old { color: #3060a0 }
@media (prefers-color-scheme: dark) {
  body { background: #181818; color: #ddd } svg text { fill: #ccc } svg .grid { stroke: #333 }
  .status { color: #1c1c1c }
}
"""
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def written(folder: Path, release: Release) -> Path:
    """Write the page into ``folder``, whole or not at all, and return where it is."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{release.project}-release-{release.number}.html"
    half = folder / f".{path.name}.{os.getpid()}"
    try:
        half.write_text(page(release), encoding="utf-8")
        half.replace(path)
    finally:
        half.unlink(missing_ok=True)
    return path


def page(release: Release) -> str:
    """The whole page."""
    title = f"{release.project}: release {release.number}"
    body = "\n".join(_sections(release))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{_safe(title)}</title><style>{STYLE}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def _sections(release: Release) -> Iterator[str]:
    record = record_of(release)
    css = release.status.replace(" ", "-") if release.status.replace(" ", "").isalpha() else ""
    yield f"<h1>{_safe(release.project)}: release {release.number}"
    yield f'<span class="status {css}">{_safe(release.status)}</span></h1>'
    yield f"<p>{_safe(release.sentence)}</p>"
    yield _table((), _facts(release))
    yield from _watch(release, record)
    yield from _risk(record["risk"])
    if record["approved"]:
        yield "<h2>Approvals</h2>"
        yield _table(("what", "digest", "by", "how", "when"), map(_approval, record["approved"]))
    if record["integration"]:
        yield "<h2>Integration tests</h2>"
        yield from (f"<p>{_safe(line)}</p>" for line in integration_lines(record["integration"]))
    if record["steps"]:
        steps = [[each.get(name, "") for name in ("name", "kind", "green", "sentence")] for each in record["steps"]]
        yield "<h2>Steps</h2>"
        yield _table(("step", "kind", "done", ""), steps)
    yield from _ending(record)


def _facts(release: Release) -> Iterator[Sequence[object]]:
    yield "kind", release.kind
    yield "commit", release.commit
    yield "artefact", release.artifact
    yield "configuration", release.config
    yield "before it", f"release {release.previous}" if release.previous else "nothing"
    yield "made by", release.build or "a commit that was named"
    yield "delivered by", release.saga
    yield "began", _time(release.started)
    yield "ended", _time(release.ended)


def _watch(release: Release, record: Mapping[str, Any]) -> Iterator[str]:
    kind, reason, points = watch_of(record)
    if not (kind or points):
        return
    yield "<h2>Watch</h2>"
    yield f"<p>{_safe(kind or 'goes on')}{_safe(f': {reason}') if reason else ''}</p>"
    moments = moments_in(release)
    if points:
        yield '<p class="key"><span class="new">● candidate</span> &nbsp; <span class="old">● baseline</span></p>'
    yield from (picture(points, measure, moments) for measure in (ERRORS, SLOWNESS))
    if points:
        yield _table(("window", "verdict", "errors", "before", "p95", "before"), map(_window, points))


def _window(point: Point) -> Sequence[object]:
    arms = (point.candidate, point.baseline)
    errors = [f"{arm.failed} of {arm.asked}" if arm else "–" for arm in arms]
    slow = [f"{arm.p95:.0f} ms" if arm and arm.asked else "–" for arm in arms]
    return (point.number, point.verdict, *errors, *slow)


def _risk(scored: Mapping[str, Any]) -> Iterator[str]:
    if "risk" not in scored:
        return
    yield "<h2>Risk</h2>"
    figures = f"risk {number_in(scored['risk']):.2f}, confidence {number_in(scored.get('confidence')):.2f}"
    yield f"<p>{_safe(figures)}: {_safe(scored.get('action', ''))} {_safe(scored.get('why', ''))}</p>"
    rows = [
        (
            term.get("name", ""),
            *(f"{number_in(term.get(name)):.2f}" for name in ("weight", "amount", "share")),
            term.get("why", ""),
        )
        for term in terms_of(scored)
    ]
    yield _table(("term", "weight", "amount", "share", "why"), rows)


def _approval(each: Mapping[str, Any]) -> Sequence[object]:
    at = int(number_in(each.get("at")))
    return each.get("what", ""), str(each.get("digest", ""))[:12], each.get("by", ""), each.get("how", ""), _time(at)


def _ending(record: Mapping[str, Any]) -> Iterator[str]:
    proof = record["proof"]
    if proof:
        seen = "seen from outside" if proof.get("ok") else "not seen from outside"
        yield f"<h2>Proof</h2><p>production answers with release {_safe(proof.get('release', '?'))}, {seen}</p>"
    if record["timings"]:
        yield "<h2>Timings</h2>"
        yield _table((), [(name, f"{seconds:.1f} s") for name, seconds in record["timings"].items()])
    residues = texts(record["residues"])
    if residues:
        yield "<h2>Left behind</h2>"
        yield "<ul>" + "".join(f"<li>{_safe(each)}</li>" for each in residues) + "</ul>"


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    head = f"<tr>{''.join(f'<th>{_safe(name)}</th>' for name in heads)}</tr>" if heads else ""
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>\n" for row in rows)
    return f"<table>{head}\n{body}</table>"


def _cell(value: object) -> str:
    css = ' class="number"' if isinstance(value, int) and not isinstance(value, bool) else ""
    text = {True: "yes", False: "no"}[value] if isinstance(value, bool) else value
    return f"<td{css}>{_safe(text)}</td>"


def _safe(text: object) -> str:
    """Text from models, repositories and people, which cannot become markup or turn the direction of the page."""
    return escape("".join(c if c.isprintable() else " " for c in str(text)))


def _time(millis: int) -> str:
    if not 0 < millis < 10**14:
        return "–"
    return datetime.fromtimestamp(millis / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
