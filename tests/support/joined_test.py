#!/usr/bin/env python3
"""Sources that the release build joins (cmake/unity.cmake) mean the same alone: a function in the unnamed namespace of
one of them is an overload for all behind it, and hides what an outer namespace has by that name, as a constant does,
without a word of the compiler.

usage: joined_test.py SOURCES BUILD
"""
import collections
import json
import pathlib
import re
import sys

SKIPPED = 77
UNNAMED = re.compile(r"^namespace \{\n(.*?)^\}  // namespace$", re.M | re.S)
# At a line's beginning: what it returns, its name, its parameters.
FUNCTION = re.compile(r"^(?!//|using|struct|class|enum|namespace|return)[\w\[\]][\w:<>,&*\[\] ]*?[ &*](\w+)\(", re.M)
CONSTANT = re.compile(r"^(?:inline )?constexpr [^=;({]*?\b(k\w+)", re.M)
NAMESPACE = re.compile(r"^namespace (\w[\w:]*) \{$", re.M)


def names(text):
    return set(FUNCTION.findall(text)) | set(CONSTANT.findall(text))


def namespace_of(text):
    found = NAMESPACE.search(text)
    return found.group(1) if found else ""


def joined(build):
    """The sources of each translation unit that has several."""
    compiled = [entry["file"] for entry in json.loads((build / "compile_commands.json").read_text())]
    units = [re.findall(r'#include "(.*\.cpp)"', pathlib.Path(file).read_text())
             for file in sorted(compiled) if "/Unity/" in file]
    return [[pathlib.Path(source) for source in sources] for sources in units if len(sources) > 1]


def faults(sources, headers):
    """`headers`: name -> (namespace, header) of all that declare it."""
    local = collections.defaultdict(list)
    for source in sources:
        text = source.read_text()
        for name in set().union(*map(names, UNNAMED.findall(text))):
            local[name].append((namespace_of(text), source.name))
    for name, places in sorted(local.items()):
        files = ", ".join(sorted(file for _, file in places))
        if len(places) > 1:
            yield f"{name} is local to each of {files}"
        for namespace, header in headers[name]:
            if any(place.startswith(namespace) for place, _ in places):
                yield f"{name} is local to {files}, and {header} declares one, too"


def main():
    root, build = map(pathlib.Path, sys.argv[1:])
    units = joined(build)
    if not units:
        return SKIPPED
    headers = collections.defaultdict(list)
    for header in sorted(header for room in ("model", "sim", "verbs", "rtl") for header in (root / room).rglob("*.h")):
        text = header.read_text()
        for name in names(text):
            headers[name].append((namespace_of(text), header.relative_to(root)))
    found = [fault for sources in units for fault in faults(sources, headers)]
    for fault in sorted(set(found)):
        print(fault)
    print(f"{sum(map(len, units))} sources in {len(units)} units, {len(set(found))} faults")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
