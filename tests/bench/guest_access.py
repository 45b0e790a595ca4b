# SPDX-License-Identifier: Apache-2.0
"""
Time of a virtual machine's access to `rnicsim device`, in us of this machine: a register, and a command from its
doorbell to its interrupt. For comparison, the time of the socket alone: another process echoes as many bytes. A Python
program imitates the virtual machine and takes a part of every row.

    guest_access.py RNICSIM

Not a test.
"""
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "unit" / "guest"))

from machines import QemuMachine, VfioMachine, abi

from driver import COMMAND_VECTOR, Driver

READS, COMMANDS = 5000, 1000


def timed(count, access):
    """Least and median time."""
    taken = []
    for _ in range(count):
        began = time.perf_counter()
        access()
        taken.append((time.perf_counter() - began) * 1e6)
    return min(taken), statistics.median(taken)


def show(name, protocol, taken):
    print(f"{name:<34}{protocol:<14}{taken[0]:8.1f}{taken[1]:8.1f}")


def echo(size):
    """A peer that only returns the received bytes."""
    near, far = socket.socketpair()
    child = os.fork()
    if child == 0:
        near.close()
        while data := far.recv(4096):
            far.sendall(data)
        os._exit(0)
    far.close()

    def ask():
        near.sendall(bytes(size))
        assert len(near.recv(4096)) == size

    taken = timed(READS, ask)
    near.close()
    os.waitpid(child, 0)
    return taken


def command(driver):
    entry = driver.commands._entries.entry(0)

    def execute():
        entry.owner = 1
        driver.device.write32(abi.reg.kCommandDoorbell, 1)
        assert driver.device.wait_interrupt(COMMAND_VECTOR, ms=1) and entry.owner == 0

    return execute


def main(rnicsim):
    print(f"{'':<34}{'':<14}{'least':>8}{'median':>8}  us")
    show("echo of 32 bytes, a process", "", echo(32))
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        device = subprocess.Popen([rnicsim, "device", "--once", "--qemu", f"h0={path / 'h0'}", "--qtest",
                                   f"h0={path / 'qtest'}", "--vfio-user", f"h1={path / 'h1'}"],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for _ in range(2):
            device.stdout.readline()
        machines = {"x-pci-proxy": QemuMachine(path / "h0", path / "qtest"), "vfio-user": VfioMachine(path / "h1")}
        for number, (protocol, machine) in enumerate(machines.items()):
            driver = Driver(machine, number + 1).bring_up()
            show("a word of configuration space", protocol, timed(READS, lambda: machine.config_read(0)))
            show("query_device, with its interrupt", protocol, timed(COMMANDS, command(driver)))
        for machine in machines.values():
            machine.close()
        device.communicate()


if __name__ == "__main__":
    main(sys.argv[1])
