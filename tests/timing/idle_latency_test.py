#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The idle latency is as in docs/timing.md, and each parameter changes the latency by the multiple given there.

usage: idle_latency_test.py path/to/rnicsim

The test reads the page's tables, and so checks them, too. Latencies are measured in the capture: from a request to the
same request many periods later, in nanoseconds of simulated time.
"""
import os
import pathlib
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import apps  # noqa: E402
from apps import Opcode  # noqa: E402

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "timing.md"
PERIODS = 40
PS = {"ps": 1, "ns": 1000, "us": 1000_000, "ms": 1000_000_000, "s": 1000_000_000_000}
RATE = {"Gb/s": 10 ** 9, "Mb/s": 10 ** 6, "Tb/s": 10 ** 12, "kb/s": 10 ** 3, "b/s": 1}
BYTES = {"B": 1, "KiB": 1024, "MiB": 1 << 20, "KB": 1000, "MB": 10**6}
CQE_BYTES = 64
# Bytes that perftest sends inline on such a device.
WRITE_INLINE = 220
SEND_INLINE = 236
UD_INLINE = 188


class Program:
    """A latency test of perftest: its column of the page, the request that the client repeats, and the number of
    results in a period."""

    def __init__(self, command, column, opcode, halves):
        self.command, self.column, self.opcode, self.halves = command, column, opcode, halves


READ = Program("ib_read_lat", "READ", Opcode.READ_REQUEST, 1)
WRITE = Program("ib_write_lat", "WRITE", Opcode.WRITE_ONLY, 2)
SEND = Program("ib_send_lat", "SEND", Opcode.SEND_ONLY, 2)
UC_WRITE = Program("ib_write_lat -c UC", "UC WRITE", 0x2a, 2)
UC_SEND = Program("ib_send_lat -c UC", "UC SEND", 0x24, 2)
UD_SEND = Program("ib_send_lat -c UD", "UD SEND", 0x64, 2)
PROGRAMS = READ, WRITE, SEND, UC_WRITE, UC_SEND, UD_SEND
DETH_BYTES, GRH_BYTES = 8, 40


def tables():
    """Every table of the page: a list of rows; each row is a dictionary with the table's headings as keys."""
    rows, heading = [], None
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip().strip("`") for cell in line.strip("|").split("|")] if line.startswith("|") else None
        if cells is None:
            heading = None
        elif heading is None:
            heading = cells
        elif not set(line) <= set("|-"):
            rows.append(dict(zip(heading, cells)))
    return rows


def value(text):
    """Durations in ps, rates in b/s, sizes in bytes."""
    if re.fullmatch(r"[\d.]+", text):
        return float(text)
    number, unit = re.fullmatch(r"([\d.]+) (\S+)", text).groups()
    scale = PS.get(unit) or RATE.get(unit) or BYTES[unit]
    return round(float(number) * scale)


def described():
    """Path -> (kind, value as text) of every parameter of the default system."""
    found = {}
    for line in apps.call("describe").out.splitlines():
        words = re.split(r"\s{2,}", line.strip())
        is_path = len(words) >= 4 and re.fullmatch(r"[a-z0-9_.]+", words[0])
        if is_path and words[1] in ("time", "rate", "bytes", "number"):
            found[words[0]] = words[1], words[2]
    return found


def defaults():
    return {path: value(text) for path, (_, text) in described().items()}


