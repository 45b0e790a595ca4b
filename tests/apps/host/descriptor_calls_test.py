#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Reads, writes and waits on descriptors within a simulated host take simulated time, for any number of descriptors.

usage: descriptor_calls_test.py path/to/rnicsim     (needs gcc and g++)
"""
import contextlib
import os
import pathlib
import re
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402
from apps import built  # noqa: E402

SOURCE = apps.PROGRAMS / "calls" / "descriptor_calls.c"


def program():
    return built("descriptor_calls", SOURCE.read_text(), "-lpthread")


class CallsTestCase(apps.TestCase):
    def on_h0(self, command):
        """Lines of h0 in a reproducible run."""
        result = self.assert_succeeded(apps.run_on([("h0", str(command))]))
        return result.lines("h0")

    def calls(self, mode):
        return self.on_h0(f"{program()} {mode}")


class Waits(CallsTestCase):
    def test_for_more_descriptors_than_a_message_carries(self):
        self.assertEqual(self.calls("many"), [
            "nothing: 0 after 7 ms", "the last is ready, poll: 1 after 5 ms", "select: 1 after 5 ms",
            "epoll: 1 after 5 ms"])


class Reads(CallsTestCase):
    def test_of_less_than_a_counter(self):
        self.assertEqual(self.calls("small_reads"), ["Invalid argument"] * 3)


class Writes(CallsTestCase):
    def test_greater_than_what_there_is_room_for(self):
        expected = []
        for what in ("write to a pipe", "writev to a pipe", "write to a socket", "writev to a socket", "send"):
            expected += [f"{what} 1000000 after 3 ms", "read 1000000, as written"]
        lines = self.calls("write_much")
        self.assertEqual(sorted(lines[:-1]), sorted(expected))
        self.assertEqual(lines[-1], "what does not block takes 65536, then 1")

    def test_to_a_pipeline(self):
        self.assertEqual(self.on_h0(f"sh -c '{program()} print_much | tail -n1 | wc -c'"), ["100"])

    def test_to_the_user(self):
        self.assertEqual(self.calls("print_much"), ["x" * 99] * 10000)


class Knowledge(CallsTestCase):
    def test_of_a_number_is_not_that_of_the_next_with_it(self):
        self.assertEqual(self.calls("reuse_numbers"), ["fclose: text", "close_range: text", "closefrom: text",
                                                       "a pair of UNIX sockets"])

    def test_of_chance_goes_on_in_another_image(self):
        for command in ("head -c8 </dev/urandom >/tmp/chance; od -tx1 /tmp/chance",
                        "python3 -c 'import os; print(os.read(0, 8))' </dev/random"):
            with apps.folder() as folder:
                (folder / "script").write_text(command)
                drawn = [self.on_h0(f"sh {folder}/script") for _ in range(2)]
            self.assertEqual(drawn[0], drawn[1])

    def test_of_chance_holds_for_streams(self):
        view = built("random_streams", (apps.PROGRAMS / "random_streams.cc").read_text(),
                     compiler=("g++", "-std=c++20", "-O1", "-x", "c++", "-", "-x", "none"))
        first, again = [self.on_h0(f"sh -c '{view} </dev/urandom'") for _ in range(2)]
        self.assertEqual(first, again)
        self.assertEqual([line.rpartition(" ")[0] for line in first], [
            "ifstream", "fopen", "fopen", "closed on exec:", "fdopen", "fdopen", "standard input", "standard input",
            "cin", "different", "random_device", "default device", "closed 0, then"])
        drawn = [line.split()[-1] for line in first if len(line.split()[-1]) == 16]
        self.assertEqual(len(set(drawn)), 8)
        self.assertIn("closed on exec: 1", first)
        self.assertEqual(first[-1], "closed 0, then -1")


LOOK_SIGNAL = 62  # model/abi/attach.h


def may_look(pid):
    """True if the process catches the simulator's signal and no such signal is pending: a second one would queue."""
    try:
        status = (pathlib.Path("/proc") / str(pid) / "status").read_text()
    except OSError:
        return False
    bit = 1 << (LOOK_SIGNAL - 1)
    caught, *pending = [int(re.search(rf"^{name}:\t(\w+)$", status, re.M)[1], 16) & bit
                        for name in ("SigCgt", "SigPnd", "ShdPnd")]
    return caught and not any(pending)


