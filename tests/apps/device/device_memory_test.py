#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Device memory of two processes: the process that imported the memory outlives the process that allocated it, and
continues to serve the memory to another host.

usage: device_memory_test.py path/to/rnicsim     (needs gcc and libibverbs' headers)
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402
from apps import LeavesNothing, built  # noqa: E402

SOURCE = apps.PROGRAMS / "verbs" / "device_memory.c"

SERVED = ["import_dm of none: ENOENT", "finds hello from the owner", "import_mr: ok", "reg_dm_mr: ok",
          "still finds hello from the owner", "the owner's region: ENOENT", "all of the device's: ENOMEM",
          "counts 1300, 123456789abcdef", "is told hello from afar"]
DESTROYED = ["destroy_qp: ok", "destroy_cq: ok", "free_dm: EBUSY", "dereg_mr: ok"]


class TwoProcesses(LeavesNothing):
    def check(self, mode, *importer):
        program = built("device_memory", SOURCE.read_text(), "-libverbs")
        result = self.assert_succeeded(apps.run_on(
            [("h0", f"{program} {mode}"), ("h1", f"{program} peer 10.0.0.1")], "--audit", env=self.environment))
        said = {}
        for line in result.lines("h0"):
            who, _, text = line.partition(": ")
            said.setdefault(who, []).append(text)
        self.assertEqual(said["owner"], ["dereg_mr: ok", "free_dm: EBUSY"], result)
        self.assertEqual(said["importer"], [*SERVED, *importer], result)
        self.assertEqual(said["watcher"], ["all of the device's: ok"], result)
        self.assertEqual(result.lines("h1"), [
            "peer: reads hello from the owner", "peer: the last found 1297", "peer: the second found 123456789abcdef",
            "peer: behind its end: remote access error"], result)
        self.assertNotIn("keeps object", result.err, result)
        self.assertNotIn("mmio", result.err, result)

    FREED = ["free_dm: ok", "all of the device's: ok", "close_device: ok"]

    def test_the_owner_ends(self):
        self.check("ends", *DESTROYED, *self.FREED)

    def test_the_owner_dies(self):
        self.check("dies", *DESTROYED, *self.FREED)

    def test_the_importer_only_unimports(self):
        """The memory is freed with the last context that can access it."""
        self.check("unimports", *DESTROYED, "close_device: ok")

    def test_the_importer_leaves_all_behind(self):
        self.check("leaves")


if __name__ == "__main__":
    apps.main()
