#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Follows docs/own-control.md exactly, from an empty folder; and loads libraries that are not plugins.

usage: own_control_test.py RNICSIM SOURCE_TREE
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

RNICSIM, TREE = "", pathlib.Path()


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


class OwnControl(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        # The source tree of the page: headers and the command.
        (self.folder / "tree").mkdir()
        (self.folder / "tree" / "model").symlink_to(TREE / "model")
        (self.folder / "tree" / "rnicsim").symlink_to(RNICSIM)
        self.environment = dict(os.environ, HOME=str(self.folder))

    def run_there(self, command, folder=None):
        return subprocess.run(["bash", "-ec", command], cwd=folder or self.folder, env=self.environment,
                              capture_output=True, text=True, timeout=600, check=False)

    def test_the_page(self):
        page = (TREE / "docs" / "own-control.md").read_text()
        (source,), (workload,) = blocks(page, "cpp"), blocks(page, "toml")
        self.assertLess(source.count("\n"), 70)
        names, build, run = blocks(page, "sh")
        names = names.replace("$HOME/rnicsim", "$HOME/tree")
        work = self.folder / "own-control"
        self.assertEqual(self.run_there(names).returncode, 0)
        (work / "my_control.cpp").write_text(source)
        (work / "incast.toml").write_text(workload)
        script = names.replace("mkdir own-control && ", "") + build + run
        done = self.run_there(script)
        self.assertEqual(done.returncode, 0, done)
        self.assertEqual(done.stderr, "")
        self.assertIn("nic.congestion.mine.step", done.stdout)
        none, mine = (json.loads((work / name).read_text()) for name in ("none.json", "mine.json"))
        queues = [results["switches"]["s0"]["derived"]["port.h0.tx_queue"] for results in (none, mine)]
        self.assertLess(queues[1], queues[0] / 3)
        rates = [sum(flow["goodput_bits_per_s"] for flow in results["flows"]) for results in (none, mine)]
        self.assertGreater(rates[1], 0.9 * rates[0])

    def test_what_is_no_plugin(self):
        (self.folder / "empty.so").write_text("")
        (self.folder / "other.cpp").write_text("int other;\n")
        (self.folder / "old.cpp").write_text('extern "C" const unsigned rnicsim_plugin_interface;\n'
                                             "const unsigned rnicsim_plugin_interface = 0;\n")
        for name in ("other", "old"):
            self.assertEqual(self.run_there(f"g++ -shared -fPIC {name}.cpp -o {name}.so").returncode, 0)
        for name, told in (("none.so", "No such file"), ("empty.so", "empty.so"),
                           ("other.so", "is not a plugin of rnicsim"),
                           ("old.so", "built with the headers of another version")):
            done = self.run_there(f"RNICSIM_PLUGINS={name} tree/rnicsim describe nic")
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done)
            self.assertIn(told, done.stderr)
            self.assertTrue(done.stderr.startswith("rnicsim: RNICSIM_PLUGINS: "), done.stderr)


if __name__ == "__main__":
    RNICSIM, TREE = sys.argv.pop(1), pathlib.Path(sys.argv.pop(1))
    unittest.main()
