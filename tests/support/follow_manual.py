#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Runs the steps of a page of docs/ exactly as written, in an empty folder, or in a copy of the page's folder.

usage: follow_manual.py [--copy] FOLDER_OF_RNICSIM PAGE...

Steps of a page, in its order:
    ```LANGUAGE PATH    writes the block to the file PATH
    ```console          lines that begin with "$ " are commands for bash, with the lines that a backslash continues.
                        The lines below are the expected output, where ... matches anything, in a line or as whole
                        lines. A command must succeed, unless "# exit status N" ends it.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"^```(\S*)[ ]*(\S*)\n(.*?)^```$", re.M | re.S)
STATUS = re.compile(r"#\s*exit status (\d+)\s*$")


class Deviation(Exception):
    """The output or the exit status of a command differs from the page."""


def steps(text):
    """(command, expected output) for each command of a console block."""
    found = []
    for line in text.splitlines():
        if found and found[-1][0].endswith("\\"):
            found[-1][0] += "\n" + line
        elif line.startswith("$ "):
            found.append([line[2:], []])
        elif found:
            found[-1][1].append(line)
    return found


def pattern(lines):
    """Regular expression for the output lines of a page."""
    text = ""
    for line in lines:
        text += r"(?:.*\n)*?" if line.strip() == "..." else ".*?".join(map(re.escape, line.split("..."))) + r"[ \t]*\n"
    return re.compile(text + r"\Z")


def run(command, printed, folder, environment):
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600, check=False)
    wanted = STATUS.search(command)
    if done.returncode != (int(wanted[1]) if wanted else 0):
        raise Deviation(f"$ {command}\nexit status {done.returncode}\n{done.stdout}")
    out = done.stdout if not done.stdout or done.stdout.endswith("\n") else done.stdout + "\n"
    if not pattern(printed).match(out):
        raise Deviation(f"$ {command}\n--- the page\n" + "\n".join(printed) + f"\n--- printed\n{out}")


def follow(page, programs, copy):
    """Runs a page and returns its number of commands; raises Deviation. `copy`: with the files of the page's folder."""
    count = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name) / "work"
        if copy:
            shutil.copytree(page.parent, folder)
        else:
            folder.mkdir()
        environment = {"PATH": f"{programs}:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": name, "LANG": "C.UTF-8",
                       "GIT_CONFIG_COUNT": "2", "GIT_CONFIG_KEY_0": "user.name", "GIT_CONFIG_VALUE_0": "you",
                       "GIT_CONFIG_KEY_1": "user.email", "GIT_CONFIG_VALUE_1": "you@example.org"}
        environment |= {key: os.environ[key] for key in ("PYTHONPATH",) if key in os.environ}
        for language, path, text in BLOCK.findall(page.read_text()):
            if path:
                target = folder / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text)
            elif language == "console":
                for command, printed in steps(text):
                    run(command, printed, folder, environment)
                    count += 1
    return count


def main():
    arguments = sys.argv[1:]
    copy = arguments[:1] == ["--copy"]
    programs, *pages = map(pathlib.Path, arguments[1:] if copy else arguments)
    for page in pages:
        try:
            count = follow(page, programs.resolve(), copy)
        except Deviation as deviation:
            sys.exit(f"{page}: {deviation}")
        if count == 0:
            sys.exit(f"{page}: nothing to follow")
        print(f"{page}: {count} commands")


if __name__ == "__main__":
    main()
