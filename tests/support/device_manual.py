#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/device.md and docs/host-services.md, made from the contract's headers (model/abi).

    device_manual.py [--write] [--compiler g++] [--root FOLDER] [--self-test]

Without --write: fails if a manual isn't what its headers say. In a manual a table stands between

    <!-- table: Qpc -->          a struct, an enum, a namespace of constants, or names of constants
    <!-- end -->

Names and meanings are read from the headers' text; offsets, sizes and values are printed by a program compiled from
the headers, so a name misread does not compile. A public name of a manual's headers that no table shows is an error,
and so is a struct whose fields leave bytes unexplained.
"""

import argparse
import dataclasses
import difflib
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# Headers in the order of the chapters.
MANUALS = {"docs/device.md": ["device.h", "queue.h", "context.h", "command.h"], "docs/host-services.md": ["attach.h"]}
HEADERS = [header for headers in MANUALS.values() for header in headers]
OWN_TYPES = re.compile(r"^(Be16|Be32|Be64|std::\w+|char)$")


@dataclasses.dataclass
class Row:
    name: str
    meaning: str = ""
    type: str = ""
    heading: str = ""  # a line that starts a group of rows
    source: str = ""  # a constant's expression


@dataclasses.dataclass
class Entity:
    kind: str  # struct, enum, namespace, constant
    name: str
    header: str
    meaning: str = ""
    rows: list = dataclasses.field(default_factory=list)
    constants: list = dataclasses.field(default_factory=list)  # of a struct
    offsets: bool = False  # a namespace whose values are offsets


CONSTANT = re.compile(r"^\s*(?:inline|static) constexpr ([\w:]+) (k\w+)(\[\w*\])? = (.*);$")
FIELD = re.compile(r"^\s*(?:alignas\(\w+\) )?((?:[\w:]|<[\w:]+>)+) (\w+)(\[[^\]]+\])?(?: = .*|\{.*\})?;$")
ENUMERATOR = re.compile(r"^\s*(\w+)(?: = [^,]+)?,?$")


def parse(path):
    """The entities of a header, in its order."""
    entities = []
    inside = None  # the struct, enum or namespace that contains the current line
    last = None  # the row that a continued comment belongs to
    last_indent = 0
    pending = ""  # comment on the lines before a row
    before = ""  # comment directly before the current line

    def add(row, rows, line):
        nonlocal last, last_indent, pending
        if pending[:1].islower():
            row.heading = pending
        elif pending and not row.meaning:
            row.meaning = pending.removeprefix("--- ")
        pending = ""
        last, last_indent = row, len(line) - len(line.lstrip())
        rows.append(row)

    def open_entity(kind, name):
        entities.append(Entity(kind, name, path.name, meaning=before.removeprefix("--- ")))
        return entities[-1]

    for number, line in enumerate(path.read_text().splitlines(), 1):
        where = f"{path}:{number}"
        code, _, comment = line.partition("//") if '"//' not in line else (line, "", "")
        code, comment = code.rstrip(), comment.strip()
        if not code.strip():
            indent = len(line) - len(line.lstrip())
            if not comment:
                last, pending = None, ""
            elif last is not None and indent > last_indent:
                last.meaning += " " + comment
            else:
                last, pending = None, f"{pending} {comment}".strip()
            continue
        before = pending
        if code.startswith(("#", "static_assert")) or re.match(r"^\}?\s*namespace rnicsim", code):
            last, pending = None, ""
        elif match := re.match(r"^namespace (\w+) \{$", code):
            inside = open_entity("namespace", match[1])
            inside.offsets = match[1] in ("config", "reg", "uar")
            last, pending = None, ""
        elif match := re.match(r"^struct (?:alignas\(\w+\) )?(\w+) \{$", code):
            inside = open_entity("struct", match[1])
            last, pending = None, ""
        elif match := re.match(r"^enum class (\w+) : [\w:]+ \{(.*)$", code):
            inside = open_entity("enum", match[1])
            last, pending = None, ""
            if match[2].endswith("};"):
                inside.rows = [Row(item.split("=")[0].strip()) for item in match[2][:-2].split(",")]
                inside = None
        elif code.strip() in ("}", "};"):
            inside, last, pending = None, None, ""
        elif match := CONSTANT.match(code):
            # Several constants in one declaration: `kFree = 0, kProcess = 1`.
            parts = re.split(r", (?=k\w+ = )", f"{match[2]}{match[3] or ''} = {match[4]}")
            for part in parts:
                name, source = part.split(" = ", 1)
                row = Row(name.split("[")[0], comment, match[1] + ("[]" if "[" in name else ""), source=source)
                if inside is None:
                    entity = Entity("constant", row.name, path.name)
                    entities.append(entity)
                    add(row, entity.rows, line)
                else:
                    add(row, inside.constants if inside.kind == "struct" else inside.rows, line)
        elif inside and inside.kind == "struct" and (match := FIELD.match(code)):
            add(Row(match[2], comment, match[1]), inside.rows, line)
        elif inside and inside.kind == "enum" and (match := ENUMERATOR.match(code)):
            add(Row(match[1], comment), inside.rows, line)
        elif inside and inside.kind == "enum" and code.strip().rstrip(",") and "," in code:
            for item in filter(None, (item.strip() for item in code.split(","))):
                add(Row(item.split("=")[0].strip(), comment), inside.rows, line)
        elif inside is None and path.name == "big_endian.h":
            continue
        else:
            raise SystemExit(f"{where}: not understood: {code}")
    return entities


def measure(entities, root, compiler):
    """Compiles and runs a program that prints every offset, size and value; returns them by key."""
    lines = []

    def emit(key, value):
        lines.append(f'  show("{key}", {value});')

    for e in entities:
        scope = e.name + "::" if e.kind in ("struct", "enum", "namespace") else ""
        if e.kind == "struct":
            emit(e.name, f"sizeof({e.name})")
            for row in e.rows:
                emit(f"{e.name}.{row.name}.offset", f"offsetof({e.name}, {row.name})")
                emit(f"{e.name}.{row.name}.size", f"sizeof({e.name}::{row.name})")
        rows = e.constants if e.kind == "struct" else e.rows
        for row in rows:
            emit(f"{scope}{row.name}", f"{scope}{row.name}")
    includes = "\n".join(f'#include "model/abi/{h}"' for h in HEADERS)
    program = f"""{includes}
