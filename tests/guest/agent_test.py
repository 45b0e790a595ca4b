#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The guest's agent as an ordinary process of this machine: commands, output, signals, ends.

usage: agent_test.py path/to/guest_agent
"""
import os
import signal
import socket
import struct
import subprocess
import sys
import unittest

MARK = 0x6772
START, SIGNAL, POWER_OFF, READY, OUTPUT, ERRORS, SETTLED, ENDED = 1, 2, 3, 16, 17, 18, 19, 20
HEADER = struct.Struct("<HHII")
# Seconds of real time; reached only if the agent does not answer.
SECONDS = 120


class Agent:
    def __init__(self):
        self.socket, other = socket.socketpair()
        self.socket.settimeout(SECONDS)
        with other:
            self.process = subprocess.Popen([sys.argv[1], f"fd:{other.fileno()}"], pass_fds=[other.fileno()],
                                            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.bytes = b""
        self.kernel = self.next()

    def send(self, kind, command, payload=b""):
        self.socket.sendall(HEADER.pack(MARK, kind, command, len(payload)) + payload)

    def _take(self, count):
        while len(self.bytes) < count:
            more = self.socket.recv(65536)
            if not more:
                raise EOFError
            self.bytes += more
        taken, self.bytes = self.bytes[:count], self.bytes[count:]
        return taken

    def next(self):
        mark, kind, command, size = HEADER.unpack(self._take(HEADER.size))
        assert mark == MARK, mark
        return kind, command, self._take(size)

    def start(self, number, line):
        self.send(START, number, line.encode())

    def finish(self, *numbers):
        """{number: (status, output, errors, settled)} of the commands, after all have ended."""
        parts = {number: {OUTPUT: b"", ERRORS: b"", SETTLED: 0, ENDED: None} for number in numbers}
        while any(part[ENDED] is None for part in parts.values()):
            kind, command, payload = self.next()
            if kind in (OUTPUT, ERRORS):
                parts[command][kind] += payload
            elif kind == SETTLED:
                parts[command][SETTLED] += 1
            else:
                parts[command][kind], = struct.unpack("<I", payload)
        return {number: (part[ENDED], part[OUTPUT], part[ERRORS], part[SETTLED]) for number, part in parts.items()}

    def until_settled(self, number):
        while self.next()[:2] != (SETTLED, number):
            pass

    def close(self):
        self.socket.close()
        words = self.process.communicate(timeout=SECONDS)[1]
        return self.process.returncode, words


class AgentTest(unittest.TestCase):
    def setUp(self):
        self.agent = Agent()
        self.addCleanup(self.end)

    def end(self):
        self.agent.socket.close()
        self.agent.process.kill()
        self.agent.process.communicate()

    def run_alone(self, line):
        self.agent.start(1, line)
        return self.agent.finish(1)[1][:3]

    def test_says_its_kernel(self):
        self.assertEqual(self.agent.kernel, (READY, 0, os.uname().release.encode()))

    def test_output_and_errors_come_apart(self):
        self.assertEqual(self.run_alone("echo out; echo err >&2; exit 3"), (3, b"out\n", b"err\n"))

    def test_statuses(self):
        for line, status in (("true", 0), ("no-such-program 2>/dev/null", 127), ("kill -SEGV $$", 128 + signal.SIGSEGV),
                             ("exit 255", 255)):
            self.assertEqual(self.run_alone(line)[0], status, line)

    def test_binary_output(self):
        # The frame marker and all other byte values, many times.
        line = "python3 -c \"import sys; sys.stdout.buffer.write((b'rg' + bytes(range(256))) * 4000)\""
        self.assertEqual(self.run_alone(line), (0, (b"rg" + bytes(range(256))) * 4000, b""))

    def test_many_at_once(self):
        numbers = range(1, 41)
        for number in numbers:
            self.agent.start(number, f"for i in 1 2 3; do echo {number} $i; done; exit {number}")
        ends = self.agent.finish(*numbers)
        for number in numbers:
            said = "".join(f"{number} {i}\n" for i in (1, 2, 3)).encode()
            self.assertEqual(ends[number][:3], (number, said, b""))

    def test_flood_does_not_starve(self):
        self.agent.start(1, "yes")
        self.agent.start(2, "echo heard")
        # The only expectation of the endless output is that it does not stop the agent.
        while True:
            kind, command, payload = self.agent.next()
            if command == 2 and kind == ENDED:
                break
            self.assertIn((command, kind), ((1, OUTPUT), (2, OUTPUT)))
        self.agent.send(SIGNAL, 1, struct.pack("<I", signal.SIGTERM))
        self.assertEqual(self.agent.finish(1)[1][0], 128 + signal.SIGTERM)

    def test_signal_reaches_children(self):
        self.agent.start(1, "sleep 1000 & sleep 1000; true")
        self.agent.until_settled(1)
        self.agent.send(SIGNAL, 1, struct.pack("<I", signal.SIGKILL))
        self.assertEqual(self.agent.finish(1)[1][0], 128 + signal.SIGKILL)

    def test_end_is_told_though_a_child_lives(self):
        self.agent.start(1, "(sleep 1; echo late) & echo early")
        status, output, _, _ = self.agent.finish(1)[1]
        self.assertEqual((status, output), (0, b"early\n"))
        self.assertEqual(self.agent.next(), (OUTPUT, 1, b"late\n"))

    def test_settles_when_it_waits(self):
        self.agent.start(1, "cat /dev/zero >/dev/null & worker=$!; sleep 1; kill $worker; echo idle; sleep 1000")
        kind, _, payload = self.agent.next()
        self.assertEqual((kind, payload), (OUTPUT, b"idle\n"))
        self.agent.until_settled(1)
        self.agent.send(SIGNAL, 1, struct.pack("<I", signal.SIGKILL))
        self.agent.finish(1)

    def test_first_frame_in_pieces(self):
        frame = HEADER.pack(MARK, START, 7, 9) + b"echo okay"
        for i in range(len(frame)):
            self.agent.socket.sendall(frame[i:i + 1])
        self.assertEqual(self.agent.finish(7)[7][:2], (0, b"okay\n"))

    def test_garbage_ends_it_with_a_word(self):
        self.agent.socket.sendall(b"this is not a frame")
        with self.assertRaises(EOFError):
            self.agent.next()
        status, words = self.agent.close()
        self.assertEqual(status, 1)
        self.assertIn("data that is not a frame", words)

    def test_too_large_a_frame_is_garbage(self):
        self.agent.socket.sendall(HEADER.pack(MARK, START, 1, 1 << 30))
        with self.assertRaises(EOFError):
            self.agent.next()

    def test_frame_not_for_an_agent(self):
        self.agent.send(OUTPUT, 1, b"?")
        self.assertEqual(self.run_alone("echo on")[1], b"on\n")

    def test_power_off(self):
        self.agent.send(POWER_OFF, 0)
        self.assertEqual(self.agent.process.wait(SECONDS), 0)

    def test_ends_with_its_launcher(self):
        self.assertEqual(self.agent.close(), (0, ""))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
