#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Runs every command line of README.md as printed, in an imitated clone: the launcher, links to the sources, and a build
tree build/release that counts as built. The launcher then does all that it does when nothing is stale. Nothing is built
or installed: a command that needs it fails.

usage: readme_test.py SOURCES BUILD [--only PATTERN] [--without PATTERN] [--times]

`./rnicsim test` ends in ctest, which only lists the tests here: this test is one of them. Commands in a sentence
(`./rnicsim help`) are run, too; `COMMAND` in such a command stands for each command.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.M | re.S)
# A command in a sentence.
INLINE = re.compile(r"`(\./rnicsim [^`]+)`")
# Stamps that the launcher or CMake writes in the real tree.
OWN = (".fresh", ".fresh_golden", ".root")
BUILDERS = ("apt-get", "sudo", "cmake", "ninja")


def command_lines(text):
    """All command lines of the page's blocks, then the commands in its sentences, each once."""
    blocks = [line.strip() for block in BLOCK.findall(text) for line in block.splitlines() if line.strip()]
    sentences = INLINE.findall(re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S))
    return blocks, list(dict.fromkeys(line for line in sentences if line not in blocks))


class Clone:
    """A folder that looks like a clone in which everything is built."""

    def __init__(self, folder, sources, build):
        self.root = folder / "clone"
        self.calls = folder / "calls"
        release = self.root / "build" / "release"
        release.mkdir(parents=True)
        for path in sources.iterdir():
            if path.name not in ("build", "rnicsim", ".git"):
                (self.root / path.name).symlink_to(path)
        (self.root / "rnicsim").write_bytes((sources / "rnicsim").read_bytes())
        (self.root / "rnicsim").chmod(0o755)
        for path in build.iterdir():
            if path.name not in OWN and path.suffix != ".log":
                (release / path.name).symlink_to(path)
        self.tools = folder / "tools"
        self.tools.mkdir()
        ctest = subprocess.run(["which", "ctest"], capture_output=True, text=True, check=True).stdout.strip()
        for tool in BUILDERS:
            self.tool(tool, f'echo "{tool} $*" >>"{self.calls}"')
        self.tool("ctest", f'exec "{ctest}" "$@" -N')
        # The launcher takes files older than its stamps as built.
        for stamp in OWN:
            (release / stamp).write_text(f"{self.root}\n")

    def tool(self, name, script):
        (self.tools / name).write_text(f"#!/bin/sh\n{script}\n")
        (self.tools / name).chmod(0o755)

    def run(self, command, timeout=600):
        """(error, output) of a command; the error is None if the command succeeded and built nothing."""
        self.calls.unlink(missing_ok=True)
        environment = {"PATH": f"{self.tools}:{os.environ['PATH']}", "HOME": str(self.root.parent), "LANG": "C.UTF-8",
                       "SHELL": "/bin/sh", "RNICSIM_SOCKET": f"rnicsim-readme-{os.getpid()}",
                       "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        done = subprocess.run(["bash", "-c", command], cwd=self.root, env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=timeout, check=False)
        printed = done.stdout + done.stderr
        if done.returncode != 0:
            return f"exit status {done.returncode}", printed
        called = self.calls.read_text() if self.calls.exists() else ""
        if called and not command.startswith("./rnicsim test"):
            return f"it installs or builds: {called}", printed
        return None, printed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("sources", type=pathlib.Path)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--times", action="store_true", help="say what each takes")
    parser.add_argument("--only", default="", help="those that this pattern fits")
    parser.add_argument("--without", default="(?!)", help="and this one does not")
    arguments = parser.parse_args()
    blocks, sentences = command_lines((arguments.sources / "README.md").read_text())
    if len(blocks) < 10 or len(sentences) < 1:
        sys.exit(f"{len(blocks)} command lines in blocks and {len(sentences)} in sentences: README.md has more")
    with tempfile.TemporaryDirectory(prefix="rnicsim-readme-") as name:
        clone = Clone(pathlib.Path(name).resolve(), arguments.sources.resolve(), arguments.build.resolve())
        commands = re.findall(r"(?m)^  ([a-z]+) ", clone.run("./rnicsim help")[1])
        lines = blocks + [line.replace("COMMAND", command) for line in sentences
                          for command in (commands if "COMMAND" in line else [""])]
        wrong = 0
        chosen = [line for line in lines if re.search(arguments.only, line) and not re.search(arguments.without, line)]
        for line in chosen:
            before, begun = os.times(), time.monotonic()
            fault, printed = clone.run(line)
            after = os.times()
            if arguments.times:
                cpu = after.children_user + after.children_system - before.children_user - before.children_system
                print(f"{time.monotonic() - begun:8.1f} s {cpu:8.1f} s of CPU  {line}", flush=True)
            if fault:
                wrong += 1
                print(f"README.md: {line}\n    {fault}\n{printed}")
        if not chosen:
            sys.exit("no command line of README.md is chosen")
        print(f"README.md: {len(chosen) - wrong} of {len(chosen)} commands did what they are for")
        sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
