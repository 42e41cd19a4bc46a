"""Search attributes: what Temporal's own lists of builds and releases can be asked for. No secret, and no path."""

from __future__ import annotations

from collections.abc import Mapping

KEYWORD, KEYWORDS, NUMBER, TRUTH = "Keyword", "KeywordList", "Double", "Bool"

ATTRIBUTES: Mapping[str, str] = {
    "BuildPhase": KEYWORD,
    "BuildStatus": KEYWORD,
    "ProjectId": KEYWORD,
    "Repo": KEYWORD,
    "SpecHash": KEYWORD,
    "CostUsd": NUMBER,
    "NeedsApproval": TRUTH,
    "Tags": KEYWORDS,
}
"""Each with its type, as Temporal names it. ``CostUsd`` is as of the last phase that ended."""

MOST_TAGS = 20
LONGEST_TAG = 64
