#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`rnicsim device`: the protocol vfio-user, command by command.

usage: device_vfio_user_test.py RNICSIM [TESTS]
"""

import errno
import os
import struct
import sys

from machines import MEMORY_AT, MEMORY_BYTES, Refused, abi
from served_device import ServedDevice, main


class VfioUser(ServedDevice):
    def test_interrupts_of_vfio_user(self):
        self.start(vfio=["h0"])
        machine = self.machine("h0")
        info = machine.ask(machine.GET_IRQ_INFO, struct.pack("<IIII", 16, 0, machine.MSIX, 0))
        self.assertEqual(struct.unpack("<IIII", info), (16, 1, 2, abi.kMsixVectors))
        for index in (0, 1, 3, 4):
            info = machine.ask(machine.GET_IRQ_INFO, struct.pack("<IIII", 16, 0, index, 0))
            self.assertEqual(struct.unpack("<IIII", info), (16, 0, index, 0))
        # The machine triggers interrupts itself: all vectors, and selected vectors.
        machine.set_irqs(machine.NONE | machine.TRIGGER, 0, 8)
        self.assertTrue(all(machine.wait_interrupt(vector) for vector in range(8)))
        machine.set_irqs(machine.BOOL | machine.TRIGGER, 2, 3, data=b"\1\0\1")
        self.assertEqual([vector for vector in range(8) if machine.wait_interrupt(vector)], [2, 4])
        # Eventfds outlive each kind of reset.
        driver = self.driver(machine, 1)
        machine.ask(machine.RESET)
        driver.bring_up()
        # An interrupt without an eventfd becomes pending.
        machine.set_irqs(machine.EVENTFD | machine.TRIGGER, 0, 1)
        driver.commands._input_data[:16] = bytes(16)
        machine.write32(abi.reg.kCommandDoorbell, 1)
        self.assertFalse(machine.wait_interrupt(0))
        machine.set_irqs(machine.EVENTFD | machine.TRIGGER, 0, 1, machine.eventfds[:1])
        driver.bring_up()
        machine.set_irqs(machine.NONE | machine.TRIGGER, 0, 0)
        self.assertEqual(machine.config_read(abi.config.kMsixControl, 2) & abi.config.kMsixEnable, 0)
        for wrong in ((machine.EVENTFD | machine.TRIGGER, 63, 2), (machine.TRIGGER, 0, 1), (machine.EVENTFD, 0, 1),
                      (machine.NONE | machine.BOOL | machine.TRIGGER, 0, 1), (machine.BOOL | machine.TRIGGER, 0, 1)):
            with self.assertRaises(Refused) as refused:
                machine.set_irqs(*wrong)
            self.assertEqual(refused.exception.errno, errno.EINVAL, wrong)
        with self.assertRaises(Refused) as refused:
            machine.set_irqs(machine.NONE | machine.MASK, 0, 1)
        self.assertEqual(refused.exception.errno, errno.EOPNOTSUPP)
        with self.assertRaises(Refused):
            machine.set_irqs(machine.EVENTFD | machine.TRIGGER, 0, 3, machine.eventfds[:2])
        self.alive(machine)
        self.end()

    def test_regions_of_vfio_user(self):
        self.start(vfio=["h0"])
        machine = self.machine("h0")
        info = machine.ask(machine.GET_INFO, struct.pack("<IIII", 16, 0, 0, 0))
        self.assertEqual(struct.unpack("<IIII", info), (16, 3, 9, 5))
        for index in range(9):
            info = machine.ask(machine.GET_REGION_INFO, struct.pack("<IIIIQQ", 32, 0, index, 0, 0, 0))
            size = {0: abi.kBarSize, 7: 4096}.get(index, 0)
            self.assertEqual(struct.unpack("<IIIIQQ", info), (32, 3 if size else 0, index, 0, size, 0))
            info = machine.ask(machine.GET_REGION_IO_FDS, struct.pack("<IIII", 16, 0, index, 0))
            self.assertEqual(struct.unpack("<IIII", info), (16, 0, index, 0))
        self.assertEqual(len(machine.region_read(machine.CONFIG, 0, 4096)), 4096)
        # Writes without replies, and several writes in a message.
        machine.tell(machine.REGION_WRITE, struct.pack("<QII", abi.config.kCommand, machine.CONFIG, 2) + b"\2\0",
                     flags=machine.NO_REPLY)
        self.assertEqual(machine.config_read(abi.config.kCommand, 2), 2)
        writes = struct.pack("<QIIQ", abi.config.kCommand, machine.CONFIG, 2, 6)
        answer = machine.ask(machine.WRITE_MULTI, struct.pack("<Q", 2) + 2 * writes)
        self.assertEqual((answer, machine.config_read(abi.config.kCommand, 2)), (struct.pack("<Q", 2), 6))
        for command, body in ((machine.REGION_READ, struct.pack("<QII", 4095, machine.CONFIG, 2)),
                              (machine.REGION_READ, struct.pack("<QII", 0, 9, 4)),
                              (machine.REGION_READ, struct.pack("<QII", 0, 1, 4)),
                              (machine.REGION_READ, struct.pack("<QII", 0, machine.BAR0, 2 << 20)),
                              (machine.REGION_READ, struct.pack("<QII", 2**64 - 1, machine.BAR0, 4)),
                              (machine.REGION_WRITE, struct.pack("<QII", 0, machine.CONFIG, 4) + b"123"),
                              (machine.WRITE_MULTI, struct.pack("<Q", 2**63) + writes),
                              (machine.GET_INFO, b"123"), (machine.GET_INFO, struct.pack("<IIII", 15, 0, 0, 0)),
                              (machine.GET_REGION_INFO, struct.pack("<IIIIQQ", 32, 0, 9, 0, 0, 0)),
                              (machine.GET_IRQ_INFO, struct.pack("<IIII", 16, 0, 5, 0)),
                              (machine.DMA_READ, bytes(16)), (14, b""), (99, b""), (machine.VERSION, bytes(4))):
            with self.assertRaises(Refused) as refused:
                machine.ask(command, body)
            self.assertEqual(refused.exception.errno, errno.EINVAL, (command, body))
        with self.assertRaises(Refused) as refused:
            machine.ask(machine.FEATURE, struct.pack("<II", 8, 1 << 16 | 1))
        self.assertEqual(refused.exception.errno, errno.EOPNOTSUPP)
        self.end()

    def test_maps_of_vfio_user(self):
        self.start(vfio=["h0"])
        machine = self.machine("h0")
        free = MEMORY_AT + MEMORY_BYTES
        for wrong, number in (((MEMORY_AT, 4096), errno.EEXIST), ((MEMORY_AT - 4096, 8192), errno.EEXIST),
                              ((free - 4096, 8192), errno.EEXIST), ((free, 0), errno.EINVAL),
                              ((2**64 - 4096, 8192), errno.EINVAL), ((free, MEMORY_BYTES, 4096), errno.EINVAL),
                              ((free, 4096, 1), errno.EINVAL), ((free, 4096, 0, 4), errno.EINVAL),
                              ((free, 4096, 2**63), errno.EINVAL)):
            with self.assertRaises(Refused) as refused:
                machine.share(*wrong)
            self.assertEqual(refused.exception.errno, number, wrong)
        with self.assertRaises(Refused):
            machine.share(free, 4096, descriptors=[machine.file, machine.file])
        reader = os.open(f"/proc/self/fd/{machine.file}", os.O_RDONLY)
        with self.assertRaises(Refused) as refused:
            machine.share(free, 4096, descriptors=[reader])
        self.assertEqual(refused.exception.errno, errno.EACCES)
        os.close(reader)
        for wrong in ((MEMORY_AT, 4096), (free, 4096), (MEMORY_AT + 4096, MEMORY_BYTES - 4096)):
            with self.assertRaises(Refused) as refused:
                machine.unshare(*wrong)
            self.assertEqual(refused.exception.errno, errno.ENOENT)
        self.assertEqual(machine.unshare(MEMORY_AT, MEMORY_BYTES), struct.pack("<IIQQ", 24, 0, MEMORY_AT, MEMORY_BYTES))
        machine.share(MEMORY_AT, MEMORY_BYTES // 2)
        machine.share(MEMORY_AT + MEMORY_BYTES // 2, MEMORY_BYTES // 2, MEMORY_BYTES // 2)
        self.driver(machine, 1)
        machine.unshare(0, 0, flags=2)  # all regions
        machine.share(MEMORY_AT, MEMORY_BYTES)
        self.end()


if __name__ == "__main__":
    main(sys.argv)
