#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The device's layouts for other languages, made from the contract's headers as the tables of docs/device.md are:
plain C in model/abi/c (installed as <prefix>/include/rnicsim/abi), Python in sim/python/rnicsim/abi.py. And the names
and reserved bytes that a check of a driver tells of, in model/nic/personality/rnic/names.inc.

    device_layouts.py [--write] [--compiler g++] [--c-compiler gcc] [--root FOLDER] [--self-test]

Without --write: fails if they are not what model/abi says, if the C does not compile as C11, or if an offset or a size
in C or Python is not the C++ compiler's.
"""

import argparse
import ctypes
import difflib
import importlib.util
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap

import device_manual

# attach.h is the protocol between the simulator and simulated programs, not a part of the device
HEADERS = [header for header in device_manual.HEADERS if header != "attach.h"]
C_FOLDER, PYTHON_FILE = "model/abi/c", "sim/python/rnicsim/abi.py"
NAMES_FILE = "model/nic/personality/rnic/names.inc"
NAMED_ENUMS = ("CommandOpcode", "CommandStatus", "IcmTable", "SendOpcode")
COLUMNS = 120
BIG_ENDIAN = {"Be16": 2, "Be32": 4, "Be64": 8}
LICENCE = "SPDX-License-Identifier: Apache-2.0"
# Licence of the C headers only: kernel drivers include them, and the Linux kernel is GPL-2.0.
C_LICENCE = "/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */"
GENERATED = "Made from model/abi/{} by tests/support/device_layouts.py --write."

C_BIG_ENDIAN = """/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* Big-endian integers, as the device has them in its registers and in memory. */
#ifndef RNICSIM_ABI_BIG_ENDIAN_H
#define RNICSIM_ABI_BIG_ENDIAN_H

#include <stdint.h>

/* A compile-time check of a layout. */
#if defined(__cplusplus)
#define RNICSIM_HOLDS(what) static_assert(what, #what)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define RNICSIM_HOLDS(what) _Static_assert(what, #what)
#else
#define RNICSIM_HOLDS(what) extern int rnicsim_holds[(what) ? 1 : -1]
#endif

/* Stored big-endian: read and written by the functions below alone. */
typedef uint16_t rnicsim_be16;
typedef uint32_t rnicsim_be32;
typedef uint64_t rnicsim_be64;

"""
C_CONVERSIONS = """static inline rnicsim_be{0} rnicsim_to_be{0}(uint{0}_t value) {{
  union {{ uint8_t bytes[{1}]; rnicsim_be{0} stored; }} out;
  for (int i = 0; i < {1}; ++i) out.bytes[i] = (uint8_t)(value >> (8 * ({1} - 1 - i)));
  return out.stored;
}}
static inline uint{0}_t rnicsim_from_be{0}(rnicsim_be{0} stored) {{
  union {{ rnicsim_be{0} stored; uint8_t bytes[{1}]; }} in = {{stored}};
  uint{0}_t value = 0;
  for (int i = 0; i < {1}; ++i) value = (uint{0}_t)(value << 8 | in.bytes[i]);
  return value;
}}

"""


def snake(name):
    """kMsixTable, CqArm, send_with_imm: msix_table, cq_arm, send_with_imm."""
    name = re.sub(r"^k(?=[A-Z])", "", name)
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def macro(*names):
    return "_".join(["rnicsim", *map(snake, names)]).upper()


class Contract:
    def __init__(self, root, compiler):
        self.headers = {header: device_manual.parse(root / "model/abi" / header) for header in HEADERS}
        entities = [entity for rows in self.headers.values() for entity in rows]
        self.structs = {entity.name for entity in entities if entity.kind == "struct"}
        self.enums = {entity.name for entity in entities if entity.kind == "enum"}
        self.values = device_manual.measure(entities, root, compiler)
        include = re.compile(r'^#include "model/abi/(\w+\.h)"', re.MULTILINE)
        self.includes = {header: include.findall((root / "model/abi" / header).read_text()) for header in HEADERS}

    def size(self, struct, field=None):
        return int(self.values[f"{struct}.{field}.size" if field else struct])

    def offset(self, struct, field):
        return int(self.values[f"{struct}.{field}.offset"])

    def element(self, struct, row):
        """(bytes of an element, number of elements) of a field."""
        size = self.size(struct, row.name)
        if row.type in self.structs:
            one = self.size(row.type)
        elif row.type in BIG_ENDIAN:
            one = BIG_ENDIAN[row.type]
        elif row.type in self.enums:
            one = size
        else:
            one = int(re.fullmatch(r"std::u?int(\d+)_t", row.type)[1]) // 8
        return one, size // one

    def value(self, scope, row):
        """A constant's value: the text of the header if it is a single number, else the evaluated number."""
        text = self.values[f"{scope}::{row.name}" if scope else row.name]
        return device_manual.value_text(row, text).strip("`")


