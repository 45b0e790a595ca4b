# SPDX-License-Identifier: Apache-2.0
"""
Runs rnicsim from a test and reads the results of a run: labelled output, perftest's tables, results, captures.

A test of the rungs apps and timing gives the path of rnicsim as its first argument and ends with `apps.main()`.
"""
import atexit
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

# Seconds of real time. Large enough that only a run that hangs reaches the limit, on a slow machine too.
RUN_SECONDS = 1000
SKIPPED = 77  # exit status by which ctest counts a test as skipped
PROGRAMS = pathlib.Path(__file__).resolve().parents[1] / "apps" / "programs"  # sources of the programs that tests run
REMOTE_SHELL = PROGRAMS.with_name("remote_shell.py")

_settings = {"rnicsim": None, "full": False}
_built = {}


def main():
    """Runs the calling module's tests: `test.py path/to/rnicsim [--full] [unittest's own arguments]`."""
    _settings["rnicsim"] = os.path.abspath(sys.argv[1])
    arguments = sys.argv[2:]
    if "--full" in arguments:
        arguments.remove("--full")
        _settings["full"] = True
    outcome = unittest.main(argv=[sys.argv[0], *arguments], verbosity=2, exit=False).result
    if not outcome.wasSuccessful():
        sys.exit(1)
    # unittest also lists a class that is skipped as a whole; none of its tests is counted in testsRun.
    skipped_alone = sum(isinstance(test, unittest.TestCase) for test, _ in outcome.skipped)
    sys.exit(SKIPPED if outcome.skipped and skipped_alone == outcome.testsRun else 0)


def rnicsim():
    return _settings["rnicsim"]


def full():
    return _settings["full"]


@dataclasses.dataclass
class Result:
    """Results of a run. `out` and `err` are text; `status` is the exit status as a shell gives it (128 + signal)."""
    command: list
    status: int
    out: str
    err: str

    def lines(self, host):
        """A host's lines of standard output, without the label."""
        return labelled(self.out, host)

    def text(self, host):
        return "\n".join(self.lines(host))

    def errors(self, host):
        return "\n".join(labelled(self.err, host))

    def summary(self):
        """Text from the line that begins with `---` to the end; empty if there is no such line."""
        start = self.out.find("\n--- ")
        return self.out[start + 1:] if start >= 0 else self.out if self.out.startswith("--- ") else ""

    def programs_output(self):
        """All lines that programs printed, in their order of arrival."""
        return [line for line in self.out.splitlines() if re.match(r"h\d+\| ", line)]

    def __str__(self):
        return f"{' '.join(self.command)}\nstatus {self.status}\n{self.out}\n{self.err}"


def labelled(text, host):
    mark = f"{host}| "
    return [line[len(mark):] for line in text.splitlines() if line.startswith(mark)]


def shell_status(returncode):
    return returncode if returncode >= 0 else 128 - returncode


def start(*arguments, **options):
    """Starts rnicsim as a separate process with pipes for its output. The environment variable RNICSIM_TEST_ENGINE
    selects the engine of `rnicsim run`."""
    command = [rnicsim(), *map(str, arguments)]
    if arguments[0] == "run" and "RNICSIM_TEST_ENGINE" in os.environ:
        command[2:2] = ["--engine", os.environ["RNICSIM_TEST_ENGINE"]]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, errors="replace", **options)


def finish(process, timeout=RUN_SECONDS):
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"no end after {timeout} s: {' '.join(process.args)}\n{out}\n{err}") from None
    return Result(process.args, shell_status(process.returncode), out, err)


def call(*arguments, timeout=RUN_SECONDS, **options):
    return finish(start(*arguments, **options), timeout)


def run(program, *options, timeout=RUN_SECONDS, **popen):
    """`rnicsim run OPTIONS -- PROGRAM`."""
    return call("run", *options, "--", *program.split(), timeout=timeout, **popen)


def run_on(commands, *options, timeout=RUN_SECONDS, **popen):
    """`rnicsim run OPTIONS --on HOST COMMAND ...`, for pairs (host, command)."""
    on = [word for host, command in commands for word in ("--on", host, command)]
    return call("run", *options, *on, timeout=timeout, **popen)


@contextlib.contextmanager
def folder():
    with tempfile.TemporaryDirectory(prefix="rnicsim-test-") as path:
        yield pathlib.Path(path)


def run_with_results(program, *options, **more):
    """The result of a run and the JSON that it wrote with --json."""
    with folder() as path:
        result = run(program, *options, "--json", path / "results.json", **more)
        return result, read_json(path / "results.json")


def run_with_capture(program, *options, **more):
    """The result of a run and its captured packets."""
    with folder() as path:
        result = run(program, *options, "--pcap", path / "capture.pcapng", **more)
        return result, read_capture(path / "capture.pcapng")


def read_json(path):
    return json.loads(path.read_text())


