#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The limits of CONTRIBUTING on the sizes of folders, sources and functions.

usage: sizes_test.py SOURCES
       sizes_test.py --self-test
"""
import collections
import pathlib
import re
import sys
import tempfile

MOST_FILES, MOST_LINES, MOST_FUNCTION = 40, 600, 60
ROOMS = ("model", "rtl", "sim", "verbs", "tests")
SOURCES = (".h", ".cpp", ".c", ".sv")

# Larger all the same, with the reason.
EXCEPTIONS = {
    "model/abi/c/command.h": "generated from model/abi/command.h",
    "sim/trace_file/format.cpp": "kinds() is the table of event kinds",
}

# A function's first line: its result, its name, a bracket.
BEGIN = re.compile(r"^(?!namespace|class|struct|enum|union|extern|constexpr|inline constexpr|using|template|#|//|\s|"
                   r"[{}])"
                   r"[^;=]*\(")


def files_of(root):
    """The files of the rooms, without folders that tools make."""
    for room in ROOMS:
        for path in sorted((root / room).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts and ".git" not in path.parts:
                yield path


def long_functions(text):
    """Length and first line of each C++ function at a line's beginning that is too long."""
    lines = text.split("\n")
    begin = None
    for number, line in enumerate(lines):
        if begin is None and BEGIN.match(line):
            begin = number
        elif begin is not None and line.startswith("}"):
            if number - begin + 1 > MOST_FUNCTION:
                yield number - begin + 1, lines[begin]
            begin = None
        # A declaration, or a function that ends on its line.
        if begin is not None and not line.startswith("  ") and line.endswith((";", "}")):
            begin = None


def findings(root):
    in_folder = collections.Counter()
    for path in files_of(root):
        name = str(path.relative_to(root))
        in_folder[str(path.parent.relative_to(root))] += 1
        if path.suffix not in SOURCES or name.startswith("tests/"):
            continue
        text = path.read_text()
        lines = text.count("\n")
        if lines > MOST_LINES:
            yield name, f"{lines} lines, more than {MOST_LINES}"
        if path.suffix == ".cpp":
            for length, first in long_functions(text):
                yield name, f"a function of {length} lines, more than {MOST_FUNCTION}: {first}"
    for folder, count in in_folder.items():
        if count > MOST_FILES:
            yield folder, f"{count} files, more than {MOST_FILES}"


def check(root, exceptions):
    """Prints what is too large and not an exception, and exceptions that are not needed; the number of both."""
    found = list(findings(root))
    faults = [f"{name}: {what}" for name, what in found if name not in exceptions]
    faults += [f"{name}: no exception is needed any more" for name in exceptions if name not in dict(found)]
    for fault in faults:
        print(fault)
    return len(faults)


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        body = "  go();\n" * MOST_FUNCTION
        (root / "sim/many").mkdir(parents=True)
        for number in range(MOST_FILES):
            (root / f"sim/many/{number}.h").write_text("")
        (root / "sim/short.cpp").write_text("void f() {\n" + body[:-len("  go();\n") * 2] + "}\n")
        assert check(root, {}) == 0
        assert check(root, {"sim/short.cpp": "not needed"}) == 1
        (root / "sim/many/one_more.h").write_text("")
        (root / "sim/long.cpp").write_text("int g();\nvoid f(int a,\n       int b) {\n" + body + "}\n")
        (root / "sim/long_too.cpp").write_text("int g(int a) {\n" + body + "}\n" + "int x;\n" * MOST_LINES)
        assert {name for name, _ in findings(root)} == {"sim/many", "sim/long.cpp", "sim/long_too.cpp"}
        assert len(list(findings(root))) == 4
        assert check(root, {"sim/many": "", "sim/long.cpp": "", "sim/long_too.cpp": ""}) == 0
    print("all as it should be")
    return 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(self_test())
    sys.exit(1 if check(pathlib.Path(sys.argv[1]).resolve(), EXCEPTIONS) else 0)