# --- C

def c_comment(text, indent=""):
    text = text.replace("*/", "* /")
    lines = textwrap.wrap(text, COLUMNS - len(indent) - 6) if text else []
    return [f"{indent}{'/* ' if i == 0 else ' * '}{line}{' */' if i == len(lines) - 1 else ''}"
            for i, line in enumerate(lines)]


def c_line(code, meaning, indent=""):
    """A line with the comment behind the code, or before it where the line would be too long."""
    whole = f"{indent}{code}  /* {meaning.replace('*/', '* /')} */"
    if not meaning:
        return [indent + code]
    return [whole] if len(whole) <= COLUMNS else [*c_comment(meaning, indent), indent + code]


def c_constant(contract, scope, row):
    value = contract.value(scope, row)
    if "," in value:
        value = f"{{{value}}}"
    else:
        value += "ull" if "uint64" in row.type else "u"
    return c_line(f"#define {macro(*filter(None, [scope, row.name]))} {value}", row.meaning)


def c_struct(contract, entity):
    name = f"struct rnicsim_{snake(entity.name)}"
    out = [*c_comment(entity.meaning), f"{name} {{"]
    checks = [f"RNICSIM_HOLDS(sizeof({name}) == {contract.size(entity.name)});"]
    for row in entity.rows:
        one, count = contract.element(entity.name, row)
        if row.type in contract.structs:
            kind = f"struct rnicsim_{snake(row.type)}"
        else:
            kind = f"rnicsim_be{8 * one}" if row.type in BIG_ENDIAN else f"uint{8 * one}_t"
        meaning = row.meaning
        if row.type in contract.enums:
            meaning = "; ".join(filter(None, [f"enum rnicsim_{snake(row.type)}", meaning]))
        out += [f"  /* --- {row.heading} */"] if row.heading else []
        out += c_line(f"{kind} {row.name}{f'[{count}]' if count > 1 else ''};", meaning, "  ")
        checks.append(f"RNICSIM_HOLDS(offsetof({name}, {row.name}) == {contract.offset(entity.name, row.name)});")
    out.append("};")
    for row in entity.constants:
        out += c_constant(contract, entity.name, row)
    return out + checks


def c_header(contract, header):
    guard = f"RNICSIM_ABI_{header.split('.')[0].upper()}_H"
    out = [C_LICENCE, *c_comment(GENERATED.format(header) + " What it means is docs/device.md."), f"#ifndef {guard}",
           f"#define {guard}", "", "#include <stddef.h>", "#include <stdint.h>", ""]
    includes = [f'#include "{include}"' for include in contract.includes[header]]
    out += [*includes, ""] if includes else []
    last = None
    for entity in contract.headers[header]:
        if not (entity.kind == "constant" and last == "constant"):
            out += [""] if out[-1] else []
        last = entity.kind
        if entity.kind == "struct":
            out += c_struct(contract, entity)
        elif entity.kind == "enum":
            out += [*c_comment(entity.meaning), f"enum rnicsim_{snake(entity.name)} {{"]
            for row in entity.rows:
                value = contract.values[f"{entity.name}::{row.name}"]
                out += c_line(f"{macro(entity.name, row.name)} = {value},", row.meaning, "  ")
            out.append("};")
        else:
            scope = entity.name if entity.kind == "namespace" else ""
            out += c_comment(entity.meaning) if scope else []
            for row in entity.rows:
                out += c_constant(contract, scope, row)
    return "\n".join([*out, "", f"#endif  /* {guard} */", ""])