#include <iostream>
#include <type_traits>
using namespace rnicsim::abi;
template <class T> void show(const char* key, const T& value) {{
  std::cout << key << '\\t';
  if constexpr (std::is_enum_v<T>) std::cout << static_cast<unsigned long long>(value);
  else if constexpr (std::is_convertible_v<const T&, const char*>) std::cout << value;
  else if constexpr (std::is_array_v<T>) for (const auto& v : value) std::cout << (&v == value ? "" : ", ") << +v;
  else std::cout << +value;
  std::cout << '\\n';
}}
int main() {{
""" + "\n".join(lines) + "\n}\n"
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "manual.cpp"
        source.write_text(program)
        binary = pathlib.Path(folder) / "manual"
        command = [compiler, "-std=c++20", "-O0", "-w", "-Wno-invalid-offsetof", f"-I{root}", "-o", binary, source]
        if subprocess.run(command).returncode:
            raise SystemExit("the headers, or what was read from them, do not compile")
        output = subprocess.run([binary], check=True, capture_output=True, text=True).stdout
    return dict(line.split("\t") for line in output.splitlines())


def escaped(text):
    return re.sub(r"<(?=[A-Za-z/!])", "&lt;", text.replace("|", "\\|")).strip()


def value_text(row, value):
    if not re.fullmatch(r"\d+", value):
        return f"`{value}`"
    if re.fullmatch(r"0x[\da-f]+", row.source):
        return row.source  # keeps the leading zeros of the header's text
    return f"0x{int(value):x}" if re.search(r"0x|<<|~", row.source) else value


def heading_row(row, columns):
    return [f"| *{escaped(row.heading)}* |" + " |" * (columns - 1)] if row.heading else []


def struct_table(e, values):
    size = int(values[e.name])
    out = [f"`{e.name}`, {size} bytes.", "", "| offset | bytes | name | meaning |", "|---|---|---|---|"]
    digits = max(2, len(f"{size - 1:x}"))
    end = 0
    for row in e.rows:
        offset, width = int(values[f"{e.name}.{row.name}.offset"]), int(values[f"{e.name}.{row.name}.size"])
        # A gap is a field that the parser missed, unless alignment explains the gap.
        if offset < end or offset - end >= 64:
            raise SystemExit(f"{e.header}: {e.name}: bytes {end} to {offset} are explained by no field")
        if offset > end:
            out.append(f"| 0x{end:0{digits}x} | {offset - end} | - | padding |")
        kind = "" if OWN_TYPES.match(row.type) or "<" in row.type else f"`{row.type}`"
        meaning = "; ".join(filter(None, [kind, escaped(row.meaning)]))
        name = "-" if row.name.startswith("reserved") else row.name
        out += heading_row(row, 4)
        says = meaning or ('reserved, 0' if name == '-' else '')
        out.append(f"| 0x{offset:0{digits}x} | {width} | {name} | {says} |")
        end = offset + width
    if size - end >= 4096 or end > size:
        raise SystemExit(f"{e.header}: {e.name}: bytes {end} to {size} are explained by no field")
    if end < size:
        out.append(f"| 0x{end:0{digits}x} | {size - end} | - | padding |")
    if e.constants:
        out += ["", "| value | name | meaning |", "|---|---|---|"]
        for row in e.constants:
            out.append(f"| {value_text(row, values[f'{e.name}::{row.name}'])} | {row.name} | {escaped(row.meaning)} |")
    return out


def value_table(entities, values):
    """The table of an enum, a namespace, or constants: a row for each value."""
    out = []
    first = entities[0]
    rows = [(e, row) for e in entities for row in e.rows]
    if first.kind == "namespace" and first.name == "reg":
        out += ["| offset | bits | access | name | meaning |", "|---|---|---|---|---|"]
        for e, row in rows:
            match = re.fullmatch(r"(\d+) (RO|RW|WO) (.*)", row.meaning)
            if not match:
                raise SystemExit(f"{e.header}: reg::{row.name}: the comment must begin with bits and RO, RW or WO")
            value = int(values[f"reg::{row.name}"])
            out.append(f"| 0x{value:03x} | {match[1]} | {match[2]} | {row.name} | {escaped(match[3])} |")
        return out
    if first.offsets:
        # A namespace of offsets also holds bits and sizes; these follow in a second table.
        out += ["| offset | name | meaning |", "|---|---|---|"]
        for _, row in (pair for pair in rows if pair[1].source.startswith("0x")):
            out.append(f"| 0x{int(values[f'{first.name}::{row.name}']):03x} | {row.name} | {escaped(row.meaning)} |")
        rows = [pair for pair in rows if not pair[1].source.startswith("0x")]
        out.append("")
    out += ["| value | name | meaning |", "|---|---|---|"]
    for e, row in rows:
        value = values[row.name if e.kind == "constant" else f"{e.name}::{row.name}"]
        if e.kind == "enum":
            hexadecimal = e.name in ("SendOpcode", "CqeOpcode", "EventType", "CommandStatus", "CommandOpcode")
            text = f"0x{int(value):02x}" if hexadecimal else value
        else:
            text = value_text(row, value)
        out += heading_row(row, 3)
        out.append(f"| {text} | {row.name} | {escaped(row.meaning)} |")
    return out


def render(manual, text, entities, values):
    """The manual with its tables filled in."""
    by_name = {e.name: e for e in entities}
    shown = set()
    out = []
    lines = iter(text.splitlines())
    for line in lines:
        out.append(line)
        match = re.fullmatch(r"<!-- table: (.+) -->", line)
        if not match:
            continue
        names = match[1].split()
        for name in names:
            if name not in by_name:
                raise SystemExit(f"{manual}: `{line}`: the headers have no {name}")
        chosen = [by_name[name] for name in names]
        shown.update(names)
        if len(chosen) > 1 and any(e.kind != "constant" for e in chosen):
            raise SystemExit(f"{manual}: `{line}`: only constants share a table")
        out += struct_table(chosen[0], values) if chosen[0].kind == "struct" else value_table(chosen, values)
        for skipped in lines:
            if skipped == "<!-- end -->":
                out.append(skipped)
                break
            if skipped.startswith("<!-- table:"):
                raise SystemExit(f"{manual}: `{line}` has no end")
        else:
            raise SystemExit(f"{manual}: `{line}` has no end")
    missing = [f"{e.header}: {e.name}" for e in entities if e.name not in shown]
    if missing:
        raise SystemExit(f"{manual} has no table for\n  " + "\n  ".join(missing))
    return "\n".join(out) + "\n"


SYNDROMES = {"CommandSyndrome": "model/nic/queues/command_unit.h", "QpSyndrome": "model/nic/engine/qp_context.h"}


def check_syndromes(root, text):
    """The manual's list of syndromes is written by hand: it must have the device's numbers and names, a row each."""
    section = re.search(r"^### Syndromes$(.*?)^#", text, re.MULTILINE | re.DOTALL)
    told = re.findall(r"^\| 0x(\w+) \| (\w+) \|", section[1], re.MULTILINE) if section else []
    real = []
    for name, header in SYNDROMES.items():
        body = re.search(rf"enum class {name}\b[^{{]*{{(.*?)}}", (root / header).read_text(), re.DOTALL)[1]
        real += [(value, row) for row, value in re.findall(r"(\w+) = 0x(\w+)", body)]
    if told != real:
        lines = [f"{mark} 0x{value} {name}" for mark, some, others in (("+", told, real), ("-", real, told))
                 for value, name in some if (value, name) not in others]
        raise SystemExit("docs/device.md, Syndromes, is not what model/nic says:\n  " + "\n  ".join(lines or ["order"]))


def run(root, compiler, write):
    entities = [e for header in HEADERS for e in parse(root / "model/abi" / header)]
    values = measure(entities, root, compiler)
    check_syndromes(root, (root / "docs/device.md").read_text())
    failures = 0
    for manual, headers in MANUALS.items():
        text = (root / manual).read_text()
        wanted = render(manual, text, [e for e in entities if e.header in headers], values)
        if wanted == text:
            continue
        if write:
            (root / manual).write_text(wanted)
            print(f"{manual} written")
            continue
        failures += 1
        sys.stdout.writelines(difflib.unified_diff(text.splitlines(True), wanted.splitlines(True), manual, "model/abi"))
        print(f"{manual} is not what model/abi says; bring it up to date with: tests/support/device_manual.py --write")
    return 1 if failures else 0


def self_test(root, compiler):
    """Changes to the headers that the check must report."""
    changes = [
        ("../nic/engine/qp_context.h", "ring = 0x10b", "ring = 0x1ff", "0x1ff"),
        ("queue.h", "Be32 byte_count;  // at most", "Be32 octet_count;  // at most", "octet_count"),
        ("device.h", "kCommandDoorbell = 0x088", "kCommandDoorbell = 0x08c", "0x08c"),
        ("context.h", "Be32 send_cqn;\n  Be32 receive_cqn;", "Be32 receive_cqn;\n  Be32 send_cqn;", "send_cqn"),
        ("queue.h", "send_with_imm = 0x0b,", "send_with_imm = 0x0b,\n  send_twice = 0x0e,", "send_twice"),
        ("command.h", "struct QueryQp {", "struct Extra {\n  Be32 word;\n};\nstruct QueryQp {", "no table for"),
        ("device.h", "// 32 RO DeviceStatus", "// 32 RO state of the device", "state of the device"),
    ]
    failures = 0
    for header, before, after, told in changes:
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder)
            shutil.copytree(root / "model/abi", copy / "model/abi")
            for syndromes in SYNDROMES.values():
                (copy / syndromes).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(root / syndromes, copy / syndromes)
            (copy / "docs").mkdir()
            for manual in MANUALS:
                shutil.copy(root / manual, copy / manual)
            file = copy / "model/abi" / header
            text = file.read_text()
            if before not in text:
                print(f"self-test: {header} no longer holds '{before}': choose another change")
                failures += 1
                continue
            file.write_text(text.replace(before, after, 1))
            check = [sys.executable, __file__, "--root", folder, "--compiler", compiler]
            result = subprocess.run(check, capture_output=True, text=True)
            if result.returncode == 0 or told not in result.stdout + result.stderr:
                print(f"self-test: {header}: '{after}' went unnoticed:\n{result.stdout}{result.stderr}")
                failures += 1
    print(f"{len(changes)} changes, {failures} unnoticed")
    return 1 if failures else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test(arguments.root, arguments.compiler)
    return run(arguments.root, arguments.compiler, arguments.write)


if __name__ == "__main__":
    sys.exit(main())