class Looks(apps.LeavesNothing):
    def test_leave_errno_alone_while_the_simulator_looks_at_the_program(self):
        looking = program()
        process = self.start("run", "--on", "h0", f"{looking} look_often")
        ended = threading.Event()
        looks = threading.Thread(target=self.look_at, args=(looking, ended))
        looks.start()
        try:
            result = apps.finish(process)
        finally:
            ended.set()
            looks.join()
        self.assertEqual(result.lines("h0"), ["ready: 0, errno changed: 0"], result)

    def look_at(self, looking, ended):
        while not ended.is_set():
            for pid in apps.processes_with(self.mark):
                with contextlib.suppress(OSError):
                    self.look_while_it_runs(pid, looking)

    @staticmethod
    def look_while_it_runs(pid, looking):
        while pathlib.Path(f"/proc/{pid}/exe").resolve(strict=True) == looking:
            if may_look(pid):
                os.kill(pid, LOOK_SIGNAL)


FAILING = """
import errno, os, select, signal, socket

def told(name, call, *arguments):
    try:
        print(name, call(*arguments))
    except OSError as error:
        print(name, errno.errorcode[error.errno])

end, other = os.pipe()
told("write where one reads:", os.write, end, b"x")
told("read where one writes:", os.read, other, 1)
waits = select.epoll()
told("read of epoll:", os.read, waits.fileno(), 8)
told("write to epoll:", os.write, waits.fileno(), b"x")
heard = []
signal.signal(signal.SIGPIPE, lambda *_: heard.append("SIGPIPE"))
for listens in (False, True):
    stream = socket.create_server(("", 5000)) if listens else socket.socket()
    told("recv of none:", stream.recv, 1)
    told("send to none:", stream.send, b"x")
    told("quietly:", stream.send, b"x", socket.MSG_NOSIGNAL)
client = socket.socket()
again = client.dup()
client.connect(("10.0.0.1", 5000))
server, _ = stream.accept()
if os.fork() == 0:
    server.send(b"from a child")
    os._exit(0)
told("by another number:", again.recv, 100)
told("and back:", again.send, b"x")
print(heard)
"""


class Kept(CallsTestCase):
    """Descriptors that the simulation keeps open in a program."""

    def kept(self, mode=""):
        source = (apps.PROGRAMS / "calls" / "kept_descriptors.c").read_text()
        return self.on_h0(f"{built('kept_descriptors', source)} {mode}")

    def test_children_stay_on_the_host_whatever_was_closed(self):
        for mode in ("range", "range_at_exec", "close", "fcntl", "ioctl", "spawn", "spawn_closefrom",
                     "spawn_closefrom_few", "spawn_close"):
            self.assertEqual(self.kept(mode), ["h0"], mode)

    def test_it_is_not_the_programs(self):
        self.assertEqual(self.kept(), [f"{fd}: -1 -1 -1 -1 -1 -1 -1 -1, EBADF" for fd in (900, 1000)])


class Failing(CallsTestCase):
    def test_what_fails_at_once_waits_for_nothing(self):
        with apps.folder() as folder:
            (folder / "failing.py").write_text(FAILING)
            lines = self.on_h0(f"python3 {folder / 'failing.py'}")
        none = ["recv of none: ENOTCONN", "send to none: EPIPE", "quietly: EPIPE"]
        self.assertEqual(lines, [
            "write where one reads: EBADF", "read where one writes: EBADF", "read of epoll: EINVAL",
            "write to epoll: EINVAL", *none, *none, "by another number: b'from a child'", "and back: 1",
            "['SIGPIPE', 'SIGPIPE']"])