# --- Python

PYTHON_HEAD = '''# {licence}
"""Registers, layouts and numbers of the device, under the names that docs/device.md gives them.

{generated}

A layout is a ctypes structure in the device's byte order: `Qpc(send_cqn=3)`, `bytes(qpc)`,
`Cqe.from_buffer(memory, offset)`. It has no field but those of the manual (AttributeError), and a number has to fit
(ValueError).
"""

import ctypes
import enum

u8, u16, u32, u64 = ctypes.c_uint8, ctypes.c_uint16, ctypes.c_uint32, ctypes.c_uint64


class Layout(ctypes.BigEndianStructure):
    def __setattr__(self, name, value):
        # ctypes would take any name for one of Python's own, and cut a number to what fits.
        field = getattr(type(self), name, None)
        if not hasattr(field, "offset"):
            raise AttributeError(f"{{type(self).__name__}} has no field '{{name}}'")
        if isinstance(value, int) and value >> 8 * field.size:
            raise ValueError(f"{{type(self).__name__}}.{{name}}: {{value:#x}} does not fit into {{field.size}} bytes")
        super().__setattr__(name, value)

    def __repr__(self):
        fields = ((name, getattr(self, name)) for name, *_ in self._fields_ if not name.startswith("reserved"))
        shown = ((name, bytes(value).hex() if isinstance(value, ctypes.Array) else value) for name, value in fields)
        return f"{{type(self).__name__}}({{', '.join(f'{{name}}={{value}}' for name, value in shown)}})"
'''


def python_comment(text, indent=""):
    return [f"{indent}# {line}" for line in textwrap.wrap(text, COLUMNS - len(indent) - 2)] if text else []


def python_line(code, meaning, indent):
    whole = f"{indent}{code}  # {meaning}"
    if not meaning:
        return [indent + code]
    return [whole] if len(whole) <= COLUMNS else [*python_comment(meaning, indent), indent + code]


def python_constants(contract, scope, rows, indent):
    out = []
    for row in rows:
        value = contract.value(scope, row)
        out += python_line(f"{row.name} = {f'({value})' if ',' in value else value}", row.meaning, indent)
    return out


def python_entity(contract, entity):
    if entity.kind == "constant":
        return python_constants(contract, "", entity.rows, "")
    base = {"struct": "(Layout)", "enum": "(enum.IntEnum)", "namespace": ""}[entity.kind]
    out = ["", "", *python_comment(entity.meaning), f"class {entity.name}{base}:"]
    if entity.kind == "namespace":
        return out + python_constants(contract, entity.name, entity.rows, "    ") + ["", ""]
    if entity.kind == "enum":
        for row in entity.rows:
            out += python_line(f"{row.name} = {contract.values[f'{entity.name}::{row.name}']}", row.meaning, "    ")
        return out + ["", ""]
    out += python_constants(contract, entity.name, entity.constants, "    ")
    out.append("    _fields_ = [")
    for row in entity.rows:
        one, count = contract.element(entity.name, row)
        kind = row.type if row.type in contract.structs else f"u{8 * one}"
        meaning = row.meaning
        if row.type in contract.enums:
            meaning = "; ".join(filter(None, [row.type, meaning]))
        out += python_line(f'("{row.name}", {kind}{f" * {count}" if count > 1 else ""}),', meaning, "        ")
    return out + ["    ]", "", ""]


def python_registers(contract):
    """Register names, by which errors name an offset of the register page."""
    out = ["", "", "# Offset: name, bits, access.", "REGISTERS = {"]
    for entity in contract.headers["device.h"]:
        if entity.kind == "namespace" and entity.name == "reg":
            for row in entity.rows:
                bits, access, _ = row.meaning.split(" ", 2)
                out.append(f'    reg.{row.name}: ("{row.name}", {bits}, "{access}"),')
    return [*out, "}"]


