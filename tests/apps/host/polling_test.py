# SPDX-License-Identifier: Apache-2.0
"""
Programs that poll: each poll of an empty queue takes its time, whatever else the loop polls, and in every way in which
the simulator runs the loop."""
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
import apps  # noqa: E402

POLL, YIELD, CLOCK, LATE = 20, 300, 25, 100  # ns; LATE: delay by the client's own polls


def program():
    source = (apps.PROGRAMS / "polling_loops.c").read_text()
    return apps.built("polling_loops", source, "-O1", "-libverbs", "-lpthread")


def run(what, *options):
    command = f"{program()} {what}"
    return apps.run_on([("h0", command), ("h1", f"{command} h0")], *options)


class RoundTrips(unittest.TestCase):
    def times(self, what, *options):
        result = run(what, *options)
        self.assertEqual(result.status, 0, str(result))
        found = re.fullmatch(r"(\d+) to (\d+) ns", result.lines("h1")[-1])
        return int(found[1]), int(found[2])

    def test_a_queue_more_costs_a_look_more(self):
        alone, longest_alone = self.times("queues 1")
        self.assertLess(longest_alone - alone, 2 * LATE)
        for count in (2, 3, 5, 8, 16, 64):
            least, longest = self.times(f"queues {count}")
            self.assertGreaterEqual(least, alone - POLL, count)
            self.assertLessEqual(longest, longest_alone + count * POLL + LATE, count)

    def test_so_it_does_for_extended_queues(self):
        _, longest_alone = self.times("start 1")
        for count in (5, 16):
            _, longest = self.times(f"start {count}")
            self.assertLessEqual(longest, longest_alone + count * POLL + LATE, count)

    def test_memory_is_watched_beside_other_looks(self):
        alone, longest_alone = self.times("slots none")
        for what, cost in (("poll", POLL), ("yield", YIELD), ("clock", CLOCK)):
            least, longest = self.times(f"slots {what}")
            self.assertGreaterEqual(least, alone - POLL, what)
            self.assertLessEqual(longest, longest_alone + cost + LATE, what)

    def test_the_cost_of_a_look_is_a_parameter(self):
        slow = ("--set", "host.cpu.poll_cq=200ns")
        least, longest = self.times("queues 8", *slow)
        self.assertGreater(longest - least, 200)
        self.assertLessEqual(longest, least + 8 * 200 + LATE)


class RandomLoops(unittest.TestCase):
    def test_each_look_could_have_had_its_turn(self):
        for seed in range(1, 40 if apps.full() else 3):
            with self.subTest(seed=seed):
                results = [run(f"random {seed}", f"--time={time}") for time in ("sim", "each-look")]
                for host in ("h0", "h1"):
                    self.assertEqual(results[0].lines(host), results[1].lines(host), host)
                self.assertGreater(len(results[0].lines("h0")), 20)


class AnswersOfAChild(unittest.TestCase):
    """A process that polls shared memory sees the stores of another process of its host."""

    def test_they_are_seen_at_once(self):
        program = apps.built("answers_of_a_child", (apps.PROGRAMS / "answers_of_a_child.c").read_text())
        for how, least, most in (("write", 3_000, 6_000), ("read", 3_000, 6_000), ("store", 80, 4_000)):  # ns
            with self.subTest(how):
                result = apps.run_on([("h0", f"{program} {how}")])
                self.assertEqual(result.status, 0, str(result))
                taken = int(result.lines("h0")[0])
                self.assertTrue(least <= taken <= most, f"{taken} ns")


if __name__ == "__main__":
    apps.main()
