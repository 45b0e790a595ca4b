#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
`rnicsim device`: virtual machines enumerate the NICs, reset them and exchange messages; simulated time follows the wall
clock.

usage: device_machines_test.py RNICSIM [TESTS]
"""

import os
import pathlib
import struct
import sys
import time

from machines import QemuMachine, abi
from served_device import DEVICE_STATUS, LENGTH, ServedDevice, main

from driver import Driver


class Machines(ServedDevice):
    def enumerate(self, machine, extended):
        self.alive(machine)
        self.assertEqual(machine.capabilities(), {0x10: abi.config.kPcieCapability, 0x11: abi.config.kMsixCapability,
                                                  0x01: abi.config.kPowerCapability})
        for half in (0, 4):
            machine.config_write(abi.config.kBar0 + half, 0xffff_ffff)
        low, high = (machine.config_read(abi.config.kBar0 + half) for half in (0, 4))
        self.assertEqual((1 << 64) - (high << 32 | low & ~0xf), abi.kBarSize)
        self.assertEqual(low & 0xf, 0xc)  # 64 bits, prefetchable
        machine.config_write(abi.config.kBar0, 0xfe00_0000)
        machine.config_write(abi.config.kBar0 + 4, 0)
        machine.config_write(abi.config.kCommand, abi.config.kCommandMemory, 2)
        self.assertEqual(machine.read32(abi.reg.kMagic), abi.kMagicValue)
        self.assertEqual(machine.read32(abi.reg.kAbiVersion) >> 16, abi.kAbiMajor)
        self.assertEqual(machine.read(abi.reg.kMagic, 2), b"\xff\xff")  # no such access width
        self.assertEqual(machine.config_read(DEVICE_STATUS, 2), 0x9)
        machine.config_write(DEVICE_STATUS, 0xf, 2)
        self.assertEqual(machine.config_read(DEVICE_STATUS, 2), 0)
        table = abi.kMsixTable
        self.assertEqual(machine.read(table + 12, 4), b"\1\0\0\0")  # masked; little-endian
        machine.write(table, struct.pack("<I", 0xfee0_1004))
        self.assertEqual(machine.read(table, 4), struct.pack("<I", 0xfee0_1004))
        if extended:
            self.assertEqual(machine.config_read(abi.config.kErrorReporting) & 0xffff, 1)
            self.assertEqual(machine.config_read(abi.config.kSerialNumber) & 0xffff, 3)

    def test_enumeration(self):
        self.start(qemu=["h0"], vfio=["h1"])
        self.enumerate(self.machine("h0", QemuMachine), extended=False)
        self.enumerate(self.machine("h1"), extended=True)
        self.end()

    def reset(self, machine):
        driver = self.driver(machine, 1)
        machine.function_reset()
        self.assertEqual(machine.read32(abi.reg.kMagic), 0xffff_ffff)  # memory space is off
        self.assertEqual(machine.config_read(DEVICE_STATUS, 2), 0x9)
        self.assertEqual(machine.config_read(abi.config.kDeviceControl, 2), 0x2810)
        driver.bring_up()

    def test_a_function_level_reset(self):
        self.start(qemu=["h0"], vfio=["h1"])
        self.reset(self.machine("h0", QemuMachine))
        self.reset(self.machine("h1"))
        self.end()

    def test_qemu_and_vfio_user(self):
        self.start("--pcap", self.path("frames.pcapng"), "--audit", "--waterfall", qemu=["h0"], vfio=["h1"])
        self.exchange(self.machine("h0", QemuMachine), self.machine("h1"))
        summary = self.end()
        self.assertRegex(summary, r"nic\.tx\.packets +6 +6 ")
        self.assertIn("nic.pcie.interrupts", summary)
        self.assertGreater(self.path("frames.pcapng").stat().st_size, 2 * LENGTH)

    def test_two_of_qemu_behind_a_switch(self):
        self.start("--topology", "star:2", qemu=["h0", "h1"])
        self.exchange(self.machine("h0", QemuMachine), self.machine("h1", QemuMachine))
        self.end()

    def test_memory_by_messages(self):
        self.start("--record", self.path("run.trace"), vfio=["h0", "h1"])
        one, other = self.machine("h0", shares=False), self.machine("h1")
        other.peers = [one]
        self.exchange(one, other)
        self.assertIn(one.DMA_READ, [asked[0] for asked in one.asked])
        self.assertIn(one.DMA_WRITE, [asked[0] for asked in one.asked])
        self.end()

    def test_the_others_have_hosts(self):
        """A topology with a host that is not served to a machine."""
        self.start("--topology", "star:3", vfio=["h0", "h2"])
        self.exchange(self.machine("h0"), self.machine("h2"))
        self.end()

    def test_a_reset_under_traffic(self):
        self.start(qemu=["h0"], vfio=["h1"])
        one, other = self.machine("h0", QemuMachine), self.machine("h1")
        a, source, b, target = self.connected(one, other)
        for _ in range(8):
            a.send.post(abi.SendOpcode.write, target.remote(), source.segment(LENGTH))
        a.send.ring(one)
        one.function_reset()
        self.alive(one)
        self.alive(other)
        other.ask(other.RESET)
        one.ask(one.RESET)
        for machine in (one, other):
            while any(machine.wait_interrupt(vector) for vector in range(4)):
                pass
        self.exchange(one, other)
        self.end()

    def test_it_sleeps_while_nothing_is_asked(self):
        self.start(qemu=["h0"], vfio=["h1"])
        one, other = self.machine("h0", QemuMachine), self.machine("h1")
        self.exchange(one, other)

        def cpu():
            fields = pathlib.Path(f"/proc/{self.program.pid}/stat").read_text().rpartition(")")[2].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

        before = cpu()
        time.sleep(2)
        self.assertLess(cpu() - before, 0.3)
        self.end()

    def test_time_goes_with_the_wall_clock(self):
        """The device's clock ticks in simulated time, also without accesses."""
        self.start(vfio=["h0"])
        machine = self.machine("h0")
        self.driver(machine, 1)
        khz = machine.read32(abi.reg.kCoreClockKhz)

        def clock():
            return int.from_bytes(machine.read(abi.reg.kClock, 8), "big") / khz / 1000

        before, wall = clock(), time.monotonic()
        time.sleep(1)
        passed, wall = clock() - before, time.monotonic() - wall
        self.assertGreater(passed, 0.9)
        self.assertLess(passed, wall + 0.1)
        self.end()

    def test_far_timers_wait_for_the_wall_clock(self):
        """The peer is gone: the queue pair's retries, each with a timeout of 67 ms, take the machine's real time."""
        self.start(vfio=["h0", "h1"])
        one, other = self.machine("h0"), self.machine("h1")
        a, source, _, target = self.connected(one, other)
        other.function_reset()
        began = time.monotonic()
        a.cq.arm(one)
        a.send.post(abi.SendOpcode.write, target.remote(), source.segment(64))
        a.send.ring(one)
        self.assertTrue(one.wait_interrupt(Driver.EQ_VECTOR, ms=1))
        self.assertEqual(a.cq.poll().syndrome, abi.CqeSyndrome.transport_retry_exceeded)
        self.assertGreater(time.monotonic() - began, 7 * 0.067)
        self.end()


if __name__ == "__main__":
    main(sys.argv)
