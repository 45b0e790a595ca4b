#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Checks that the sources that the release build joins (cmake/unity.cmake) have the same meaning when compiled alone. A
function or constant in the unnamed namespace of one source is visible in all sources behind it: it becomes an overload
there, or hides the same name of an outer namespace, without a warning of the compiler.

usage: joined_test.py SOURCES BUILD
"""
import collections
import json
import pathlib
import re
import sys

SKIPPED = 77
UNNAMED = re.compile(r"^namespace \{\n(.*?)^\}  // namespace$", re.M | re.S)
# At the start of a line: return type, name, parameters.
FUNCTION = re.compile(r"^(?!//|using|struct|class|enum|namespace|return)[\w\[\]][\w:<>,&*\[\] ]*?[ &*](\w+)\(", re.M)
CONSTANT = re.compile(r"^(?:inline )?constexpr [^=;({]*?\b(k\w+)", re.M)
NAMESPACE = re.compile(r"^namespace (\w[\w:]*) \{$", re.M)
USING = re.compile(r"using namespace (?:\w+::)*(\w+);")


def names(text):
    return set(FUNCTION.findall(text)) | set(CONSTANT.findall(text))


def namespace_of(text):
    found = NAMESPACE.search(text)
    return found.group(1) if found else ""


def within(namespace, outer):
    return outer == "" or f"{namespace}::".startswith(f"{outer}::")


def joined(build):
    """The sources of each translation unit that joins several."""
    compiled = [entry["file"] for entry in json.loads((build / "compile_commands.json").read_text())]
    units = [re.findall(r'#include "(.*\.cpp)"', pathlib.Path(file).read_text())
             for file in sorted(compiled) if "/Unity/" in file]
    return [[pathlib.Path(source) for source in sources] for sources in units if len(sources) > 1]


def nested_names(text):
    """(namespace, names) for each namespace of a header: `using namespace` makes these names visible."""
    for name, body in re.findall(r"^namespace (\w+) \{.*?\n(.*?)^\}", text, re.M | re.S):
        yield name, names(body)


def faults(sources, headers, nested):
    """`headers`: name -> (namespace, header) of all headers that declare the name; `nested`: namespace -> its names."""
    local = collections.defaultdict(list)
    brought = collections.defaultdict(set)
    homes = {}
    for source in sources:
        text = source.read_text()
        homes[source.name] = namespace_of(text)
        for namespace in USING.findall(text):
            for name in nested.get(namespace, ()):
                brought[name].add((homes[source.name], source.name))
        for name in set().union(*map(names, UNNAMED.findall(text))):
            local[name].append((homes[source.name], source.name))
    for name, places in sorted(local.items()):
        for namespace in sorted({namespace for namespace, _ in places}):
            inside = sorted(file for where, file in places if where == namespace)
            files = ", ".join(inside)
            if len(inside) > 1:
                yield f"{name} is local to each of {files}"
            for where, user in sorted(brought[name]):
                if user not in inside and within(where, namespace):
                    yield f"{name} is local to {files}, and {user} means another"
            # A name in a namespace that only this file uses cannot clash.
            seen = any(within(where, namespace) for file, where in homes.items() if file not in inside)
            for where, header in headers[name]:
                if seen and within(namespace, where):
                    yield f"{name} is local to {files}, and {header} declares one, too"


def main():
    root, build = map(pathlib.Path, sys.argv[1:])
    units = joined(build)
    if not units:
        return SKIPPED
    headers = collections.defaultdict(list)
    nested = collections.defaultdict(set)
    for header in sorted(header for room in ("model", "sim", "verbs", "rtl") for header in (root / room).rglob("*.h")):
        text = header.read_text()
        for name in names(text):
            headers[name].append((namespace_of(text), header.relative_to(root)))
        for namespace, inside in nested_names(text):
            nested[namespace] |= inside
    found = [fault for sources in units for fault in faults(sources, headers, nested)]
    for fault in sorted(set(found)):
        print(fault)
    print(f"{sum(map(len, units))} sources in {len(units)} units, {len(set(found))} faults")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
