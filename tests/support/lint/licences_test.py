#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each source names its licence in the first line, or in the second line behind `#!`: SPDX-License-Identifier.

--write adds the missing lines. Generated sources get the line from their generator: tests/support/device_layouts.py.

usage: licences_test.py [--write] ROOT | --self-test
"""

import pathlib
import re
import sys

from sources import all_files, kind_of

LICENCE = "Apache-2.0"
# Licences of folders and files, the longest prefix first. The Linux kernel is GPL-2.0.
LICENCES = (
    ("verbs/linux/kernel/", "GPL-2.0"),
    ("verbs/linux/rnic_abi.h", "(GPL-2.0 WITH Linux-syscall-note) OR Apache-2.0"),
    ("model/abi/c/", "Apache-2.0 OR GPL-2.0"),
)
# Sources of further languages whose comments begin with //.
FURTHER = (".go", ".rs")
# Each change of these files rebuilds every image of virtual machines.
WITHOUT = ("sim/guest/image/",)
LINE = re.compile(r"^(?://|/\*|#) SPDX-License-Identifier: (.+?)(?: \*/)?$")


def licence_of(path):
    return next((licence for prefix, licence in LICENCES if path.startswith(prefix)), LICENCE)


def named_licence(text):
    """The licence of the first line, or of the second line behind #!."""
    lines = text.split("\n", 2)
    match = LINE.match(lines[1] if lines[0].startswith("#!") and len(lines) > 1 else lines[0])
    return match[1] if match else None


def with_licence(path, kind, text):
    mark = "#" if kind in ("python", "cmake", "shell") else "//"
    line = f"{mark} SPDX-License-Identifier: {licence_of(path)}\n"
    if not text.startswith("#!"):
        return line + text
    first, _, rest = text.partition("\n")
    return f"{first}\n{line}{rest}"


def sources(root):
    for path in all_files(root):
        name = path.as_posix()
        if name.startswith(WITHOUT):
            continue
        content = (root / path).read_bytes()
        kind = kind_of(path, content.partition(b"\n")[0].decode(errors="replace"))
        if kind or path.suffix in FURTHER:
            yield name, kind or "c", content.decode()


def self_test():
    cases = [
        ("sim/a.cpp", "c", "int a;\n", "// SPDX-License-Identifier: Apache-2.0\nint a;\n"),
        ("tests/a.py", "python", "#!/usr/bin/env python3\n'''A'''\n",
         "#!/usr/bin/env python3\n# SPDX-License-Identifier: Apache-2.0\n'''A'''\n"),
        ("verbs/linux/kernel/a.c", "c", "", "// SPDX-License-Identifier: GPL-2.0\n"),
    ]
    failures = 0
    for path, kind, text, expected in cases:
        got = with_licence(path, kind, text)
        if got != expected or named_licence(text) or named_licence(got) != licence_of(path):
            failures += 1
            print(f"self-test: {path}: expected {expected!r}, got {got!r}")
    if named_licence("/* SPDX-License-Identifier: A OR B */\n") != "A OR B" or named_licence("\n// SPDX-...\n"):
        failures += 1
        print("self-test: named_licence")
    print(f"{failures} failed")
    return failures == 0


def main(arguments):
    if arguments == ["--self-test"]:
        return 0 if self_test() else 1
    write = arguments[:1] == ["--write"]
    if len(arguments) != 1 + write:
        print(__doc__, file=sys.stderr)
        return 2
    root = pathlib.Path(arguments[-1])
    count = faults = 0
    for path, kind, text in sources(root):
        count += 1
        named = named_licence(text)
        if named == licence_of(path):
            continue
        if write and named is None:
            (root / path).write_text(with_licence(path, kind, text))
            continue
        faults += 1
        print(f"{path}: names the licence {named}, expected {licence_of(path)}" if named else
              f"{path}: no line SPDX-License-Identifier: {licence_of(path)} (--write adds the line)")
    print(f"{count} sources, {faults} faults")
    # Few sources: the path is wrong.
    return 0 if count > 100 and not faults else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