def python_module(contract):
    out = [PYTHON_HEAD.format(licence=LICENCE, generated=GENERATED.format("*.h"))]
    # Order of the #include directives: context.h precedes queue.h, whose entries hold an address vector.
    for header in ("device.h", "context.h", "queue.h", "command.h"):
        for entity in contract.headers[header]:
            out += python_entity(contract, entity)
    out += python_registers(contract)
    return re.sub(r"\n{4,}", "\n\n\n", "\n".join(out)).rstrip() + "\n"


# --- Names for the model's driver check

def reserved_bytes(contract, entity, base=0):
    """(offset, bytes) of the reserved fields of a layout, with those of nested layouts."""
    structs = {e.name: e for rows in contract.headers.values() for e in rows if e.kind == "struct"}
    for row in entity.rows:
        at = base + contract.offset(entity.name, row.name)
        one, count = contract.element(entity.name, row)
        if row.name.startswith("reserved"):
            yield at, one * count
        elif row.type in structs:
            for i in range(count):
                yield from reserved_bytes(contract, structs[row.type], at + i * one)


def names(contract):
    entities = [entity for header in HEADERS for entity in contract.headers[header]]
    namespaces = {entity.name: entity for entity in entities if entity.kind == "namespace"}
    out = [f"// {LICENCE}", f"// {GENERATED.format('*.h')}", "constexpr RegisterTerm kRegisters[] = {"]
    for row in namespaces["reg"].rows:
        bits, access, _ = row.meaning.split(" ", 2)
        readable, writable = ("true" if letter in access else "false" for letter in "RW")
        out.append(f'    {{{contract.value("reg", row)}, {bits}, {readable}, {writable}, "{row.name}"}},')
    out += ["};", "", "constexpr NamedNumber kConfigNames[] = {"]
    for row in namespaces["config"].rows:
        if row.name == "kSize":  # offsets precede kSize, bits follow
            break
        out.append(f'    {{{contract.value("config", row)}, "{row.name}"}},')
    out += ["};", "", "constexpr NamedNumber kDoorbellNames[] = {"]
    for row in namespaces["uar"].rows:
        if row.name != "kBlueFlameBytes":
            out.append(f'    {{{contract.value("uar", row)}, "{row.name}"}},')
    out.append("};")
    for entity in entities:
        if entity.kind != "enum" or entity.name not in NAMED_ENUMS:
            continue
        out += ["", f"constexpr NamedNumber k{entity.name}Names[] = {{"]
        out += [f'    {{{contract.values[f"{entity.name}::{row.name}"]}, "{row.name}"}},' for row in entity.rows]
        out.append("};")
    out += ["", "constexpr ReservedField kReservedFields[] = {"]
    for entity in entities:
        if entity.kind == "struct":
            out += [f'    {{"{entity.name}", {at}, {size}}},' for at, size in reserved_bytes(contract, entity)]
    return "\n".join([*out, "};", ""])


# --- Checks

def made(root, contract):
    files = {f"{C_FOLDER}/{header}": c_header(contract, header) for header in HEADERS}
    files[f"{C_FOLDER}/big_endian.h"] = (C_BIG_ENDIAN + "".join(C_CONVERSIONS.format(8 * n, n) for n in (2, 4, 8)) +
                                         "#endif  /* RNICSIM_ABI_BIG_ENDIAN_H */\n")
    files[PYTHON_FILE] = python_module(contract)
    files[NAMES_FILE] = names(contract)
    return files


