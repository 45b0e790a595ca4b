#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The first accesses of a driver: configuration space, registers, a function-level reset; then two mistakes."""

import rnicsim
from rnicsim import abi

ENABLED = abi.config.kCommandMemory | abi.config.kCommandBusMaster


def main():
    device = rnicsim.device("cx5-100g", check=True)
    device.config_write(abi.config.kCommand, ENABLED, 2)
    print(f"magic {device.read32(abi.reg.kMagic):#x}")
    print(f"status {abi.DeviceStatus(device.read32(abi.reg.kStatus)).name}")

    # kStatus has 32 bits: the device refuses the access, and the check reports the mistake.
    try:
        device.read64(abi.reg.kStatus)
    except rnicsim.RegisterError as error:
        print("refused:", error)

    # A function-level reset clears Command, and PCI Express demands 100 ms before the next access.
    device.function_reset()
    device.config_write(abi.config.kCommand, ENABLED, 2)
    device.read32(abi.reg.kMagic)
    device.run(ms=100)
    device.read32(abi.reg.kMagic)

    for finding in device.findings():
        print(f"{finding.kind}: {finding.text} (docs/device.md, {finding.section})")


if __name__ == "__main__":
    main()