# A process that closes a socket, or dies, with unread data resets the connection: data sent before still arrives first.
RESETTING = """
import errno, os, signal, socket, time

def end(how, receive):
    listener = socket.create_server(("h0", 0))
    client = socket.create_connection(listener.getsockname())
    server, _ = listener.accept()
    client.sendall(b"never read")
    time.sleep(0.01)  # it has arrived
    if os.fork() == 0:
        server.sendall(b"said")
        how(server)
        os._exit(0)
    server.close()
    os.wait()
    told = []
    for _ in range(4):
        try:
            told.append(receive(client))
        except OSError as error:
            told.append(type(error).__name__)
    try:
        told.append(client.getpeername()[1] == listener.getsockname()[1])
    except OSError as error:
        told.append(error.errno == errno.ENOTCONN)
    print(*told, flush=True)

def part(client):
    room = bytearray(2)
    return bytes(room[:client.recv_into(room)])

end(lambda server: server.close(), lambda client: client.recv(2))
end(lambda server: os.kill(os.getpid(), signal.SIGKILL), lambda client: os.read(client.fileno(), 2))
end(lambda server: (server.recv(64), server.close()), part)
end(lambda server: server.close(), lambda client: client.recvmsg(2)[0])
end(lambda server: server.close(), lambda client: client.recvfrom(2)[0])
end(lambda server: server.close(), lambda client: client.recv(3, socket.MSG_WAITALL))
end(lambda server: server.close(), lambda client: client.recvfrom(3, socket.MSG_WAITALL)[0])

def parts(client):
    room = [bytearray(1), bytearray(2)]
    received = client.recvmsg_into(room, 0, socket.MSG_WAITALL)[0]
    return b"".join(room)[:received]

def spliced(client):
    reader, writer = os.pipe()
    return os.read(reader, os.splice(client.fileno(), writer, 3) or os.close(writer) or 1)

end(lambda server: server.close(), parts)
end(lambda server: server.close(), spliced)
"""


# The first write after a reset reports the error. Connections that a listener has not accepted are reset, too.
WRITING = """
import signal, socket, time

def attempt(call, *arguments):
    try:
        return call(*arguments)
    except OSError as error:
        return type(error).__name__

signals = []
signal.signal(signal.SIGPIPE, lambda number, _: signals.append(signal.Signals(number).name))
for read_first in (False, True):
    listener = socket.create_server(("h0", 0))
    client = socket.create_connection(listener.getsockname())
    server, _ = listener.accept()
    client.sendall(b"never read")
    time.sleep(0.01)
    server.close()
    time.sleep(0.01)
    error = [client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) for _ in range(2)] if read_first else []
    print(*error, attempt(client.send, b"x"), attempt(client.send, b"x"), attempt(client.recv, 1), flush=True)
print(signals)
listener = socket.create_server(("h0", 0))
client = socket.create_connection(listener.getsockname())
listener.close()
print(attempt(client.recv, 1))
"""

# Sockets of IPv6 only, beside a socket of IPv4 with the same port; a dual-stack socket collides with both.
FAMILIES = """
import errno, socket
V6_ONLY = (socket.IPPROTO_IPV6, socket.IPV6_V6ONLY)

def listen(family, address, only=None):
    try:
        listener = socket.socket(family)
        if only is not None:
            listener.setsockopt(*V6_ONLY, only)
            print("only", listener.getsockopt(*V6_ONLY))
        listener.bind((address, 7001))
        listener.listen()
        return listener
    except OSError as error:
        print(errno.errorcode[error.errno])

def reach(address):
    try:
        socket.create_connection((address, 7001)).close()
        return True
    except OSError:
        return False

v6 = listen(socket.AF_INET6, "::", 1)
print(reach("127.0.0.1"), reach("::1"))
v4 = listen(socket.AF_INET, "0.0.0.0")
print(reach("127.0.0.1"), reach("::1"))
listen(socket.AF_INET6, "::", 0)
v6.close()
print(reach("127.0.0.1"), reach("::1"))
v4.close()
both = listen(socket.AF_INET6, "::", 0)
print(reach("127.0.0.1"), reach("::1"))
listen(socket.AF_INET, "127.0.0.1")
"""

