#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Virtual machines that write random values to random registers, with random memory behind the rings: the device stays up,
and serves a driver after a reset. RNICSIM_GARBAGE_SECONDS: duration for each protocol; RNICSIM_SEED.

usage: guest_garbage_test.py RNICSIM
"""

import os
import pathlib
import random
import struct
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "unit" / "guest"))

from machines import MEMORY_AT, MEMORY_BYTES, QemuMachine, abi
from served_device import ServedDevice, main

SECONDS = float(os.environ.get("RNICSIM_GARBAGE_SECONDS", "3"))
SEED = int(os.environ.get("RNICSIM_SEED", "1"))
ENABLED = abi.config.kCommandMemory | abi.config.kCommandBusMaster


class Garbage(ServedDevice):
    def value(self, size):
        """Random bytes, or a value that could be an address, a number or a mask."""
        kind = self.dice.randrange(4)
        if kind == 0:
            return self.dice.randbytes(size)
        number = {1: MEMORY_AT + self.dice.randrange(MEMORY_BYTES) // 4096 * 4096, 2: self.dice.randrange(64),
                  3: 1 << self.dice.randrange(8 * size)}[kind]
        return (number & ((1 << 8 * size) - 1)).to_bytes(size, self.dice.choice(["big", "little"]))

    def offset(self):
        """An offset in the BAR: a defined register, a doorbell, the MSI-X table, or any other."""
        kind = self.dice.randrange(5)
        if kind == 0:
            return self.dice.choice(list(abi.REGISTERS))
        if kind == 1:
            page = abi.kUarBase + self.dice.randrange(4) * abi.kUarPageSize
            return page + self.dice.choice([0x0, 0x10, 0x20, 0x800, 0x900, self.dice.randrange(4096)])
        if kind == 2:
            return abi.kMsixTable + 4 * self.dice.randrange(4 * abi.kMsixVectors + 2)
        return abi.reg.kCommandDoorbell if kind == 3 else self.dice.randrange(abi.kBarSize)

    def command_entry(self, machine):
        """A command with random contents in the command queue."""
        mailbox = 4096 * (1 + self.dice.randrange(8))
        header = struct.pack(">HHI", self.dice.choice(list(abi.CommandOpcode)), 0, self.dice.randrange(4))
        machine.memory[mailbox:mailbox + 256] = header + self.dice.randbytes(248)
        entry = abi.CommandEntry(owner=1, input=MEMORY_AT + mailbox, input_bytes=256, output=MEMORY_AT + 65536,
                                 output_bytes=4096)
        machine.memory[0:64] = bytes(entry)
        machine.write64(abi.reg.kCommandQueueBase, MEMORY_AT)
        machine.write32(abi.reg.kCommandDoorbell, 1)

    def step(self, machine):
        kind = self.dice.randrange(20)
        if kind == 0:
            machine.config_write(self.dice.randrange(0x100), self.dice.getrandbits(32) & ~0x8000_8000, 4)
            machine.config_write(abi.config.kPowerControl, 0, 2)
            machine.config_write(abi.config.kCommand, ENABLED, 2)
        elif kind == 1:
            machine.read(self.offset(), self.dice.choice([1, 2, 4, 8]))
        elif kind == 2 and self.dice.randrange(8) == 0:
            machine.function_reset()
            machine.config_write(abi.config.kCommand, ENABLED, 2)
        elif kind < 6:
            self.command_entry(machine)
        else:
            machine.write(self.offset(), self.value(self.dice.choice([1, 2, 4, 4, 4, 8, 8])))

    def spoil(self, host, kind):
        self.dice = random.Random(SEED)
        machine = self.machine(host, *kind)
        machine.memory[:] = self.dice.randbytes(MEMORY_BYTES)
        machine.config_write(abi.config.kCommand, ENABLED, 2)
        steps, end = 0, time.monotonic() + SECONDS
        while time.monotonic() < end:
            self.step(machine)
            steps += 1
            if isinstance(machine, QemuMachine) and steps % 64 == 0:
                machine.wait_interrupt(0)  # takes pending interrupts
        machine.function_reset()
        machine.interrupts = []
        print(f"{host}: {steps} steps, seed {SEED}")
        return machine

    def test_garbage(self):
        self.start(qemu=["h0"], vfio=["h1"])
        one, other = self.spoil("h0", [QemuMachine]), self.spoil("h1", [])
        for machine in (one, other):
            while any(machine.wait_interrupt(vector) for vector in range(4)):
                pass
        self.exchange(one, other)
        self.end()


if __name__ == "__main__":
    main(sys.argv)