# --- perftest

def perftest_rows(lines):
    """The rows of a perftest table, each a list of numbers."""
    rows = []
    in_table = False
    for line in lines:
        if line.lstrip().startswith("#bytes"):
            in_table = True
        elif in_table and re.fullmatch(r"[\s\d.]+", line) and line.strip():
            rows.append([float(word) for word in line.split()])
    return rows


@dataclasses.dataclass
class Latency:
    """A row of a latency test, in us."""
    size: float
    iterations: float
    least: float
    most: float
    typical: float
    average: float
    deviation: float
    percentile_99: float
    percentile_999: float


@dataclasses.dataclass
class Bandwidth:
    """A row of a bandwidth test with --report_gbits; both rates in Gb/s."""
    size: float
    iterations: float
    peak: float
    average: float
    message_rate: float


# --- Captures

ETHERNET_BYTES = 14
IPV4_BYTES = 20
UDP_BYTES = 8
BTH_BYTES = 12
ICRC_BYTES = 4
ROCE_PORT = 4791


class Opcode:
    SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_LAST_IMM, SEND_ONLY, SEND_ONLY_IMM = range(6)
    WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_LAST_IMM, WRITE_ONLY, WRITE_ONLY_IMM = range(6, 12)
    READ_REQUEST, READ_FIRST, READ_MIDDLE, READ_LAST, READ_ONLY, ACK = range(12, 18)


# Bytes between BTH and payload.
EXTENDED_BYTES = {Opcode.SEND_LAST_IMM: 4, Opcode.SEND_ONLY_IMM: 4, Opcode.WRITE_FIRST: 16, Opcode.WRITE_ONLY: 16,
                  Opcode.WRITE_LAST_IMM: 4, Opcode.WRITE_ONLY_IMM: 20, Opcode.READ_REQUEST: 16, Opcode.READ_FIRST: 4,
                  Opcode.READ_LAST: 4, Opcode.READ_ONLY: 4, Opcode.ACK: 4,
                  0x13: 28, 0x14: 28,  # COMPARE_SWAP, FETCH_ADD
                  0x64: 8, 0x65: 12}  # UD SEND ONLY, with immediate data


@dataclasses.dataclass
class Packet:
    time: int  # ns
    interface: str
    frame: bytes
    comment: str = ""

    @property
    def source(self):
        return ".".join(str(byte) for byte in self.frame[26:30])

    @property
    def bth(self):
        return self.frame[42:54]

    @property
    def opcode(self):
        return self.bth[0]

    @property
    def destination_qp(self):
        return int.from_bytes(self.bth[5:8], "big")

    @property
    def asks_for_ack(self):
        return bool(self.bth[8] & 0x80)

    @property
    def psn(self):
        return int.from_bytes(self.bth[9:12], "big")

    @property
    def extended(self):
        return self.frame[54:54 + EXTENDED_BYTES.get(self.opcode, 0)]

    @property
    def payload(self):
        pad = self.bth[1] >> 4 & 3
        return self.frame[54 + len(self.extended):len(self.frame) - ICRC_BYTES - pad]

    def is_roce(self):
        """True for RoCEv2 over IPv4 without options: the only RoCE packets that programs of these tests send."""
        frame = self.frame
        return (len(frame) >= 58 and frame[12:14] == b"\x08\x00" and frame[14] == 0x45 and frame[23] == 17
                and struct.unpack_from("!H", frame, 36)[0] == ROCE_PORT
                and struct.unpack_from("!H", frame, 16)[0] == len(frame) - ETHERNET_BYTES
                and struct.unpack_from("!H", frame, 38)[0] == len(frame) - ETHERNET_BYTES - IPV4_BYTES)

    def icrc_right(self):
        """The ICRC covers eight bytes 0xff and the packet. Fields that routers may change count as ones: TOS, TTL and
        checksum of IP, checksum of UDP, and the BTH's fifth byte."""
        ip = bytearray(self.frame[ETHERNET_BYTES:-ICRC_BYTES])
        for masked in (1, 8, 10, 11, 26, 27, 32):
            ip[masked] = 0xff
        return zlib.crc32(b"\xff" * 8 + ip) == int.from_bytes(self.frame[-ICRC_BYTES:], "little")


