"""Written files are parsed, not run, by the interpreters that will have to read them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from domain.gates.syntax import syntax_argv, syntax_reason
from tests.domain.runners import run

TEST = ("python3", "-m", "unittest")


def check(folder: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    output = run(folder, *syntax_argv(tuple(files), test=TEST))
    return syntax_reason(output.text, output.exit_code)


def test_files_that_parse_give_no_reason(tmp_path: Path) -> None:
    assert check(tmp_path, {"a.py": "x = 1\n", "b/c.json": "{}", "d.js": "let x = 1;", "README.md": "def (:"}) == ""


def test_a_syntax_error_is_told_with_file_line_and_message(tmp_path: Path) -> None:
    reason = check(tmp_path, {"good.py": "x = 1\n", "pkg/bad.py": "x = 1\ndef broken(:\n"})
    assert reason == "pkg/bad.py:2: SyntaxError: invalid syntax"


def test_what_only_the_compiler_sees_is_told(tmp_path: Path) -> None:
    assert "'return' outside function" in check(tmp_path, {"a.py": "return 1\n"})


def test_broken_json_is_told(tmp_path: Path) -> None:
    assert check(tmp_path, {"a.json": '{"a": 1,}'}).startswith("a.json:1: JSONDecodeError")


def test_nothing_of_the_checkout_is_run_or_written(tmp_path: Path) -> None:
    trap = "open('ran', 'w').close()\n"
    assert check(tmp_path, {"a.py": trap, "ast.py": trap, "json.py": trap, "os.py": trap}) == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.py", "ast.py", "json.py", "os.py"]


def test_names_that_a_shell_could_mistake_are_only_names(tmp_path: Path) -> None:
    names = ["-c.py", "a b.py", "$(touch owned).py", "'; touch owned; '.py", "`touch owned`.js", "{0}.js"]
    assert check(tmp_path, dict.fromkeys(names, "")) == ""
    assert not (tmp_path / "owned").exists()


def test_a_file_that_nests_too_deep_is_told_not_crashed_over(tmp_path: Path) -> None:
    assert check(tmp_path, {"a.py": "(" * 5000 + ")" * 5000}).startswith("a.py:")


def test_a_deleted_file_is_passed_over(tmp_path: Path) -> None:
    output = run(tmp_path, *syntax_argv(("gone.py",), test=TEST))
    assert output.exit_code == 0


def test_files_of_other_kinds_need_no_run() -> None:
    assert syntax_argv(("README.md", "a.rs", "Makefile"), test=TEST) == ()


def test_the_projects_own_interpreter_parses() -> None:
    assert "python3.12 -I" in syntax_argv(("a.py",), test=("python3.12", "-m", "pytest"))[-1]
    assert "python3 -I" in syntax_argv(("a.py",), test=("pytest",))[-1]


def test_an_interpreter_that_is_not_there_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def (")
    output = run(tmp_path, *syntax_argv(("a.py",), test=("python9.9",)))
    assert syntax_reason(output.text, output.exit_code) == ""


def test_node_says_what_it_cannot_read(tmp_path: Path) -> None:
    said = "/work/b.js:1\nlet x = ;\n\nSYNTAX ./b.js: SyntaxError: Unexpected token ';'\n"
    reason = check(tmp_path, {"b.js": "let x = ;\n"}) if shutil.which("node") else syntax_reason(said, 1)
    assert reason == "b.js: SyntaxError: Unexpected token ';'"


@pytest.mark.parametrize("message", ["Unexpected token '<'", "Cannot use import statement outside a module"])
def test_what_a_bundler_reads_is_not_held_against_a_file(message: str) -> None:
    assert syntax_reason(f"SYNTAX ./a.js: SyntaxError: {message}\n", 1) == ""


def test_of_many_broken_files_ten_are_told() -> None:
    log = "".join(f"SYNTAX ./{n}.py:1: SyntaxError: invalid syntax\n" for n in range(14))
    assert syntax_reason(log, 1).splitlines()[10:] == ["and 4 more"]