def check_c(root, compiler):
    """Each header must compile alone; then a value is stored and loaded through the C layout."""
    for header in [*HEADERS, "big_endian.h"]:
        for language, standard in (("c", "c99"), ("c", "c11"), ("c++", "c++11"), ("c++", "c++20")):
            command = [compiler, f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]
            if subprocess.run([*command, "-x", language, f"-I{root / C_FOLDER}", "-"],
                              input=f'#include "{header}"\n', text=True).returncode:
                raise SystemExit(f"{C_FOLDER}/{header} does not compile as {standard}")
    program = """#include "command.h"
#include "queue.h"
int main(void) {
  struct rnicsim_cqe cqe = {.timestamp = rnicsim_to_be64(0x0102030405060708), .qpn = rnicsim_to_be32(0x0a0b0c)};
  const uint8_t* bytes = (const uint8_t*)&cqe;
  if (bytes[8] != 1 || bytes[15] != 8 || bytes[16] != 0 || bytes[19] != 0x0c) return 1;
  if (rnicsim_from_be64(cqe.timestamp) != 0x0102030405060708) return 2;
  return rnicsim_from_be16(rnicsim_to_be16(0x1234)) == 0x1234 && rnicsim_from_be32(cqe.qpn) == 0x0a0b0c ? 0 : 3;
}
"""
    with tempfile.TemporaryDirectory() as folder:
        binary = pathlib.Path(folder) / "layouts"
        command = [compiler, "-std=c99", "-Wall", "-Wextra", "-Werror", f"-I{root / C_FOLDER}", "-o", binary, "-x", "c"]
        if subprocess.run([*command, "-"], input=program, text=True).returncode or subprocess.run([binary]).returncode:
            raise SystemExit(f"{C_FOLDER}: values do not come back big-endian")


def check_python(root, contract):
    spec = importlib.util.spec_from_file_location("rnicsim_abi", root / PYTHON_FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in sorted(contract.structs):
        layout = getattr(module, name)
        ours = {field: (getattr(layout, field).offset, getattr(layout, field).size) for field, *_ in layout._fields_}
        theirs = {key.split(".")[1]: (contract.offset(name, key.split(".")[1]), contract.size(name, key.split(".")[1]))
                  for key in contract.values if key.startswith(f"{name}.") and key.endswith(".offset")}
        if ours != theirs or ctypes.sizeof(layout) != contract.size(name):
            raise SystemExit(f"{PYTHON_FILE}: {name}: {ours}, and model/abi has {theirs}")


def run(root, compiler, c_compiler, write):
    contract = Contract(root, compiler)
    stale = []
    for name, text in made(root, contract).items():
        file = root / name
        old = file.read_text() if file.exists() else ""
        if old == text:
            continue
        stale.append(name)
        if write:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            print(f"{file} written")
        else:
            sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), text.splitlines(True), name, "model/abi"))
    if stale and not write:
        print("not what model/abi says; bring it up to date with: tests/support/device_layouts.py --write")
        return 1
    check_c(root, c_compiler)
    check_python(root, contract)
    return 0


def self_test(root, compilers):
    """Changes that the check must report, with the file of each change."""
    changes = [
        ("model/abi/context.h", "Be32 send_cqn;\n  Be32 receive_cqn;", "Be32 receive_cqn;\n  Be32 send_cqn;",
         "send_cqn"),
        ("model/abi/device.h", "kCommandDoorbell = 0x088", "kCommandDoorbell = 0x08c", "0x08c"),
        ("model/abi/c/context.h", "rnicsim_be32 pd;", "rnicsim_be32 domain;", "domain"),
        ("sim/python/rnicsim/abi.py", '("pd", u32)', '("pd", u16)', "u16"),
        (NAMES_FILE, '32, false, true, "kCommandDoorbell"', '64, false, true, "kCommandDoorbell"', "kCommandDoorbell"),
    ]
    failures = 0
    for name, before, after, told in changes:
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder)
            shutil.copytree(root / "model/abi", copy / "model/abi")
            for made_file in (PYTHON_FILE, NAMES_FILE):
                (copy / made_file).parent.mkdir(parents=True)
                shutil.copy(root / made_file, copy / made_file)
            file = copy / name
            text = file.read_text()
            file.write_text(text.replace(before, after, 1))
            check = [sys.executable, __file__, "--root", folder, *compilers]
            result = subprocess.run(check, capture_output=True, text=True)
            if before not in text or result.returncode == 0 or told not in result.stdout + result.stderr:
                print(f"self-test: {name}: '{after}' went unnoticed:\n{result.stdout}{result.stderr}")
                failures += 1
    print(f"{len(changes)} changes, {failures} unnoticed")
    return 1 if failures else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--c-compiler", default="gcc")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test(arguments.root, ["--compiler", arguments.compiler, "--c-compiler", arguments.c_compiler])
    return run(arguments.root, arguments.compiler, arguments.c_compiler, arguments.write)


if __name__ == "__main__":
    sys.exit(main())
