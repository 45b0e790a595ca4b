# SPDX-License-Identifier: Apache-2.0
"""`rnicsim device` as a process, with virtual machines of machines.py: shared parts of this folder's tests."""

import pathlib
import re
import signal
import subprocess
import tempfile
import time
import unittest

from machines import PATIENCE, QemuMachine, VfioMachine, abi

from driver import Driver  # beside tests/library/python/rings.py

ACCESS = abi.access.kLocalWrite | abi.access.kRemoteWrite | abi.access.kRemoteRead
LENGTH = 5000
DEVICE_STATUS = abi.config.kPcieCapability + 0x0a


class ServedDevice(unittest.TestCase):
    RNICSIM = ""  # path of the program

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.program, self.macs = None, {}
        self.addCleanup(self.kill)

    def kill(self):
        if self.program and self.program.poll() is None:
            self.program.kill()
            self.program.wait()

    def path(self, name):
        return self.folder / name

    def start(self, *options, qemu=(), vfio=()):
        """Serves these hosts at sockets with the hosts' names."""
        words = [self.RNICSIM, "device", *options]
        for host in qemu:
            words += ["--qemu", f"{host}={self.path(host)}", "--qtest", f"{host}={self.path(host + '.qtest')}"]
        for host in vfio:
            words += ["--vfio-user", f"{host}={self.path(host)}"]
        self.errors = open(self.path("errors"), "w+")
        self.addCleanup(self.errors.close)
        self.program = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=self.errors, text=True)
        self.addCleanup(self.program.stdout.close)
        for host in [*qemu, *vfio]:
            line = self.program.stdout.readline()
            told = re.fullmatch(rf"rnicsim: {host} \(MAC ([0-9a-f:]+), [0-9.]+\): (x-pci-proxy|vfio-user) at .*\n",
                                line)
            self.assertTrue(told, line)
            self.macs[host] = bytes.fromhex(told[1].replace(":", ""))

    def machine(self, host, kind=VfioMachine, **options):
        made = (QemuMachine(self.path(host), self.path(host + ".qtest")) if kind is QemuMachine else
                kind(self.path(host), **options))
        self.addCleanup(made.close)
        made.mac = self.macs[host]
        return made

    def driver(self, machine, number):
        machine.forget()
        driver = Driver(machine, number)
        driver.mac = machine.mac
        return driver.bring_up()

    def end(self, how=signal.SIGTERM, status=0):
        """Ends the program and returns the summary."""
        if how:
            self.program.send_signal(how)
        text = self.program.stdout.read()
        self.assertEqual(self.program.wait(PATIENCE), status, self.said())
        return text

    def said(self):
        self.errors.flush()
        return self.path("errors").read_text()

    def wait_for(self, text):
        for deadline in [time.monotonic() + PATIENCE]:
            while text not in self.said():
                self.assertIsNone(self.program.poll(), self.said())
                self.assertLess(time.monotonic(), deadline, self.said())
                time.sleep(0.01)

    def connected(self, one, other):
        """A queue pair and a region at each of two machines."""
        ends = []
        for number, machine in enumerate((one, other)):
            driver = self.driver(machine, number + 1)
            ends.append((driver.create_qp(0xb, driver.create_cq(1)), driver.register(3, 8192, ACCESS)))
        (a, source), (b, target) = ends
        a.connect(b)
        b.connect(a)
        return a, source, b, target

    def write(self, a, source, b, target):
        """A WRITE with an interrupt, an event and a completion."""
        message = bytes(i * 7 & 0xff for i in range(LENGTH))
        source.data[:LENGTH] = message
        a.cq.arm(a.driver.device)
        a.send.post(abi.SendOpcode.write, target.remote(100), source.segment(LENGTH))
        a.send.ring(a.driver.device)
        self.assertTrue(a.driver.device.wait_interrupt(Driver.EQ_VECTOR, ms=1))
        event = a.driver.events.poll()
        self.assertEqual((event.type, event.number), (abi.EventType.completion, a.cq.cqn))
        a.driver.events.arm(a.driver.device)
        cqe = a.cq.poll()
        self.assertEqual(cqe.syndrome, abi.CqeSyndrome.success)
        self.assertEqual(bytes(target.data[100:100 + LENGTH]), message)

    def alive(self, machine):
        self.assertEqual(machine.config_read(0), abi.kPciDeviceId << 16 | abi.kPciVendorId)

    def exchange(self, *machines):
        a, source, b, target = self.connected(*machines)
        self.write(a, source, b, target)
        self.write(b, target, a, source)

    def gone(self, client):
        """Checks that the device closes the connection."""
        client.settimeout(PATIENCE)
        try:
            while client.recv(4096):
                pass
        except ConnectionResetError:
            pass


def main(arguments):
    """Runs the tests of the calling module: RNICSIM [TESTS]."""
    ServedDevice.RNICSIM = arguments.pop(1)
    unittest.main(argv=arguments)
