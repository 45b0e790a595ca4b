#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`rnicsim shell`: a shell at a terminal, or for a script, whose programs run on simulated hosts.

usage: shell_test.py path/to/rnicsim
"""
import contextlib
import fcntl
import os
import pathlib
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402

PROMPT = "(rnicsim h0) $ "


class Terminal:
    """A program at a pseudo-terminal."""

    def __init__(self, command, environment, rows=24, columns=80):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(command[0], [str(word) for word in command], environment)
        self.resize(rows, columns)
        self.text = ""

    def resize(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def send(self, keys):
        os.write(self.fd, keys.encode())

    def read_until(self, pattern, what="output"):
        """Output up to the end of the pattern; the next read starts there."""
        end = time.monotonic() + apps.RUN_SECONDS
        while not (found := re.search(pattern, self.text)):
            if not select.select([self.fd], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError(f"no {what} {pattern!r} in:\n{self.text}")
            try:
                self.text += os.read(self.fd, 65536).decode(errors="replace")
            except OSError:
                raise AssertionError(f"the end came before {pattern!r}:\n{self.text}") from None
        seen, self.text = self.text[:found.end()], self.text[found.end():]
        return seen

    def status(self):
        """Reads to the end of the output and returns the exit status."""
        with contextlib.suppress(OSError):
            while select.select([self.fd], [], [], apps.RUN_SECONDS)[0] and (more := os.read(self.fd, 65536)):
                self.text += more.decode(errors="replace")
        return apps.shell_status(os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1]))

    def end(self):
        with contextlib.suppress(OSError):
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)


class ShellCase(apps.LeavesNothing):
    def setUp(self):
        super().setUp()
        self.name = f"rnicsim-test-{os.getpid()}-{time.monotonic_ns()}"
        home = apps.folder()
        self.home = home.__enter__()
        self.addCleanup(home.__exit__, None, None, None)
        (self.home / ".bashrc").write_text("PS1='$ '\nbind 'set enable-bracketed-paste off'\n")
        self.environment.update(RNICSIM_SOCKET=self.name, HOME=str(self.home), SHELL="/bin/bash", TERM="xterm",
                                HISTFILE="")
        self.environment.pop("PS1", None)

    def assert_nothing_left(self):
        # The simulation of a killed shell ends with the shell.
        end = time.monotonic() + apps.RUN_SECONDS
        while apps.processes_with(self.mark) and time.monotonic() < end:
            time.sleep(0.05)
        super().assert_nothing_left()
        self.assertNotIn(f"@{self.name}", apps.simulator_sockets())

    def shell(self, *arguments):
        terminal = Terminal([apps.rnicsim(), "shell", *arguments], self.environment)
        self.addCleanup(terminal.end)
        return terminal

    def at_prompt(self, *arguments):
        terminal = self.shell(*arguments)
        terminal.read_until(re.escape(PROMPT), "prompt")
        return terminal

    def execute(self, terminal, line, prompt=PROMPT):
        """The lines that a command prints."""
        terminal.send(line + "\r")
        terminal.read_until(re.escape(line) + r"\r\n", "echo")
        return terminal.read_until(re.escape(prompt), "prompt")[:-len(prompt)].replace("\r\n", "\n")


class Scripts(ShellCase):
    def script(self, *arguments, **changes):
        return apps.call("shell", *arguments, env=dict(self.environment, **changes))

    def test_status_output_and_summary(self):
        result = self.script("h1", "-c", "ibv_devices; hostname; exit 7")
        self.assertEqual(result.status, 7, result)
        self.assertIn("rnic0", result.out)
        self.assertEqual(result.out.splitlines()[-1], "h1")
        self.assertRegex(result.err, r"(?m)^--- [\d.]+ \S+ simulated$")

    def test_simulated_time_is_the_programs_alone(self):
        started = time.monotonic()
        result = self.script("-c", "date -u +%Y; sleep 5000; date -u +%s")
        self.assertEqual(result.status, 0, result)
        self.assertLess(time.monotonic() - started, 1000)
        self.assertEqual(result.out.split()[0], "2023")
        self.assertGreaterEqual(int(result.out.split()[1]), 1_700_005_000)

    def test_any_shell_and_redirections_to_the_hosts_files(self):
        line = "echo mine > /tmp/of-the-host; cat /tmp/of-the-host; (cat < /tmp/of-the-host; hostname)"
        for shell in ("/bin/bash", "/bin/sh"):
            result = self.script("-c", line, SHELL=shell)
            self.assertEqual((result.status, result.out), (0, "mine\nmine\nh0\n"), result)
        self.assertFalse(pathlib.Path("/tmp/of-the-host").exists())

    def test_pipes_between_the_shell_and_programs(self):
        result = self.script("-c", "echo one | cat; (sleep 1; echo two) | cat | cat; for i in 1 2; do echo $i; done | "
                             "wc -l; x=$(hostname); echo $x | { read y; echo got $y; }")
        self.assertEqual(result.out, "one\ntwo\n2\ngot h0\n", result)

    def test_configuration_is_that_of_serve(self):
        result = self.script("h3", "--topology", "star:4", "--set", "nic.capabilities.gids=16", "-c",
                             "hostname; ls /sys/class/infiniband/rnic0/ports/1/gids | wc -l")
        self.assertEqual(result.out.split(), ["h3", "16"], result)

    def test_what_cannot_be_opened(self):
        for arguments, changes, why in (
                (("h7",), {}, "no host is called 'h7'"),
                (("h[0-1]",), {}, "a shell runs on one host"),
                (("--nic", "nope"), {}, "no NIC profile is called 'nope'"),
                ((), {"SHELL": "/nowhere/sh"}, "the shell /nowhere/sh"),
                ((), {"RNICSIM_SOCKET": ""}, "RNICSIM_SOCKET: '' is not a socket's name"),
                ((), {"RNICSIM_SOCKET": "x" * 200}, "is not a socket's name: 1 to 107 bytes"),
                ((), {"RNICSIM_SOCKET": "a/b"}, "RNICSIM_SOCKET: 'a/b' is not a socket's name")):
            result = self.script(*arguments, "-c", "true", **changes)
            self.assertEqual((result.status, result.out), (2, ""), result)
            self.assertIn(why, result.err)
            self.assertEqual(result.err.count("\n"), 1, result)

    def test_no_shell_within_a_program(self):
        result = self.script("-c", f"{apps.rnicsim()} shell -c true; echo $?; LD_PRELOAD= {apps.rnicsim()} shell h1 -c "
                             "hostname")
        self.assertIn("this shell runs on the simulated host h0", result.err)
        self.assertEqual(result.out.split(), ["2", "h1"], result)

    def test_limit_ends_the_shell(self):
        result = self.script("--limit", "10ms", "-c", "sleep 100; sleep 100")
        self.assertEqual(result.status, 124, result)
        self.assertIn("limit of 10 ms", result.err)


class AtTheTerminal(ShellCase):
    def test_devices_time_and_end(self):
        shell = self.at_prompt()
        self.assertIn("rnic0", self.execute(shell, "ibv_devices"))
        self.assertEqual(self.execute(shell, "hostname"), "h0\n")
        self.assertEqual(self.execute(shell, "sleep 1000; date -u +%Y"), "2023\n")
        shell.send("exit 3\r")
        self.assertEqual(shell.status(), 3, shell.text)
        self.assertRegex(shell.text, r"--- [\d.]+ \S+ simulated")
        self.assertIn("nic.pcie.mmio_writes", shell.text)

    def test_a_second_shell_joins(self):
        shell = self.at_prompt()
        self.execute(shell, "ib_write_bw -n 300 > /tmp/server.txt &")
        # On a busy machine the server may not listen yet: the client tries again.
        client = apps.call("shell", "h1", "-c", "hostname; until ib_write_bw -n 300 h0; do :; done",
                           env=self.environment)
        self.assertEqual(client.status, 0, client)
        self.assertEqual(client.out.splitlines()[0], "h1")
        self.assertEqual(len(apps.perftest_rows(client.out.splitlines())), 1, client)
        self.assertNotIn("simulated", client.err)  # the simulation goes on
        self.execute(shell, "wait")
        self.assertIn("65536", self.execute(shell, "tail -2 /tmp/server.txt"))
        for arguments, why in ((("h7",), "has no host h7"), (("../h0",), "has no host ../h0"),
                               (("h1", "--seed", "3"), "--seed: this shell would join the simulation")):
            result = apps.call("shell", *arguments, "-c", "true", env=self.environment)
            self.assertEqual((result.status, result.out), (2, ""), result)
            self.assertIn(why, result.err)

    def test_joins_serve_and_leaves_it(self):
        server = self.start("serve")
        server.stdout.readline()
        for host in ("h0", "h1"):
            result = apps.call("shell", host, "-c", "hostname", env=self.environment)
            self.assertEqual((result.status, result.out), (0, f"{host}\n"), result)
            self.assertEqual(self.call("env", host).status, 0)
        for command, why in (("env", "has no host h2"), ("serve", "cannot listen for programs")):
            result = self.call(command, *(["h2"] if command == "env" else []))
            self.assertEqual((result.status, result.out, result.err.count("\n")), (2, "", 1), result)
            self.assertIn(why, result.err)
        server.send_signal(signal.SIGTERM)
        self.assertIn("simulated", apps.finish(server).out)

    def test_who_joined_ends_with_the_simulation(self):
        shell = self.at_prompt()
        other = self.shell("h1")
        other.read_until(r"on h1 of the simulation at \S+ \(pid \d+\)")
        other.read_until(r"\(rnicsim h1\) \$ ", "prompt")
        shell.send("exit\r")
        self.assertEqual(shell.status(), 0)
        other.read_until("the simulation has ended, and the shell ends too")
        self.assertEqual(other.status(), 128 + signal.SIGHUP)

    def test_interrupts_reach_the_program_alone(self):
        shell = self.at_prompt()
        for program, ready in (("ib_write_bw", "Waiting for client"), ("sh -c 'echo on; while :; do :; done'", "on\r"),
                               ("sh -c 'echo on; cat'", "on\r")):
            shell.send(program + "\r")
            shell.read_until(ready)
            # cat's answer shows that cat runs; an interrupt before that could arrive between two programs
            if "cat" in program:
                shell.send("here\r")
                shell.read_until("here\r\nhere\r")
            shell.send("\x03")
            shell.read_until(re.escape(PROMPT), "prompt")
            self.assertEqual(self.execute(shell, "echo $?"), "130\n", program)
        self.assertIn("rnic0", self.execute(shell, "ibv_devices"))

    def test_interrupt_of_a_script(self):
        shell = self.shell("-c", "ib_write_bw; echo not reached")
        shell.read_until("Waiting for client")
        shell.send("\x03")
        self.assertEqual(shell.status(), 130, shell.text)
        self.assertIn("simulated", shell.text)
        self.assertNotIn("not reached", shell.text)

    def test_jobs(self):
        shell = self.at_prompt()
        shell.send("ib_write_bw -n 300\r")
        shell.read_until("Waiting for client")
        shell.send("\x1a")
        shell.read_until(re.escape(PROMPT), "prompt")
        self.assertRegex(self.execute(shell, "jobs"), r"Stopped +ib_write_bw")
        self.execute(shell, "bg > /dev/null")
        client = apps.call("shell", "h1", "-c", "ib_write_bw -n 300 h0", env=self.environment)
        self.assertEqual(client.status, 0, client)
        self.execute(shell, "wait")

    def test_size_of_the_terminal(self):
        shell = self.at_prompt()
        self.assertEqual(self.execute(shell, "stty size"), "24 80\n")
        shell.resize(50, 132)
        self.assertEqual(self.execute(shell, "stty size"), "50 132\n")

    def test_nothing_outlives_a_killed_one(self):
        shell = self.at_prompt()
        self.execute(shell, "ib_write_bw > /dev/null &")
        os.kill(shell.pid, signal.SIGKILL)
        # assert_nothing_left, at the end of the test, checks that the programs ended.


if __name__ == "__main__":
    apps.main()
