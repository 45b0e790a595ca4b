#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Notifications between threads and processes of a host at their ends: in simulated time, and identical in every run.

usage: ends_test.py path/to/rnicsim     (needs gcc and bash)
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402
from apps import LeavesNothing, built  # noqa: E402

SOURCE = apps.PROGRAMS / "ends.c"
# Pipes, background jobs, a trap, command substitution: SIGCHLD informs the shell of each child's end.
SCRIPT = """
trap 'heard=$((heard + 1))' CHLD
for i in 1 2 3; do
  (sleep 0.00$i; echo slept $i) &
done
said=$(echo one two three | wc -w)
wait
seq 3000 | sort -rn | tail -1
echo "said $said"
"""


class Ends(LeavesNothing):
    def run_on_h0(self, command):
        result = self.run_on(("h0", command))
        self.assertEqual(result.status, 0, result)
        self.assertNotIn("not reproducible", result.out, result)
        return result

    def ends(self, how):
        return self.run_on_h0(f"{built('ends', SOURCE.read_text(), '-lpthread')} {how}").lines("h0")

    def test_a_handler_cuts_a_sleep_short(self):
        self.assertEqual(self.ends("sleeps"), ["sleep EINTR at 5 ms, told of 1 with 3 at 5 ms",
                                               "late 1 at 25 ms, told 3 times, early 1"])

    def test_a_child_that_ends_before_the_sleep(self):
        self.assertEqual(self.ends("ends_at_once"), ["EINTR at 0 ms, EINTR at 3 ms, told 2 times"])

    def test_a_handler_that_waits(self):
        self.assertEqual(self.ends("waits"), ["wait got one 1 at 5 ms, its handler 0",
                                                  "the handler got 3 by 12 ms, then none was left"])

    def test_while_it_is_blocked(self):
        self.assertEqual(self.ends("blocked"), ["0 while blocked, then 1 at 10 ms",
                                               "EINTR at 11 ms, EINTR at 16 ms, told 4 by 17 ms",
                                               "system 7, told 5", "undisturbed: 0"])

    def test_locks_that_processes_share(self):
        self.assertEqual(self.ends("shares"), ["posted by 0 ms, unlocked by 7 ms"])

    def test_the_first_thread_leaves(self):
        self.assertEqual(self.ends("leaves"), ["tryjoin 1", "first left at 2 ms", "joined at 2 ms",
                                                   "other left at 7 ms"])

    def test_a_shell_script_is_reproducible(self):
        with apps.folder() as folder:
            (folder / "script").write_text(SCRIPT)
            first, *others = (self.run_on_h0(f"bash {folder}/script") for _ in range(5))
        self.assertEqual(sorted(first.lines("h0")), ["1", "said 3", "slept 1", "slept 2", "slept 3"], first)
        for other in others:
            self.assertEqual(first.out, other.out)


if __name__ == "__main__":
    apps.main()
