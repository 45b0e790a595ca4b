#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
All spellings of a path name the same file of a simulated host, and none names a file of the machine.

usage: host_paths_test.py path/to/rnicsim
"""
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402

FOLDERS = ("/tmp", "/var/tmp", "/dev/shm")
CALLS = ("fopen", "rename", "link", "mkdir", "realpath", "canonicalize", "stands", "climbs", "glob", "truncate", "ftok",
         "old stat", "attributes", "rmdir", "socket", "symlink", "kernel's", "made")


class HostPaths(apps.LeavesNothing):
    def test_every_spelling(self):
        before = {folder: set(os.listdir(folder)) for folder in FOLDERS}
        program = apps.built("host_paths", (apps.PROGRAMS / "host_paths.c").read_text(), "-O2", "-D_FORTIFY_SOURCE=2")
        result = self.run_on(("h0", program))
        spellings = 20 * 20
        self.assertEqual(result.lines("h0"), [
            *(f"{folder}: {spellings} of {spellings}" for folder in FOLDERS), *(f"{call} right" for call in CALLS),
            "spawned", "executed"], result)
        # System call 439 is passed on to the real kernel, which does not know the path.
        self.assertIn("not reproducible: host_paths (pid 1000): system call 439 is not simulated", result.summary())
        for folder in FOLDERS:
            new = {name for name in set(os.listdir(folder)) - before[folder] if "rnicsim" not in name}
            self.assertEqual(new, set(), folder)

    def test_from_the_folder_in_which_a_run_is_started(self):
        """A folder below /tmp in which the run starts is the machine's, and visible to the host; /tmp itself is the
        host's."""
        with apps.folder() as folder:
            (folder / "input").write_text("outside\n")
            script = f"cat input {folder}/input; pwd; echo more > output; cat {folder}/output; ls ../{folder.name}"
            result = self.assert_succeeded(apps.run_on([("h0", f"sh -c '{script}'")], cwd=folder))
            self.assertEqual(result.lines("h0"), ["outside", "outside", str(folder), "more", "input", "output"])
            self.assertEqual((folder / "output").read_text(), "more\n")
            name = f"made-by-{folder.name}"
            script = f"echo here > {name}; cat /tmp/{name} ../tmp/{name}; cat {folder.name}/input"
            result = self.assert_succeeded(apps.run_on([("h0", f"sh -c '{script}'")], cwd=tempfile.gettempdir()))
            self.assertEqual(result.lines("h0"), ["here", "here", "outside"])
            self.assertFalse((pathlib.Path(tempfile.gettempdir()) / name).exists())


if __name__ == "__main__":
    apps.main()
