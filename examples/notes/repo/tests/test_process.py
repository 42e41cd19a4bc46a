"""The service as a process: start, configuration, logs, stop."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

from notes.config import ConfigError, read_config

ROOT = Path(__file__).resolve().parent.parent


class ProcessTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def start(self, **environment: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "notes"],
            cwd=ROOT,
            env={**os.environ, "PORT": "0", "DATA_DIR": str(self.folder / "data"), **environment},
            stderr=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(self.end, process)
        return process

    def end(self, process: subprocess.Popen[str]) -> None:
        process.kill()
        process.communicate()

    def line(self, process: subprocess.Popen[str]) -> Any:
        assert process.stderr is not None
        return json.loads(process.stderr.readline())

    def test_it_serves_until_sigterm_and_ends_cleanly(self) -> None:
        process = self.start(RELEASE="r7")
        started = self.line(process)
        self.assertEqual(started["event"], "listening")
        connection = http.client.HTTPConnection("127.0.0.1", started["port"], timeout=5)
        self.addCleanup(connection.close)
        connection.request("GET", "/version")
        self.assertEqual(json.load(connection.getresponse())["release"], "r7")
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=5)
        events = [json.loads(line)["event"] for line in errors.splitlines()]
        self.assertEqual(process.returncode, 0)
        # The answer is sent before it is logged, so the signal may come in between.
        self.assertEqual(sorted(events), ["request", "stopped", "stopping"])
        self.assertEqual(events[-1], "stopped")
        self.assertTrue((self.folder / "data" / "notes.db").exists())

    def test_a_data_folder_that_cannot_be_made_is_said(self) -> None:
        (self.folder / "data").write_text("a file")
        process = self.start()
        self.assertEqual(self.line(process)["event"], "cannot start")
        self.assertEqual(process.wait(5), 1)

    def test_a_wrong_setting_is_told_in_one_line(self) -> None:
        process = self.start(PORT="http")
        _, errors = process.communicate(timeout=5)
        self.assertEqual(process.returncode, 2)
        self.assertEqual(errors, "notes: PORT is 'http'; it must be a number from 0 to 65535\n")


class ConfigTest(unittest.TestCase):
    def test_an_empty_environment_is_enough(self) -> None:
        config = read_config({})
        self.assertEqual((config.host, config.port, config.database), ("127.0.0.1", 8080, Path("data/notes.db")))

    def test_values_that_cannot_work_are_refused(self) -> None:
        for variable, value in (("PORT", "65536"), ("PORT", "-1"), ("PORT", ""), ("LOG_LEVEL", "LOUD")):
            with self.subTest(variable=variable, value=value), self.assertRaises(ConfigError) as caught:
                read_config({variable: value})
            self.assertIn(variable, str(caught.exception))
