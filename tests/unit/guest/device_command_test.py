#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`rnicsim device`: the command line, the sockets and the end.

usage: device_command_test.py RNICSIM [TESTS]
"""

import signal
import subprocess
import sys

from machines import PATIENCE, Gone, connect
from served_device import ServedDevice, main


class DeviceCommand(ServedDevice):
    def test_once(self):
        self.start("--once", vfio=["h0", "h1"])
        one, other = self.machine("h0"), self.machine("h1")
        self.alive(other)
        one.client.close()
        self.alive(other)
        other.client.close()
        self.end(how=None)
        self.assertEqual(sorted(self.folder.glob("h?")), [])

    def test_limits_and_signals(self):
        self.start("--wall-limit", "1s", vfio=["h0"])
        summary = self.end(how=None, status=124)
        self.assertIn("ended at the limit of 1 s of wall time", summary)
        self.assertIn("h0: no client is connected", summary)
        self.start("--limit", "300ms", vfio=["h0"])
        machine = self.machine("h0")
        self.driver(machine, 1)
        while self.program.poll() is None:
            try:
                self.alive(machine)
            except Gone:
                break
        self.end(how=None, status=124)
        self.start(vfio=["h0"])
        self.program.send_signal(signal.SIGUSR1)
        self.wait_for("h0: no client is connected, 0 BAR accesses")
        self.end(how=signal.SIGINT)

    def test_a_socket_that_was_left(self):
        self.start(vfio=["h0"])
        self.program.kill()
        self.program.wait()
        self.assertTrue(self.path("h0").is_socket())
        self.start(vfio=["h0"])
        self.alive(self.machine("h0"))
        second = subprocess.run([self.RNICSIM, "device", "--vfio-user", f"h0={self.path('h0')}"], capture_output=True,
                                text=True, timeout=PATIENCE)
        self.assertEqual(second.returncode, 2)
        self.assertIn("the file exists, and is in use", second.stderr)
        self.end()

    def test_a_second_client_is_turned_away(self):
        self.start(vfio=["h0"])
        machine = self.machine("h0")
        self.alive(machine)
        second = connect(self.path("h0"))
        self.gone(second)
        second.close()
        self.wait_for("a second client tried to connect to")
        self.alive(machine)
        self.end()

    def test_wrong_command_lines(self):
        for words, why in (([], "no virtual machine has a socket"),
                           (["--qemu", "h0"], "--qemu: 'h0' is not HOST=SOCKET"),
                           (["--qemu", "h9=x"], "--qemu: the topology has no host 'h9'"),
                           (["--qemu", "h0="], "a socket's path has 1 to 107 bytes"),
                           (["--qemu", "h0=" + "x" * 108], "a socket's path has 1 to 107 bytes"),
                           (["--qemu", "h0=/nowhere/x"], "/nowhere/x: No such file or directory"),
                           (["--qemu", "h0=x,h0=y"], "--qemu: h0 has a socket already"),
                           (["--qemu", "h0=x", "--vfio-user", "h0=y"], "--vfio-user: h0 has a socket already"),
                           (["--qemu", "h0=x", "--qtest", "h1=y"], "--qtest: h1 has no --qemu socket"),
                           (["--vfio-user", "h0=x", "--qtest", "h0=y"], "--qtest: h0 has no --qemu socket"),
                           (["--vfio-user", f"h0={__file__}"], "the file exists, and is in use or not a socket")):
            done = subprocess.run([self.RNICSIM, "device", *words], capture_output=True, text=True, timeout=PATIENCE,
                                  cwd=self.folder)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done)
            self.assertIn(why, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


if __name__ == "__main__":
    main(sys.argv)
