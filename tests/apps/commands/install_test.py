#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The tree that `cmake --install` makes works after it is moved, and without the sources and the build tree.

usage: install_test.py path/to/rnicsim
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402

SOURCES = pathlib.Path(__file__).resolve().parents[3]
# Hides the sources from one command: an empty file system is mounted on their folder, in a mount namespace. Used where
# the machine permits namespaces.
HIDDEN = ["unshare", "--map-root-user", "--mount", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', str(SOURCES)]


def build_tree():
    return pathlib.Path(apps.rnicsim()).resolve().parents[1]


def call(*command, **environment):
    command = [str(word) for word in command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=apps.RUN_SECONDS,
                          env={**os.environ, **environment}, cwd="/", check=False)
    return apps.Result(command, apps.shell_status(done.returncode), done.stdout, done.stderr)


class Installed(apps.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="rnicsim-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        first = cls.folder / "first"
        done = call("cmake", "--install", build_tree(), "--prefix", first, "--strip")
        assert done.status == 0, done
        cls.prefix = first.rename(cls.folder / "another place")
        cls.program = cls.prefix / "bin" / "rnicsim"
        cls.hidden = HIDDEN if call(*HIDDEN, "true").status == 0 else []

    def installed(self, *arguments, **environment):
        return call(*self.hidden, self.program, *arguments, **environment)

    def test_stock_program(self):
        result = self.installed("run", "--", "ib_write_bw", "-n", "100", "--report_gbits")
        self.assert_succeeded(result)
        self.assertTrue(apps.perftest_rows(result.lines("h1")), result)

    def test_workload(self):
        result = self.installed("bench", "write-4k")
        self.assertEqual(result.status, 0, result)
        self.assertIn("Gb/s", result.out)

    def test_describes_what_the_build_tree_describes(self):
        result = self.installed("describe")
        self.assertEqual(result.status, 0, result)
        self.assertEqual(result.out, call(apps.rnicsim(), "describe").out)

    def test_nothing_names_the_sources_or_the_build_tree(self):
        for path in self.prefix.rglob("*"):
            if path.is_file():
                with self.subTest(path.name):
                    content = path.read_bytes()
                    self.assertNotIn(os.fsencode(SOURCES) + b"/", content)
                    self.assertNotIn(os.fsencode(build_tree()) + b"/", content)

    def test_libraries_of_the_system_are_not_shadowed(self):
        verbs = sorted(str(path.relative_to(self.prefix)) for path in self.prefix.rglob("libibverbs.so*"))
        self.assertEqual(verbs, ["lib/rnicsim/libibverbs.so.1"])

    def test_data_of_the_environment_come_first(self):
        data = self.folder / "data"
        shutil.copytree(self.prefix / "share" / "rnicsim", data)
        (data / "workloads" / "mine.toml").write_text((data / "workloads" / "write-4k.toml").read_text())
        result = self.installed("bench", "mine", RNICSIM_DATA=str(data))
        self.assertEqual(result.status, 0, result)
        result = self.installed("bench", "mine")
        self.assertEqual(result.status, 2, result)

    def test_program_copied_alone_says_what_is_missing(self):
        alone = self.folder / "alone"
        shutil.copy(self.program, alone)
        for environment, missing in (({}, "share/rnicsim/nics"),
                                     ({"RNICSIM_DATA": str(self.prefix / "share" / "rnicsim")},
                                      "lib/rnicsim/librnicsim_os.so"),
                                     ({"RNICSIM_DATA": "/nowhere"}, "/nowhere/nics: there is no NIC profile")):
            with self.subTest(missing):
                result = call(alone, "run", "--", "ib_write_bw", **environment)
                self.assertEqual((result.status, result.err.count("\n")), (2, 1), result)
                self.assertIn(missing, result.err)


if __name__ == "__main__":
    apps.main()
