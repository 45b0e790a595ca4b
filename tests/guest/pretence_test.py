#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
`rnicsim vm` with imitated machines: a script takes the place of QEMU and runs the guest's agent on this machine.

usage: pretence_test.py path/to/rnicsim path/to/guest_agent
"""
import os
import pathlib
import signal
import socket
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import apps  # noqa: E402

AGENT = os.path.abspath(sys.argv.pop(2))
# PRETENCE runs first. It may use the variables agent and console (descriptors) and number (the guest's number).
QEMU = f"""#!/bin/bash
for word; do
  case $word in
    socket,id=agent,fd=*) agent=${{word##*=}} ;;
    socket,id=console,fd=*) console=${{word##*=}} ;;
    *rnicsim.guest=*) number=${{word#*rnicsim.guest=}} number=${{number%% *}} ;;
  esac
done
eval "$PRETENCE"
exec {AGENT} "fd:$agent"
"""
IMAGE_MAKER = """#!/bin/bash
eval "$PRETENCE_OF_IMAGE"
"""


class Launched:
    """A folder with the imitated programs, which is first in PATH."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="rnicsim-test-")
        self.path = pathlib.Path(self.folder.name)
        self.fakes = self.path / "fakes"
        self.fakes.mkdir()
        self.write("qemu-system-x86_64", QEMU)
        self.write("python3", IMAGE_MAKER)

    def write(self, name, text):
        (self.fakes / name).write_text(text)
        (self.fakes / name).chmod(0o755)

    def environment(self, pretence, image):
        return {**os.environ, "PATH": f"{self.fakes}:{os.environ['PATH']}", "PRETENCE": pretence,
                "PRETENCE_OF_IMAGE": image, "TMPDIR": self.folder.name, "FOLDER": self.folder.name}

    def start(self, *arguments, on=(), pretence="", image=""):
        words = [word for guest, command in on for word in ("--on", guest, command)]
        return apps.start("vm", *arguments, *words, env=self.environment(pretence, image))

    def processes(self):
        """Names of the processes that the launcher has started, with their descendants."""
        found = []
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                environment = (folder / "environ").read_bytes().split(b"\0")
                name = (folder / "comm").read_text().strip()
            except OSError:
                continue
            if os.fsencode(f"FOLDER={self.folder.name}") in environment:
                found.append(name)
        return found


def labelled(text):
    """The guests' lines, without the NICs' counters at the end."""
    return [line for line in text.split("\n") if line.startswith("g")]


class PretenceTest(apps.TestCase):
    def setUp(self):
        self.launched = Launched()
        self.addCleanup(self.launched.folder.cleanup)

    def vm(self, *arguments, **options):
        return apps.finish(self.launched.start(*arguments, **options))

    def path(self, name):
        return self.launched.path / name

    def wait_for_none(self):
        end = time.monotonic() + apps.RUN_SECONDS
        while names := self.launched.processes():
            self.assertLess(time.monotonic(), end, names)
            time.sleep(0.05)

    def assert_says(self, result, status, *words):
        self.assertEqual(result.status, status, result)
        for word in words:
            self.assertIn(word, result.err)


class Commands(PretenceTest):
    def test_output_is_labelled_and_the_worst_status_counts(self):
        result = self.vm("--guests", "3",
                         on=[("g[0-2]", "echo said"), ("g1", "echo bad >&2; exit 7"), ("g2", "exit 3")])
        self.assert_says(result, 7, "g1| bad")
        self.assertEqual(sorted(labelled(result.out)), ["g0| said", "g1| said", "g2| said"])

    def test_line_without_end_and_bytes(self):
        result = self.vm("--guests", "1", on=[("g0", "printf 'a\\nb'"), ("g0", "printf '\\001\\n'")])
        self.assertEqual(sorted(labelled(result.out)), ["g0| \x01", "g0| a", "g0| b"])

    def test_next_command_starts_when_the_one_before_waits(self):
        os.mkfifo(self.path("fifo"))
        # A server that needs time before it listens.
        server = "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; touch $FOLDER/listens; read word <$FOLDER/fifo"
        client = "[ -e $FOLDER/listens ] || exit 9; echo hello >$FOLDER/fifo"
        self.assert_says(self.vm(on=[("g0", server), ("g1", client)]), 0)

    def test_next_command_starts_after_the_gap(self):
        busy = "until [ -e $FOLDER/stop ]; do :; done"
        result = self.vm("--gap", "500ms", on=[("g0", busy), ("g1", "touch $FOLDER/stop; echo done")])
        self.assert_says(result, 0)
        self.assertEqual(result.lines("g1"), ["done"])

    def test_flood_while_another_ends(self):
        result = self.vm("--wall-limit", "4s", on=[("g0", "yes"), ("g1", "echo heard")])
        self.assert_says(result, 124, "g0: 'yes' is still running")
        self.assertEqual(result.lines("g1"), ["heard"])

    def test_daemon_goes_with_its_guest(self):
        # The end of a machine ends its daemons, because the agent is the guest's first process. Here only QEMU's end is
        # visible.
        result = self.vm("--guests", "1", on=[("g0", "sleep 1 & echo started")])
        self.assert_says(result, 0)
        self.assertEqual(result.lines("g0"), ["started"])


class Wire(PretenceTest):
    # A connected socket as an additional port of the first guest's hub.
    def test_wire(self):
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(self.path("wire")))
            listener.listen()
            pretence = 'case "$*" in *stream,id=outside,*netdev=outside*hubport,id=port*) ;; *) exit 9 ;; esac'
            result = self.vm("--guests", "1", "--wire", f"unix:{self.path('wire')}", on=[("g0", "echo said")],
                             pretence=pretence)
            listener.settimeout(apps.RUN_SECONDS)
            listener.accept()[0].close()
        self.assert_says(result, 0)
        self.assertEqual(result.lines("g0"), ["said"])

    def test_another_kind(self):
        self.assert_says(self.vm("--wire", "tap:wire0", on=[("g0", "true")]), 2, "unix:PATH is needed")


class Losses(PretenceTest):
    def test_machine_that_does_not_start(self):
        result = self.vm(on=[("g0", "true")],
                         pretence='[ $number = 0 ] || { echo "no such device" >&2; exit 1; }')
        self.assert_says(result, 1, "g1's QEMU| no such device", "g1: QEMU of this guest ended: exit status 1",
                         "g1's console printed nothing")

    def test_machine_that_dies(self):
        result = self.vm(on=[("g0", "sleep 1000"), ("g1", "kill -KILL $PPID")])
        self.assert_says(result, 1, "g1: QEMU of this guest ended: signal 9 (Killed)")

    def test_machine_that_does_not_boot(self):
        result = self.vm("--boot-limit", "1s", on=[("g0", "true")],
                         pretence='printf "loading\\r\\nstill loading" >&$console; [ $number = 0 ] || sleep 1000')
        self.assert_says(result, 1, "the guests have not booted within 1 s (--boot-limit)",
                         "g1's console ended with:\nloading\nstill loading\n")
        self.assertNotIn("g0's console", result.err)

    def test_agent_that_talks_nonsense(self):
        for nonsense in ("GARBAGE IN PLENTY", "rg\\x10\\0\\0\\0\\0\\0\\xff\\xff\\xff\\xff"):
            result = self.vm(on=[("g0", "true")], pretence=f'printf "{nonsense}" >&$agent; sleep 1000')
            self.assert_says(result, 1, "the agent's channel received data that is not a frame")

    def test_agent_that_tells_of_what_nobody_started(self):
        frames = "rg\\x10\\0\\0\\0\\0\\0\\0\\0\\0\\0rg\\x14\\0\\x63\\0\\0\\0\\x04\\0\\0\\0\\0\\0\\0\\0"
        result = self.vm(on=[("g0", "true")], pretence=f'printf "{frames}" >&$agent; sleep 1000')
        self.assert_says(result, 1, "agent reports an unknown command 99")

    def test_kernel_that_tells_of_a_fault(self):
        pretence = 'printf "[ 1.0] BUG: unable to handle page fault\\r\\n" >&$console'
        result = self.vm("--guests", "1", "--consoles", self.path("consoles"), on=[("g0", "echo on")],
                         pretence=pretence)
        self.assert_says(result, 1, "g0's kernel: [ 1.0] BUG: unable to handle page fault")
        self.assertEqual(result.lines("g0"), ["on"])
        self.assertIn("BUG: ", self.path("consoles/g0.console").read_text())

    def test_worse_status_of_a_command_stays(self):
        result = self.vm("--guests", "1", on=[("g0", "exit 4")], pretence='echo "Oops: 0" >&$console')
        self.assert_says(result, 4)


class Ends(PretenceTest):
    def begin(self):
        process = self.launched.start(on=[("g0", "echo up; sleep 1000"), ("g1", "sleep 1000")])
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "g0| up\n")
        return process

    def kill_leftovers(self):
        """Kills the commands, which would end with a real machine."""
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if os.fsencode(f"FOLDER={self.launched.folder.name}") in (folder / "environ").read_bytes().split(b"\0"):
                    os.kill(int(folder.name), signal.SIGKILL)
            except OSError:
                pass

    def machines(self):
        # Linux cuts a process name to 15 characters
        return [name for name in self.launched.processes() if name == os.path.basename(AGENT)[:15]]

    def assert_no_machines(self):
        end = time.monotonic() + apps.RUN_SECONDS
        while self.machines():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)
        self.kill_leftovers()

    def test_limit(self):
        result = self.vm("--wall-limit", "2s", on=[("g0", "sleep 1000")])
        self.assert_says(result, 124, "ended at the limit of 2 s of wall time")
        self.assertEqual(self.machines(), [])
        self.kill_leftovers()

    def test_signals(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.begin()
            self.assertEqual(len(self.machines()), 2)
            process.send_signal(number)
            self.assert_says(apps.finish(process), 128 + number, f"ended by signal {number}")
            self.assertEqual(self.machines(), [])
            self.kill_leftovers()

    def test_killed(self):
        process = self.begin()
        process.kill()
        self.assertEqual(apps.finish(process).status, 128 + signal.SIGKILL)
        self.assert_no_machines()

    def test_no_file_is_left(self):
        self.assert_says(self.vm(on=[("g[0-1]", "true")]), 0)
        self.assertEqual(os.listdir(self.path(".")), ["fakes"])


class Refusals(PretenceTest):
    def assert_one_line(self, result, words):
        self.assert_says(result, 2, words)
        self.assertEqual(len(result.err.splitlines()), 1, result)

    def test_no_image(self):
        result = self.vm(on=[("g0", "true")], image="echo rnicsim: no image >&2; exit 2")
        self.assert_one_line(result, "rnicsim: no image")

    def test_no_qemu(self):
        (self.launched.fakes / "qemu-system-x86_64").write_text("")  # not a program
        (self.launched.fakes / "qemu-system-x86_64").chmod(0o644)
        environment = {**self.launched.environment("", ""), "PATH": str(self.launched.fakes)}
        result = apps.call("vm", "--on", "g0", "true", env=environment)
        self.assert_one_line(result, "Debian's package qemu-system-x86 has it")

    def test_guest_that_is_not_there(self):
        self.assert_one_line(self.vm(on=[("g2", "true")]), "no guest is called 'g2'; there are g0 to g1")
        self.assert_one_line(self.vm(on=[("g[1-0]", "true")]), "the end of the range is before its begin")

    def test_console_that_cannot_be_written(self):
        self.path("file").write_text("")
        self.assert_one_line(self.vm("--consoles", self.path("file") / "x", on=[("g0", "true")]), "Not a directory")

    def test_command_that_is_too_long(self):
        self.assert_one_line(self.vm(on=[("g0", "true " + "x" * 70000)]), "is too long")


if __name__ == "__main__":
    apps.main()