class Formula:
    """The page's formula."""

    def __init__(self, parameters):
        self.parameters = parameters

    def get(self, *paths):
        return sum(self.parameters[path] for path in paths)

    def time(self, size, rate):
        return -(-size * 8 * 10 ** 12 // rate)

    def pcie(self):
        transfers, encoding = {1: (2.5e9, 8 / 10), 2: (5e9, 8 / 10)}.get(
            self.get("nic.pcie.generation"), (8e9 * 2 ** (self.get("nic.pcie.generation") - 3), 128 / 130))
        return round(transfers * encoding * self.get("nic.pcie.lanes") * (1 - self.get("nic.pcie.dllp_share")))

    def tlps(self, n, largest):
        return max(1, -(-n // self.get(f"nic.pcie.{largest}")))

    def asks(self, n):
        return self.time(self.tlps(n, "max_read_request") * self.get("nic.pcie.request_header"), self.pcie())

    def svc(self, n, header):
        return self.time(n + self.tlps(n, "max_payload") * self.get(f"nic.pcie.{header}"), self.pcie())

    def read(self, n):
        return (self.asks(n) + self.svc(n, "completion_header")
                + self.get("nic.pcie.read_latency", "nic.pcie.read_internal"))

    def pieces(self, n):
        piece = self.get("nic.units.read_piece")
        pieces = [min(piece, n - at) for at in range(0, n, piece)]
        return (self.asks(pieces[0]) + sum(self.svc(size, "completion_header") for size in pieces)
                + self.get("nic.pcie.read_latency", "nic.pcie.read_internal"))

    def gathered(self, n, inline):
        """Time to read the payload; 0 if the WQE contains the payload."""
        return 0 if n <= inline else self.read(n)

    def write(self, n):
        return self.svc(n, "request_header") + self.get("nic.pcie.write_latency")

    def wire(self, t):
        frame = max(58 + t, self.get("nic.port.least_frame"))
        return self.time(frame + self.get("nic.port.overhead"), self.get("nic.port.rate"))

    def hop(self, t):
        return self.get("nic.tx.latency", "link.latency", "nic.rx.latency") + self.wire(t)

    def cqe_behind_payload(self):
        return self.svc(CQE_BYTES, "request_header")

    def post(self):
        return self.get("host.cpu.clock_read", "host.cpu.post_wqe", "host.cpu.ring_doorbell", "host.mmio_write_latency")

    def of(self, program, n):
        padded = (n + 3) // 4 * 4
        seen = self.get("host.cpu.detect")
        taken = seen + self.get("host.cpu.poll_cqe")
        if program is READ:
            return (self.post() + self.hop(16) + self.pieces(n) + self.hop(4 + padded) + self.write(n)
                    + self.cqe_behind_payload() + taken)
        if program in (WRITE, UC_WRITE):
            return (self.post() + self.gathered(n, WRITE_INLINE) + self.hop(16 + padded) + self.write(n) + seen)
        deth, grh, inline = (DETH_BYTES, GRH_BYTES, UD_INLINE) if program is UD_SEND else (0, 0, SEND_INLINE)
        return (self.post() + self.gathered(n, inline) + self.hop(deth + padded) + self.write(grh + n)
                + self.cqe_behind_payload() + taken)


class Measured:
    def __init__(self, program, result, packets):
        rows = apps.perftest_rows(result.lines("h1"))
        self.printed = apps.Latency(*rows[0])
        client = [packet.time for packet in packets
                  if packet.opcode == program.opcode and packet.source == "10.0.1.1"]
        # The first operations differ: the CQ is empty, and the receive ring is not yet read.
        self.span_ns = client[2 + PERIODS] - client[2]
        self.results = PERIODS * program.halves

    def excess_ps(self, expected_ps):
        """Measured minus expected time of all periods; exact to a nanosecond, the capture's resolution."""
        return self.span_ns * 1000 - self.results * expected_ps


class IdleLatency(apps.TestCase):
    def measure(self, program, size=2, settings=()):
        options = [word for path, text in settings for word in ("--set", f"{path}={text}")]
        result, packets = apps.run_with_capture(f"{program.command} -n {PERIODS + 4} -s {size}", *options)
        self.assert_succeeded(result)
        return Measured(program, result, packets)

    def assert_takes(self, program, expected_ps, measured, what=""):
        self.assertLess(abs(measured.excess_ps(expected_ps)), 1000,
                        f"{program.command} {what}: expected {expected_ps / 1000} ns, measured "
                        f"{measured.span_ns / measured.results} ns")


class Sums(IdleLatency):
    """The programs' latencies are as in the formula."""

    def check(self, program, size, settings=()):
        parameters = defaults() | {path: value(text) for path, text in settings}
        measured = self.measure(program, size, settings)
        expected = Formula(parameters).of(program, size)
        self.assert_takes(program, expected, measured, f"-s {size}")
        # perftest counts cycles of 1 ns and prints hundredths of a microsecond.
        self.assertLess(abs(measured.printed.typical - expected / 1e6), 0.0051 + 0.001)

    def test_read(self):
        self.check(READ, 2)

    def test_write(self):
        self.check(WRITE, 2)

    def test_send(self):
        self.check(SEND, 2)

    def test_unreliable(self):
        for program in (UC_WRITE, UC_SEND, UD_SEND):
            with self.subTest(program=program.command):
                self.check(program, 2)

    def test_sizes(self):
        for program, sizes in ((READ, (128, 257, 4096)), (WRITE, (128, 257, 4096)), (SEND, (128, 257, 4096)),
                               (UD_SEND, (189, 4096))):
            for size in sizes:
                with self.subTest(program=program.command, size=size):
                    self.check(program, size)

    def test_everything_changed(self):
        """All values are odd, and different enough that no two could be confused."""
        settings = [("host.cpu.clock_read", "31 ns"), ("host.cpu.post_wqe", "29 ns"),
                    ("host.cpu.ring_doorbell", "41 ns"), ("host.mmio_line_interval", "13 ns"),
                    ("host.mmio_write_latency", "211 ns"), ("nic.pcie.read_latency", "503 ns"),
                    ("nic.pcie.read_internal", "73 ns"), ("nic.pcie.write_latency", "131 ns"),
                    ("nic.tx.latency", "149 ns"), ("link.latency", "1009 ns"), ("nic.rx.latency", "227 ns"),
                    ("host.cpu.detect", "101 ns"), ("host.cpu.poll_cqe", "37 ns"), ("nic.pcie.generation", "2"),
                    ("nic.pcie.lanes", "8"), ("nic.pcie.dllp_share", "0.04"), ("nic.pcie.max_payload", "128 B"),
                    ("nic.pcie.max_read_request", "256 B"), ("nic.pcie.request_header", "30 B"),
                    ("nic.pcie.completion_header", "16 B"), ("nic.port.rate", "40 Gb/s"),
                    ("nic.port.overhead", "20 B"), ("nic.port.least_frame", "100 B")]
        for program in (READ, WRITE, SEND, UD_SEND):
            with self.subTest(program=program.command):
                self.check(program, 300, settings)


class Multiples(IdleLatency):
    """Doubling a parameter changes ib_read_lat by exactly the multiple in the page's table."""

    @classmethod
    def setUpClass(cls):
        cls.parameters = defaults()
        cls.rows = {row["parameter"]: row for row in tables() if "READ" in row}

    def check(self, program, chosen):
        base = Formula(self.parameters).of(program, 2)
        for path in chosen:
            with self.subTest(program=program.command, parameter=path):
                doubled = 2 * self.parameters[path]
                measured = self.measure(program, 2, [(path, f"{doubled}ps")])
                multiple = int(self.rows[path][program.column])
                self.assert_takes(program, base + multiple * self.parameters[path], measured, f"{path} doubled")

    def test_read(self):
        self.check(READ, self.rows)

    def test_write(self):
        self.check(WRITE, ["nic.pcie.read_latency", "nic.pcie.write_latency", "link.latency", "host.cpu.poll_cqe",
                           "host.cpu.detect"])

    def test_send(self):
        self.check(SEND, ["nic.pcie.read_latency", "link.latency", "host.cpu.poll_cqe", "host.cpu.detect"])


class Page(apps.TestCase):
    """The page lists every parameter that is a time, with its default."""

    def test_names_every_latency(self):
        listed = {row["parameter"] for row in tables() if "READ" in row}
        self.assertEqual(listed, {path for path, (kind, _) in described().items() if kind == "time"})

    def test_defaults(self):
        shown = described()
        for row in tables():
            if "parameter" in row:
                self.assertEqual(value(row["default"]), value(shown[row["parameter"]][1]), row["parameter"])

    def test_multiples_are_the_formulas(self):
        parameters = defaults()
        for row in tables():
            for program in (READ, WRITE, SEND):
                if program.column in row:
                    path = row["parameter"]
                    doubled = parameters | {path: 2 * parameters[path]}
                    moved = Formula(doubled).of(program, 2) - Formula(parameters).of(program, 2)
                    self.assertEqual(moved, int(row[program.column]) * parameters[path], (path, program.column))

    def test_sums(self):
        formula = Formula(defaults())
        sums = {row["program"]: row for row in tables() if "program" in row}
        for program in PROGRAMS:
            row, expected = sums[program.command], formula.of(program, 2)
            self.assertEqual(row["sum"], f"{expected / 1000:.3f} ns")
            self.assertEqual(row["printed"], f"{expected / 1e6:.2f} us")


if __name__ == "__main__":
    apps.main()
