#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/verbs.md against the installed header, the library's symbols and its sources.

Each public function has one row; a refused one is refused in the sources, a done one is not.
usage: verbs_table_test.py path/to/libibverbs.so.1 path/to/verbs/ibverbs path/to/docs/verbs.md
"""
import pathlib
import re
import subprocess
import sys

from symbols_test import exports

HEADER = "infiniband/verbs.h"
NAME = r"\b(_?ibv_\w+|mult_to_ibv_rate|mbps_to_ibv_rate|verbs_get_ctx)"


def preprocessed():
    run = subprocess.run(["cc", "-E", "-P", "-"], input=f"#include <{HEADER}>\n", capture_output=True, text=True,
                         check=True)
    return run.stdout


def functions_of_header(text):
    """Public functions by name; the body is '' for functions that are only declared."""
    found = {}
    depth, start, body_start, head = 0, 0, 0, ""
    for at, sign in enumerate(text):
        if sign == "{":
            if depth == 0:
                head, body_start = text[start:at], at
            depth += 1
        elif sign == "}":
            depth -= 1
            if depth == 0:
                match = re.search(NAME + r"\s*\([^()]*(?:\([^()]*\)[^()]*)*\)\s*$", head)
                if match:
                    found[match.group(1)] = text[body_start:at]
                    start = at + 1
        elif sign == ";" and depth == 0:
            head = re.sub(r"\{.*\}", "", text[start:at], flags=re.DOTALL)
            start = at + 1
            match = re.search(NAME + r"\s*\(", head)
            if match and not re.match(r"\s*typedef", head):
                found.setdefault(match.group(1), "")
    return found


def public_exports(library):
    return {name for name, version in exports(library) if version.startswith("IBVERBS_1.")}


# Exported for libibverbs 1.1's drivers, not for programs.
NOT_VERBS = {"ibv_register_driver"}


def rows(page):
    found = {}
    for line in page.splitlines():
        match = re.fullmatch(r"\| (\w+) \| (done|refused) \| ?(.*?) ?\|", line)
        if match:
            if match.group(1) in found:
                yield f"{match.group(1)}: two rows"
            found[match.group(1)] = match.groups()[1:]
        elif line.startswith("|") and not re.match(r"\| verb |\|---", line):
            yield f"not a row: {line}"
    yield found


def operation_of(body):
    """The pointer through which an inline function calls the library; None if the function does not call it."""
    match = re.search(r"->(?:ops\.)?(\w+)\s*\(", body)
    return match.group(1) if match else None


def is_refused(name, body, sources, notes, table):
    """True if the sources refuse the function; raises ValueError when they are not clear."""
    if re.search(rf"\b{name}\(", sources["unsupported.cpp"]):
        return True
    if not body:
        return False
    needed = re.search(r"no object: (\w+)", notes)
    if needed:
        if table.get(needed.group(1), ("done",))[0] != "refused":
            raise ValueError(f"{name}: {needed.group(1)} makes its object")
        return True
    operation = operation_of(body)
    if operation is None:
        return False
    for file, text in sources.items():
        if file == "unsupported.cpp":
            continue
        for assigned in re.findall(rf"\.{operation} =\s*([^;]*);", text):
            if "refuse(" not in assigned:
                return False
    return True


def main(library, source, page):
    sources = {path.name: path.read_text() for path in source.rglob("*.cpp")}
    *wrong, table = rows(page.read_text())
    header = functions_of_header(preprocessed())
    symbols = public_exports(library) - NOT_VERBS
    public = set(header) | symbols
    wrong += [f"{name}: no row" for name in sorted(public - set(table))]
    wrong += [f"{name}: neither in the header nor exported" for name in sorted(set(table) - public)]
    for name in sorted(set(table) & public):
        state, notes = table[name]
        body = header.get(name, "")
        if not body and name not in symbols:
            wrong.append(f"{name}: declared, and not exported")
            continue
        try:
            refused = is_refused(name, body, sources, notes, table)
        except ValueError as error:
            wrong.append(str(error))
            continue
        if refused != (state == "refused"):
            wrong.append(f"{name}: {state} in the table, {'refused' if refused else 'done'} in the sources")
        if state == "refused" and not notes:
            wrong.append(f"{name}: refused, and no reason given")
    print(f"{len(public)} verbs: {sum(state == 'done' for state, _ in table.values())} done, "
          f"{sum(state == 'refused' for state, _ in table.values())} refused")
    for line in wrong:
        print("WRONG", line)
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])))
