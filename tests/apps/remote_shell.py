#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
A shell on other simulated hosts, for mpirun, over the simulated network: replaces ssh, without keys.

usage: remote_shell.py                     serves, on the host on which it runs
       remote_shell.py HOST COMMAND...     runs the command on HOST; returns its output and its exit status
"""
import os
import socket
import subprocess
import sys

PORT = 514


def answer(connection):
    """Request: length of the command, the command. Answer: the output, and the exit status as the last byte."""
    stream = connection.makefile("rb")
    command = stream.read(int(stream.readline()))
    done = subprocess.run(["sh", "-c", command], stdin=subprocess.DEVNULL, stdout=connection.fileno(),
                          stderr=connection.fileno(), check=False)
    connection.sendall(bytes([done.returncode & 0xff]))


def serve():
    listener = socket.create_server(("", PORT))
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            answer(connection)
            os._exit(0)
        connection.close()


def ask(host, command):
    with socket.create_connection((host, PORT)) as connection:
        connection.sendall(b"%d\n%s" % (len(command), command))
        last = b""
        while part := connection.recv(65536):
            os.write(1, last + part[:-1])
            last = part[-1:]
    return last[0] if last else 255


if __name__ == "__main__":
    if len(sys.argv) == 1:
        serve()
    sys.exit(ask(sys.argv[1], " ".join(sys.argv[2:]).encode()))
