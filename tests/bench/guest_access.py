# SPDX-License-Identifier: Apache-2.0
"""
Time of a virtual machine's access to the NIC, in us of this machine, beside the time of the bare protocol: the same
access to bare_device.c, a function without a model. A register, and a command from its doorbell to its interrupt. A
Python program imitates the virtual machine; with --guest a Linux guest in QEMU reads a register, too.

    guest_access.py RNICSIM [--guest]

Not a test.
"""
import contextlib
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[0] / "unit" / "guest"))

from machines import QemuMachine, VfioMachine, abi

from driver import COMMAND_VECTOR, Driver

ROUNDS, ACCESSES, COMMANDS = 20, 250, 50


def timed(count, access):
    taken = []
    for _ in range(count):
        began = time.perf_counter()
        access()
        taken.append((time.perf_counter() - began) * 1e6)
    return taken


def compare(name, count, accesses):
    """`accesses`: {label: access}, the bare protocol's first. In turns, because the load of a machine changes."""
    taken = {label: [] for label in accesses}
    for _ in range(ROUNDS):
        for label, access in accesses.items():
            taken[label] += timed(count, access)
    bare = None
    for label, times in taken.items():
        bare = bare or times
        show(name, label, [(min(times), min(bare)), (statistics.median(times), statistics.median(bare))])


def show(name, label, pairs):
    print(f"{name:<26}{label:<20}" + "".join(f"{time:8.1f} {time / bare:6.2f} x" for time, bare in pairs), flush=True)


def command(driver):
    entry = driver.commands._entries.entry(0)

    def execute():
        entry.owner = 1
        driver.device.write32(abi.reg.kCommandDoorbell, 1)
        assert driver.device.wait_interrupt(COMMAND_VECTOR, ms=1) and entry.owner == 0

    return execute


def bare_command(machine):
    def execute():
        machine.write32(abi.reg.kCommandDoorbell, 1)
        assert machine.wait_interrupt(COMMAND_VECTOR, ms=1)

    return execute


@contextlib.contextmanager
def started(*words):
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield process
    finally:
        process.terminate()
        process.communicate()


def compiled(name, folder):
    program = folder / name.removesuffix(".c")
    subprocess.run(["cc", "-O1", "-o", program, HERE / name], check=True)
    return program


def imitated(rnicsim, bare, folder):
    with started(bare, folder / "bare", folder / "bare.qtest") as nothing, \
         started(rnicsim, "device", "--qemu", f"h0={folder / 'h0'}", "--qtest", f"h0={folder / 'qtest'}",
                 "--vfio-user", f"h1={folder / 'h1'}") as device:
        for program, lines in ((nothing, 1), (device, 2)):
            for _ in range(lines):
                program.stdout.readline()
        function = QemuMachine(folder / "bare", folder / "bare.qtest")
        qemu, vfio = QemuMachine(folder / "h0", folder / "qtest"), VfioMachine(folder / "h1")
        drivers = [Driver(machine, number).bring_up() for number, machine in enumerate((qemu, vfio), 1)]
        compare("configuration space", ACCESSES, {
            "bare": lambda: function.config_read(0), "x-pci-proxy": lambda: qemu.config_read(0),
            "vfio-user": lambda: vfio.config_read(0)})
        compare("a register", ACCESSES, {
            "bare": lambda: function.read32(0), "x-pci-proxy": lambda: qemu.read32(0),
            "vfio-user": lambda: vfio.read32(0)})
        compare("doorbell to interrupt", COMMANDS, {
            "bare": bare_command(function), "x-pci-proxy (command)": command(drivers[0]),
            "vfio-user (command)": command(drivers[1])})
        for machine in (function, qemu, vfio):
            machine.close()


def in_guest(rnicsim, bare, folder):
    """A Linux guest reads a register by a mapping of BAR0."""
    reader = compiled("guest_reads.c", folder)
    words = [rnicsim, "vm", "--guests", "1", "--driver", "none", "--add", reader, "--on", "g0",
             f"for i in $(seq {ROUNDS}); do guest_reads 00:03.0; sleep 0.1; done"]
    found = {}
    for label in ("bare", "x-pci-proxy"):
        with contextlib.ExitStack() as stack:
            more = []
            if label == "bare":
                sockets = folder / "guest", folder / "guest.qtest"
                stack.enter_context(started(bare, *sockets)).stdout.readline()
                more = ["--device", f"g0={sockets[0]},qtest={sockets[1]}"]
            text = subprocess.run([*words, *more], capture_output=True, text=True, check=True).stdout
        least, median = zip(*re.findall(r"least ([0-9.]+) median ([0-9.]+)", text))
        found[label] = min(map(float, least)), statistics.median(map(float, median))
    for label, times in found.items():
        show("a register, in a guest", label, list(zip(times, found["bare"])))


def main(rnicsim, *options):
    print(f"{'':<46}{'least':>8} {'':8}{'median':>8}  us, x the bare protocol; load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        bare = compiled("bare_device.c", folder)
        imitated(rnicsim, bare, folder)
        if "--guest" in options:
            in_guest(rnicsim, bare, folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
