"""Small projects with known outcomes, and the real runners run on them."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from domain.gates.reading import Run, read_run
from domain.gates.telling import telling

PYTEST = """
import pytest
def test_good(): assert True
def test_other(): assert True
def test_bad():
    numbers = [1, 2]
    assert sum(numbers) == 4, "the sum is wrong"
@pytest.mark.skip
def test_skipped(): pass
@pytest.mark.xfail
def test_expected(): assert False
"""
UNITTEST = """
import unittest
class Case(unittest.TestCase):
    def test_good(self): pass
    def test_bad(self): self.assertEqual(1, 2, "not the same")
    def test_broken(self): raise KeyError("gone")
    @unittest.skip("later")
    def test_skipped(self): pass
    @unittest.expectedFailure
    def test_expected(self): self.fail()
"""
NODE = """
const {test, describe, it} = require('node:test'); const assert = require('node:assert');
test('good', () => {}); test('bad one', () => { assert.equal(1, 2); });
test.skip('skipped', () => {}); test.todo('later');
describe('group', () => { it('inner bad', () => { throw new Error('boom'); }); it('inner good', () => {}); });
"""
# What Node 20 prints for NODE, shortened where it repeats itself; so that this is read also where there is no Node.
NODE_TAP = """TAP version 13
# Subtest: good
ok 1 - good
  ---
  duration_ms: 1.312531
  ...
# Subtest: bad one
not ok 2 - bad one
  ---
  duration_ms: 2.830081
  location: '/work/a.test.js:3:27'
  failureType: 'testCodeFailure'
  error: '1 == 2'
  stack: |-
    TestContext.<anonymous> (/work/a.test.js:3:60)
  ...
# Subtest: skipped
ok 3 - skipped # SKIP
  ---
  duration_ms: 0.149014
  ...
# Subtest: later
ok 4 - later # TODO
  ---
  duration_ms: 0.094041
  ...
# Subtest: group
    # Subtest: inner bad
    not ok 1 - inner bad
      ---
      duration_ms: 0.211768
      error: 'boom'
      ...
    # Subtest: inner good
    ok 2 - inner good
      ---
      duration_ms: 2.982481
      ...
    1..2
not ok 5 - group
  ---
  duration_ms: 3.490084
  type: 'suite'
  error: '1 subtest failed'
  ...
1..5
# tests 6
# suites 1
# pass 2
# fail 2
# cancelled 0
# skipped 1
# todo 1
# duration_ms 424.720088
"""
NODE_SPEC = """✔ good (1.96331ms)
✖ bad one (1.452432ms)
  AssertionError [ERR_ASSERTION]: 1 == 2
﹣ skipped (0.261182ms) # SKIP
✔ later (0.163166ms) # TODO
▶ group
  ✖ inner bad (0.345859ms)
    Error: boom
  ✔ inner good (7.829843ms)
✖ group (9.495245ms)
ℹ tests 6
ℹ suites 1
ℹ pass 2
ℹ fail 2
ℹ cancelled 0
ℹ skipped 1
ℹ todo 1
ℹ duration_ms 321.637447

✖ failing tests:

test at a.test.js:3:27
✖ bad one (1.452432ms)
  AssertionError [ERR_ASSERTION]: 1 == 2

test at a.test.js:5:31
✖ inner bad (0.345859ms)
  Error: boom
"""
# What mocha 11, tape 5 and Go 1.26 print; they are not among the tools that the suite may count on.
MOCHA = """

  ✔ top level
  Calc
  a line that the test prints
    ✔ adds
    1) fails
    - pending
    ✔ slow (90ms)
    deep
      2) "before each" hook for "a"

  Other
    ✔ adds
    ✔ adds


  5 passing (95ms)
  1 pending
  2 failing

  1) Calc
       fails:

      AssertionError [ERR_ASSERTION]: 1 == 2

  2) Calc
       deep
         "before each" hook for "a":
     Error: hook
"""
TAPE = """TAP version 13
# timing test
ok 1 should be strictly equal
not ok 2 should be strictly equal
  ---
    operator: equal
    expected: 2
    actual:   1
    stack: |-
      Error: should be strictly equal
ok 3 - a line of the failure, no result
  ...
ok 3 fine # not a directive
# SKIP second
# third
ok 4 nah # SKIP
ok 5 should be truthy
not ok 6 should be truthy # TODO

1..6
# tests 6
# pass  5
# fail  1
"""
GO = """# example.com/m/broke
broke/a_test.go:2:9: expected ')', found '{'
FAIL\texample.com/m/broke [setup failed]
=== RUN   TestA
no newline--- PASS: TestA (0.00s)
=== RUN   TestB
=== RUN   TestB/sub_1
    a_test.go:4: here it is wrong
=== RUN   TestB/ok
--- FAIL: TestB (0.00s)
    --- FAIL: TestB/sub_1 (0.00s)
    --- PASS: TestB/ok (0.00s)
=== RUN   TestSkip
    a_test.go:5: why
--- SKIP: TestSkip (0.00s)
FAIL
FAIL\texample.com/m\t0.002s
=== RUN   TestOk
--- PASS: TestOk (0.00s)
=== RUN   TestDies
panic: x
FAIL\texample.com/m/pan\t0.008s
?   \texample.com/m/sub\t[no test files]
FAIL
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    text: str
    exit_code: int


def run(folder: Path, *argv: str) -> Output:
    """Stdout and stderr, interleaved, as the sandbox logs them."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8"}
    done = subprocess.run(
        argv, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=60
    )
    return Output(text=done.stdout.decode(), exit_code=done.returncode)


def run_pytest(folder: Path, *options: str) -> Output:
    (folder / "pytest.ini").write_text("[pytest]\n")
    return run(folder, sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options)


def run_unittest(folder: Path, *options: str) -> Output:
    return run(folder, sys.executable, "-m", "unittest", *options)


def told(folder: Path, *argv: str) -> Run:
    """Run a test command as the gates do when tests are compared one by one."""
    words, environment = telling(argv)
    named = [f"{name}={value}" for name, value in environment.items()]
    output = run(folder, "env", *named, *words)
    return read_run(argv, output.text, ended="exited", exit_code=output.exit_code)


def told_by_pytest(folder: Path, *options: str) -> Run:
    (folder / "pytest.ini").write_text("[pytest]\n")
    return told(folder, sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options)


def told_by_unittest(folder: Path, *options: str) -> Run:
    return told(folder, sys.executable, "-m", "unittest", *options)