# A file of 3 MB is sent to a socket and to a pipe, and forwarded by splice().
TRANSFERS = """
import os, socket, tempfile, threading, time
data = os.urandom(3_000_000)
file = tempfile.TemporaryFile()
file.write(data)
file.seek(0)

def read_all(receive, got):
    time.sleep(0.005)
    while part := receive(100_000):
        got += part

def check(name, send, receive, close):
    got = bytearray()
    reader = threading.Thread(target=read_all, args=(receive, got))
    reader.start()
    send()
    close()
    reader.join()
    print(name, got == data)

def send_file(out, offset):
    sent = 0
    while sent < len(data):
        sent += os.sendfile(out, file.fileno(), offset and sent, len(data))

def connection():
    listener = socket.create_server(("h0", 0))
    client = socket.create_connection(listener.getsockname())
    return client, listener.accept()[0]

client, server = connection()
check("to a socket", lambda: send_file(client.fileno(), 1), server.recv, client.close)
reader, writer = os.pipe()
check("to a pipe", lambda: send_file(writer, None), lambda most: os.read(reader, most), lambda: os.close(writer))
print("at", file.seek(0, os.SEEK_CUR))

def splice_all(source, out):
    while os.splice(source, out, 65536):
        pass

reader, writer = os.pipe()
client, server = connection()
feeder = threading.Thread(target=lambda: (send_file(writer, 1), os.close(writer)))
feeder.start()
check("by splice", lambda: splice_all(reader, client.fileno()), server.recv, client.close)
feeder.join()
reader, writer = os.pipe()
with open("/sys/devices/system/cpu/online") as pageless:
    print("without pages", os.sendfile(writer, pageless.fileno(), 0, 100) > 0)
"""


class Transfers(CallsTestCase):
    def test_wait_in_simulated_time(self):
        with apps.folder() as folder:
            (folder / "transfers.py").write_text(TRANSFERS)
            lines = self.on_h0(f"/usr/bin/python3 {folder / 'transfers.py'}")
        self.assertEqual(lines, ["to a socket True", "to a pipe True", "at 3000000", "by splice True",
                                 "without pages True"])


class Resets(CallsTestCase):
    def test_of_who_writes(self):
        with apps.folder() as folder:
            (folder / "writing.py").write_text(WRITING)
            lines = self.on_h0(f"python3 {folder / 'writing.py'}")
        self.assertEqual(lines, ["ConnectionResetError BrokenPipeError b''",
                                 "104 0 BrokenPipeError BrokenPipeError b''",
                                 "['SIGPIPE', 'SIGPIPE', 'SIGPIPE']", "ConnectionResetError"])

    def test_families(self):
        with apps.folder() as folder:
            (folder / "families.py").write_text(FAMILIES)
            lines = self.on_h0(f"python3 {folder / 'families.py'}")
        self.assertEqual(lines, ["only 1", "False True", "True True", "only 0", "EADDRINUSE", "True False", "only 0",
                                 "True True", "EADDRINUSE"])

    def test_of_who_reads_and_who_does_not(self):
        reset = "b'sa' b'id' ConnectionResetError b'' True"
        with apps.folder() as folder:
            (folder / "resetting.py").write_text(RESETTING)
            lines = self.on_h0(f"/usr/bin/python3 {folder / 'resetting.py'}")
        self.assertEqual(lines, [reset, reset, "b'sa' b'id' b'' b'' True", reset, reset,
                                 *["b'sai' b'd' ConnectionResetError b'' True"] * 4])


class Names(CallsTestCase):
    def test_of_datagram_sockets(self):
        expected = []
        for name in ("/tmp/descriptor_calls.a", "@descriptor_calls.a"):
            expected += [f"recvfrom from {name}", f"recvmsg from {name}", "answered 4"]
        self.assertEqual(self.calls("names"), expected)


if __name__ == "__main__":
    unittest.TestLoader.sortTestMethodsUsing = None
    apps.main()
