#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Registered memory that a program unmaps, replaces, drops, moves or frees, and memory that cannot be registered. Pinned
pages stay, as on Linux, or the device's access ends in a reported error.

usage: pinned_memory_test.py path/to/rnicsim     (needs gcc and libibverbs' headers)
"""
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402
from apps import LeavesNothing, built  # noqa: E402

SOURCE = apps.PROGRAMS / "verbs" / "pinned_memory.c"


class PinnedMemory(LeavesNothing):
    def run_mode(self, mode, *options):
        program = built("pinned_memory", SOURCE.read_text(), "-libverbs")
        return self.call("run", *options, "--on", "h0", f"{program} {mode}")

    def check(self, mode, *lines, options=()):
        result = self.run_mode(mode, *options)
        self.assertEqual(result.status, 0, result)
        self.assertEqual(result.lines("h0"), list(lines), result)
        return result

    def test_unmapped(self):
        self.check("unmapped", "gone: the device reads 7 7 7 7", "gone: the device writes 9: success",
                   "gone: the device reads 9 9 9 9", "new: the device reads 3 3 3 3",
                   "new: the device writes 4: success", "new: the program reads 4 4 4 4",
                   "gone: the device reads 9 9 9 9", "new: the device reads 4 4 4 4")

    def test_replaced(self):
        self.check("replaced", "replaced: the device writes 9: success", "replaced: the program reads 3 3 3 3",
                   "replaced: the device reads 9 9 9 9")

    def test_dropped(self):
        self.check("dropped", "dropped: the program reads 0 0 0 0", "dropped: the device reads 7 7 7 7",
                   "shared: the device writes 6: success", "shared: the program reads 6 6 6 6")

    def test_moved(self):
        self.check("moved", "moved: the device writes 8: success", "moved: the program reads 8 8 8 8",
                   "new: the device writes 9: success", "moved: the device reads 9 9 9 9",
                   "new: the device writes 2: success", "moved: the device reads 2 2 2 2")

    def test_on_demand(self):
        self.check("on_demand", "there: the device reads 7 7 7 7", "again: the device reads 3 3 3 3",
                   "again: the device writes 4: success", "again: the program reads 4 4 4 4",
                   "dropped: the device reads 0 0 0 0", "dropped: the device writes 5: success",
                   "replaced: the device reads 6 6 6 6", "gone: the device reads: remote access error")

    def test_on_demand_and_pinned(self):
        self.check("on_demand_and_pinned", "both: the device reads 7 7 7 7", "both: the device writes 8: success",
                   "both: the device reads 8 8 8 8", "pinned: the device reads 8 8 8 8",
                   "on demand: the device reads 3 3 3 3", "on demand: the device writes 4: success",
                   "on demand: the program reads 4 4 4 4", "pinned: the device reads 8 8 8 8",
                   "on demand: the device reads 4 4 4 4")

    def test_on_demand_moved(self):
        self.check("on_demand_moved", "before: the device reads 7 7 7 7", "behind: the device reads 7 7 7 7",
                   "behind: the device writes 8: success", "behind: the program reads 8 8 8 8",
                   "gone: the device reads: remote access error")

    def test_on_demand_forked(self):
        self.check("on_demand_forked", "alone: the device reads 7 7 7 7",
                   "the child's writes are its own: the device reads 7 7 7 7",
                   "the parent's are not: the device reads 8 8 8 8", "the parent's: the device writes 6: success",
                   "the parent's: the program reads 6 6 6 6")

    def test_on_demand_file(self):
        self.check("on_demand_file", "file: the device writes 5: success", "file: its byte is 5",
                   "for reading: the device reads 5 5 5 5",
                   "for reading: the device writes 6: remote access error")

    def test_rights_taken_away(self):
        self.check("protected", "no rights: the device reads 7 7 7 7", "no rights: the device writes 8: success",
                   "no rights: the program reads 8 8 8 8")

    def test_shared_segment_detached(self):
        self.check("detached", "detached: the device reads 7 7 7 7")

    def test_freed_by_the_c_library(self):
        """The C library frees the memory without a visible call. The first write is lost with an error line; later
        writes are refused."""
        result = self.check("freed", "freed: the device writes 8: success",
                            "freed: the device writes 9: remote operation error")
        self.assertRegex(result.err, r"rnicsim: h0: pinned_memory \(pid \d+\): the device wrote \d+ bytes at "
                                     r"0x[0-9a-f]+, which the program has unmapped")

    def test_what_cannot_be_registered(self):
        self.check("refused", "all rights: registered", "a page read-only: EFAULT",
                   "a page read-only, for reading: registered", "a page without rights: EFAULT", "a hole: EFAULT",
                   "beyond a file's end: EFAULT")

    def test_two_processes_count_in_one_word(self):
        for slots in 4096, 1 << 20:  # words are found by the offset in the page; with 1 << 20 slots also by the page
            with self.subTest(slots):
                self.check("counted", "counted 4000", options=["--set", f"nic.atomics.lock_slots={slots}"])

    def test_access_that_never_ends(self):
        result = self.run_mode("stalled")
        if "no userfaultfd" in result.text("h0"):
            self.skipTest("this machine lets nobody use userfaultfd")
        self.assertEqual(result.status, 128 + signal.SIGKILL, result)
        self.assertRegex(result.err, r"rnicsim: the device's access to a program's memory does not end")


if __name__ == "__main__":
    apps.main()
