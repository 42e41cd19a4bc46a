"""Small projects with known outcomes, and the real runners run on them."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

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
