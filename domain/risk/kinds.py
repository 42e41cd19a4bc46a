"""Which paths of a change are of a kind that goes wrong more often, or worse: patterns, as data."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

MIGRATIONS, AUTH, DEPENDENCIES, CI = "migrations", "auth", "dependencies", "ci"

_AUTH = "auth|authn|authz|oauth2?|oidc|saml|sso|login|logout|signin|signup|sessions?|passwords?|passwd|credentials?"
_AUTH += "|permissions?|acls?|rbac|roles?|tokens?|jwt|csrf|secrets?|crypto|security|keys?"
_MANIFESTS = (
    r"pyproject\.toml|setup\.(?:py|cfg)|(?:[\w.-]*-)?requirements(?:[-.][\w.-]+)?\.(?:txt|in)|pipfile(?:\.lock)?"
)
_MANIFESTS += r"|(?:poetry|uv|pdm|cargo|composer|flake|gemfile|mix|pubspec)\.lock|package(?:-lock)?\.json|yarn\.lock"
_MANIFESTS += r"|npm-shrinkwrap\.json|pnpm-(?:lock|workspace)\.yaml|bun\.lockb?|go\.(?:mod|sum|work)|cargo\.toml"
_MANIFESTS += r"|gemfile|composer\.json|pom\.xml|(?:build|settings)\.gradle(?:\.kts)?|gradle\.lockfile|mix\.exs"
_MANIFESTS += r"|pubspec\.yaml|environment\.ya?ml|constraints\.txt|package\.resolved|packages\.lock\.json"
_PIPELINES = r"jenkinsfile|\.?gitlab-ci[\w.-]*\.ya?ml|\.travis\.yml|azure-pipelines[\w.-]*\.ya?ml|\.drone\.yml"
_PIPELINES += r"|bitbucket-pipelines\.yml|appveyor\.yml|cloudbuild\.ya?ml|buildspec\.ya?ml|\.pre-commit-config\.yaml"
_PIPELINES += r"|(?:[\w-]+\.)?dockerfile(?:\.[\w-]+)?|(?:docker-)?compose[\w.-]*\.ya?ml|makefile|procfile"

PATTERNS: Mapping[str, re.Pattern[str]] = {
    MIGRATIONS: re.compile(
        r"(?:^|/)(?:migrations?|migrate|alembic|flyway|liquibase)/|\.sql$|(?:^|/)schema\.(?:rb|prisma)$"
    ),
    AUTH: re.compile(rf"(?:^|[/_.-])(?:{_AUTH})(?=[/_.-]|$)"),
    DEPENDENCIES: re.compile(rf"(?:^|/)(?:{_MANIFESTS})$|(?:^|/)requirements/[^/]+$|\.csproj$"),
    CI: re.compile(rf"(?:^|/)\.(?:github|circleci|buildkite|forgejo|gitea|woodpecker|ci)/|(?:^|/)(?:{_PIPELINES})$"),
}
"""Searched in the path in lower case, as git spells it. A path may be of several kinds."""

_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def kinds_of(paths: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """The paths of each kind, in their order; every kind is there. ``userLogin.ts`` is read as ``user_login.ts``."""
    listed = [(path, _WORDS.sub("_", path).lower()) for path in paths]
    return {
        kind: tuple(path for path, words in listed if pattern.search(path.lower()) or pattern.search(words))
        for kind, pattern in PATTERNS.items()
    }