def read_capture(path):
    """The packets of a pcapng file whose interfaces all have nanosecond timestamps."""
    data = pathlib.Path(path).read_bytes()
    interfaces, packets = [], []
    offset = 0
    while offset < len(data):
        kind, length = struct.unpack_from("<II", data, offset)
        body = data[offset + 8:offset + length - 4]
        if struct.unpack_from("<I", data, offset + length - 4)[0] != length:
            raise ValueError(f"block at {offset}: its two lengths differ")
        if kind == 1:
            interfaces.append(_interface_name(body))
        elif kind == 6:
            interface, high, low, captured, original = struct.unpack_from("<5I", body)
            if captured != original:
                raise ValueError("a frame is cut short")
            packets.append(Packet(high << 32 | low, interfaces[interface], body[20:20 + captured],
                                  _comment(body[20 + (captured + 3) // 4 * 4:])))
        offset += length
    return packets


def _comment(options):
    # Comment of a packet. The simulator writes no other option.
    if not options:
        return ""
    code, length = struct.unpack_from("<HH", options)
    if code != 1:
        raise ValueError(f"a packet with an option of code {code}")
    return options[4:4 + length].decode()


def _interface_name(body):
    name, resolution, offset = "", 6, 8
    while offset + 4 <= len(body):
        code, length = struct.unpack_from("<HH", body, offset)
        value = body[offset + 4:offset + 4 + length]
        if code == 0:
            break
        if code == 2:
            name = value.decode()
        if code == 9:
            resolution = value[0]
        offset += 4 + (length + 3) // 4 * 4
    if resolution != 9:
        raise ValueError(f"interface {name}: timestamps are not nanoseconds")
    return name


# --- Programs of a test's own

def built(name, source, *flags, compiler=("gcc", "-O1", "-x", "c", "-", "-x", "none")):
    """Path of a program that gcc, or another compiler, makes from `source` on its standard input. Built once for each
    `name`."""
    if not _built:
        _built["folder"] = pathlib.Path(tempfile.mkdtemp(prefix="rnicsim-test-"))
        atexit.register(shutil.rmtree, _built["folder"], ignore_errors=True)
    if name not in _built:
        path = _built["folder"] / name
        subprocess.run([*compiler, "-o", path, *flags], input=source, text=True, check=True)
        path.chmod(0o755)
        _built[name] = path
    return _built[name]


# --- Leftovers of a run

def sockets_of_runs(process=None):
    """Names of the simulators' sockets; with a process ID: of this process alone."""
    lines = [line.split() for line in pathlib.Path("/proc/net/unix").read_text().splitlines() if "@rnicsim-" in line]
    if process is not None:
        own = set()
        for entry in pathlib.Path(f"/proc/{process}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # the process closed the descriptor
                own.add(os.readlink(entry))
        lines = [fields for fields in lines if f"socket:[{fields[-2]}]" in own]
    return {fields[-1] for fields in lines}


def simulator_sockets(process=None):
    """Sockets to which programs attach; the sockets of `rnicsim top` are excluded."""
    return {name for name in sockets_of_runs(process) if not name.startswith("@rnicsim-top-")}


def shared_memory_files():
    """Files in /dev/shm, without those of a run's hosts and of Open MPI's processes: concurrent tests create and remove
    those."""
    return {entry.name for entry in pathlib.Path("/dev/shm").iterdir()
            if not entry.name.startswith(("rnicsim-hosts.", "sem.rnicsim-", "vader_segment."))}


def processes_with(variable):
    """Processes whose environment holds `variable` (NAME=value); a run's programs inherit the environment."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            if variable.encode() in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


class TestCase(unittest.TestCase):
    maxDiff = None

    def assert_succeeded(self, result):
        self.assertEqual(result.status, 0, result)
        self.assertRegex(result.summary(), r"^--- [\d.]+ \S+ simulated(, engine \S+)?\n", result)
        self.assertNotIn("not reproducible", result.out + result.err, result)
        self.assertNotRegex(result.out + result.err, "deadlock:|no progress:", result)
        self.assert_labelled(result)
        return result

    def assert_labelled(self, result):
        """Each line before the summary begins with the label of a program's host; the simulator's own lines go to
        standard error."""
        before = result.out[:len(result.out) - len(result.summary())]
        # SystemC reports the end of its simulation in two lines.
        stray = [line for line in before.splitlines()
                 if line and not re.match(r"h\d+\| ?", line) and not line.startswith("Info: /OSCI/SystemC")]
        self.assertEqual(stray, [], result)


class LeavesNothing(TestCase):
    """Finds the processes of each test's runs by a variable in the environment, which programs inherit."""

    def setUp(self):
        self.mark = f"RNICSIM_TEST_MARK={os.getpid()}.{self.id()}"
        name, value = self.mark.split("=")
        self.environment = dict(os.environ, **{name: value})
        self.shared_memory = shared_memory_files()
        self.addCleanup(self.assert_nothing_left)

    def assert_nothing_left(self):
        self.assertEqual(processes_with(self.mark), [])
        self.assertEqual(shared_memory_files() - self.shared_memory, set())

    def call(self, *arguments, **options):
        return call(*arguments, env=self.environment, **options)

    def run_on(self, *commands, **options):
        return run_on(commands, env=self.environment, **options)

    def start(self, *arguments, **changes):
        process = start(*arguments, env=dict(self.environment, **changes))
        self.addCleanup(self.stop, process)
        return process

    def stop(self, process):
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()
