"""A review becomes findings that a task can act on; the diff that it is about is read as git prints it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.review.diff import MOST_NAMED, diff_parts, fit_change, fit_diff, is_cut
from domain.review.findings import Finding, Review, Severity
from domain.review.weighing import MOST_FINDINGS, SHORT, Scope, one_line, report_of, sentence_of, weigh

SCOPE = Scope(
    tasks=("store", "api"),
    declared={"store": ("notes/store.py", "shared.py"), "api": ("notes/api.py", "shared.py", "docs/")},
    touched=frozenset({"notes/store.py", "notes/api.py", "shared.py", "docs/a/b.md", "undeclared.py"}),
)


def finding(
    task: str = "api",
    file: str = "notes/api.py",
    severity: Severity = "high",
    *,
    line: int = 3,
    message: str = "It loses notes.",
) -> Finding:
    return Finding(task=task, file=file, line=line, severity=severity, message=message)


def weighed(*findings: Finding, scope: Scope = SCOPE) -> tuple[Finding, ...]:
    return weigh(Review(summary="s", findings=findings), scope).findings


class TestTheTaskOfAFinding:
    def test_is_the_one_that_it_names(self) -> None:
        assert [f.task for f in weighed(finding("store", "notes/api.py"))] == ["store"]

    @pytest.mark.parametrize("named", ["", "nobody", "API", "store\n"])
    def test_is_else_the_one_that_declares_its_file(self, named: str) -> None:
        assert [f.task for f in weighed(finding(named, "notes/store.py"))] == ["store"]

    def test_is_the_later_one_when_two_declare_it(self) -> None:
        assert [f.task for f in weighed(finding("", "shared.py"))] == ["api"]

    def test_is_the_one_that_declares_a_folder_above(self) -> None:
        scope = Scope(tasks=("docs", "api"), declared={"docs": ("docs/",)}, touched=frozenset({"docs/a/b.md"}))
        assert [f.task for f in weighed(finding("", "docs/a/b.md"), scope=scope)] == ["docs"]
        assert [f.task for f in weighed(finding("", "docs-old/a.md"), scope=scope)] == ["api"]

    def test_is_the_last_one_when_nobody_declares_the_file(self) -> None:
        assert [f.task for f in weighed(finding("", "undeclared.py"))] == ["api"]

    def test_is_never_one_that_is_not_a_part_of_the_change(self) -> None:
        scope = Scope(tasks=("store",), declared=SCOPE.declared, touched=SCOPE.touched)
        assert [f.task for f in weighed(finding("api", "notes/api.py"), scope=scope)] == ["store"]


class TestTheGravityOfAFinding:
    def test_about_a_file_outside_the_diff_is_low_and_says_what_the_reviewer_said(self) -> None:
        (found,) = weighed(finding(file="other.py"))
        assert found.severity == "low"
        assert found.message == "It loses notes. (the change does not touch this file; the reviewer said high)"

    def test_is_kept_where_the_diff_is_not_known_in_full(self) -> None:
        scope = Scope(tasks=SCOPE.tasks, declared=SCOPE.declared, touched=None)
        assert weighed(finding(file="other.py"), scope=scope)[0].severity == "high"

    def test_without_a_word_is_low(self) -> None:
        (found,) = weighed(finding(message=" \x1b\n "))
        assert (found.severity, found.message) == ("low", "(it says nothing; the reviewer said high)")

    def test_of_a_low_one_stays_low(self) -> None:
        assert weighed(finding(file="other.py", severity="low"))[0].message == "It loses notes."

    @pytest.mark.parametrize("spelled", ["./notes/api.py", "a/notes/api.py", "b/notes/api.py", " /notes/api.py"])
    def test_does_not_hang_on_how_the_path_is_spelled(self, spelled: str) -> None:
        (found,) = weighed(finding(file=spelled))
        assert (found.file, found.severity) == ("notes/api.py", "high")

    def test_a_file_that_really_is_in_a_folder_called_b_keeps_its_name(self) -> None:
        scope = Scope(tasks=("api",), touched=frozenset({"b/x.py", "x.py"}))
        assert weighed(finding(file="b/x.py"), scope=scope)[0].file == "b/x.py"


class TestWhatATaskIsTold:
    def test_the_sentence_names_the_first_place_and_counts_the_others(self) -> None:
        assert sentence_of((finding(),)) == "notes/api.py, line 3: It loses notes."
        two = (finding(line=0, message="Another."), finding())
        assert sentence_of(two) == "notes/api.py: Another. (and 1 more)"

    def test_the_report_has_what_must_be_mended_and_what_was_noticed(self) -> None:
        report = report_of(weighed(finding(severity="medium", message="Rare."), finding(line=0)))
        assert report == (
            "These defects have to be mended:\n- notes/api.py: It loses notes.\n"
            "Noticed too:\n- (medium) notes/api.py, line 3: Rare.\n"
        )

    def test_without_other_findings_nothing_else_was_noticed(self) -> None:
        assert "Noticed" not in report_of(weighed(finding()))

    def test_the_tasks_with_high_findings_come_once_each(self) -> None:
        review = Review(summary="", findings=(finding("api"), finding("store", message="x"), finding("api", line=9)))
        assert weigh(review, SCOPE).tasks_with_high() == ("api", "store")


texts = st.text(max_size=40) | st.sampled_from(["", "store", "api", "shared.py", "b/shared.py", "\x1b[31m", "x" * 500])
findings = st.builds(
    Finding,
    task=texts,
    file=texts,
    line=st.integers(min_value=-5, max_value=10**9),
    severity=st.sampled_from(["high", "medium", "low"]),
    message=texts,
)
scopes = st.sampled_from([SCOPE, Scope(tasks=("only",)), Scope(tasks=("a", "b"), touched=frozenset())])


@given(st.lists(findings, max_size=MOST_FINDINGS + 20), texts, scopes)
def test_whatever_a_reviewer_says_is_bounded_printable_and_belongs_to_a_task(
    said: list[Finding], summary: str, scope: Scope
) -> None:
    result = weigh(Review(summary=summary, findings=tuple(said)), scope)
    assert len(result.findings) <= MOST_FINDINGS
    assert len(result.findings) + result.left_out <= len(said)
    assert len(set(result.findings)) == len(result.findings)
    ranks = [["high", "medium", "low"].index(found.severity) for found in result.findings]
    assert ranks == sorted(ranks)
    for found in result.findings:
        assert found.task in scope.tasks
        assert found.line >= 0
        assert found.message.isprintable()
        assert found.message
        assert len(found.message) <= SHORT + 80
        assert found.file.isprintable()
        assert len(found.file) <= SHORT
    assert sum(result.count(severity) for severity in ("high", "medium", "low")) == len(result.findings)
    for task in result.tasks_with_high():
        assert len(sentence_of(result.of(task))) <= SHORT
        assert report_of(result.of(task)).replace("\n", "").isprintable()


@given(st.lists(findings, max_size=20), scopes)
def test_nothing_is_made_graver_and_nobody_is_sent_back_for_a_file_outside_the_diff(
    said: list[Finding], scope: Scope
) -> None:
    result = weigh(Review(summary="", findings=tuple(said)), scope)
    assert result.count("high") <= sum(f.severity == "high" for f in said)
    if scope.touched is not None:
        assert {f.file for f in result.findings if f.severity != "low"} <= scope.touched


def test_the_gravest_survive_when_there_are_too_many() -> None:
    many = tuple(finding(severity="low", message=str(number)) for number in range(MOST_FINDINGS))
    result = weigh(Review(summary="", findings=(*many, finding(message="grave"))), SCOPE)
    assert (result.findings[0].message, result.left_out) == ("grave", 1)


@given(st.text(), st.integers(min_value=1, max_value=50))
def test_a_line_is_one_printable_line_within_its_limit(text: str, limit: int) -> None:
    line = one_line(text, limit=limit)
    assert line.isprintable()
    assert len(line) <= limit
    assert line == line.strip()


HOSTILE = ["plain.py", "with space.py", "tab\there.py", 'quo"te.py', "back\\slash.py", "new\nline.py", "späß.py",
           "a b/a b", "-- a/x", "deep/er/file", "b/b/b", "\x1bescape"]  # fmt: skip


def git(folder: Path, *arguments: str) -> str:
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    argv = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
    return subprocess.run(argv, cwd=folder, env=environment, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "-b", "main")
    for name in HOSTILE:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"one\n-- {name[0]}\n++ x\ndiff --git a/no b/no\n@@ x\n")
    (tmp_path / "binary").write_bytes(b"\0\1")
    (tmp_path / "old name.py").write_text("".join(f"{n}\n" for n in range(50)))
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "start")
    return tmp_path


class TestAGitDiff:
    @pytest.mark.parametrize("quoting", ["true", "false"])
    def test_of_any_names_is_read_back_to_its_paths(self, repository: Path, quoting: str) -> None:
        for name in HOSTILE:
            (repository / name).write_text("two\n-- a/forged\n++ b/forged\nrename to forged\n")
        diff = git(repository, "-c", f"core.quotePath={quoting}", "diff")
        assert sorted(part.path for part in diff_parts(diff)) == sorted(HOSTILE)

    def test_names_new_deleted_moved_binary_and_touched_files(self, repository: Path) -> None:
        (repository / "fresh.py").write_text("new\n")
        (repository / "empty").write_text("")
        (repository / "binary").write_bytes(b"\0\2")
        (repository / "späß.py").chmod(0o755)
        (repository / "plain.py").unlink()
        (repository / "old name.py").rename(repository / "new name.py")
        git(repository, "add", "-A")
        parts = diff_parts(git(repository, "diff", "--cached", "--find-renames"))
        paths = {part.path for part in parts}
        assert paths == {"fresh.py", "empty", "binary", "späß.py", "plain.py", "new name.py"}

    def test_in_parts_is_the_whole_again(self, repository: Path) -> None:
        for name in HOSTILE:
            (repository / name).write_text("\x0b\x0c\u2028\x85diff --git\r\n")
        diff = git(repository, "diff")
        shown = fit_diff(diff_parts(diff), limit=len(diff.encode()))
        assert (shown.text, shown.left_out) == (diff, ())

    @given(st.integers(min_value=-5, max_value=4_000))
    def test_never_exceeds_its_limit_and_names_what_is_left_out(self, limit: int) -> None:
        diff = "".join(f"diff --git a/f{n} b/f{n}\n@@ -1 +1 @@\n+{'é' * n * 20}\n" for n in range(20))
        shown = fit_diff(diff_parts(diff), limit=limit)
        assert len(shown.text.encode()) <= max(limit, 0)
        kept = {part.path for part in diff_parts(shown.text)}
        assert kept | set(shown.left_out) == {f"f{n}" for n in range(20)}
        assert not kept & set(shown.left_out)

    def test_of_just_the_limit_fits_and_one_byte_more_does_not(self) -> None:
        part = "diff --git a/f b/f\n@@ -1 +1 @@\n+é\n"
        assert fit_diff(diff_parts(part), limit=len(part.encode())).text == part
        assert fit_diff(diff_parts(part), limit=len(part.encode()) - 1).left_out == ("f",)

    @given(st.text(max_size=300), st.integers(min_value=0, max_value=400), st.booleans())
    def test_of_an_earlier_change_is_whole_or_says_what_is_missing(self, text: str, limit: int, diff: bool) -> None:
        change = f"diff --git a/f b/f\n@@ -1 +1 @@\n+{text}" if diff else text
        shown = fit_change(change, limit=limit)
        if shown != change:
            assert shown.endswith("]\n")
            assert len(change.encode()) > limit
            assert len(shown.encode()) <= limit + 60

    def test_of_an_earlier_change_names_some_of_many_files(self) -> None:
        change = "".join(f"diff --git a/f{n} b/f{n}\n@@ -1 +1 @@\n+x\n" for n in range(MOST_NAMED + 5))
        assert fit_change(change, limit=0).endswith("f18, f19 and 5 more]\n")

    def test_that_was_cut_says_so_in_its_last_line_only(self) -> None:
        part = "diff --git a/f b/f\n@@ -1 +1 @@\n+x\n"
        assert is_cut(f"{part}[the diff is cut here: it is over 2000000 bytes]\n")
        assert not is_cut(f"{part}+[the diff is cut here: it is over 2000000 bytes]\n")
        assert not is_cut("")

    @given(st.text())
    def test_that_is_none_has_no_parts_or_reads_without_an_error(self, text: str) -> None:
        assert all(part.text.startswith("diff --git ") for part in diff_parts(f"{text}\ndiff --git {text}"))
