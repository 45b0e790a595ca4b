#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Checks that the tests detect faults: puts single-line faults into the transport, the NIC and the driver, and runs the
quick in-process tests with a single active fault.

usage: mutation_test.py BUILD [--mutants 100] [--seed 1] [--rooms model/roce,...] [--jobs 1] [--budget 120] [--list]
       mutation_test.py --pins

BUILD is a build tree in which everything is built. A second build in BUILD/mutation holds all mutants: of each drawn
file a copy is compiled in which every fault stands beside the original code; an environment variable selects the active
fault. The objects of the tests are linked again with these copies. For a mutant, only tests that execute its place run,
until a test fails or does not end.

The drawn faults depend on the seed and on the text of each line, not on the number of lines: a change of a file does
not alter the faults drawn in other files. Headers are not mutated, because every test would have to be compiled again.

Faults that no test can detect are in mutants_equivalent.txt, with reasons, and are not drawn. Exit status 0: at least
nine of ten mutants were killed, and all PINNED mutants, which are drawn first. --pins only checks that the lines of the
pinned mutants still exist.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ROOMS = ("model/roce", "model/nic", "verbs/provider")
RUNGS = ("unit", "protocol", "verbs", "timing")
EQUIVALENT = HERE / "mutants_equivalent.txt"
FLOOR = 0.9

# Faults that the tests once missed, part of every round: (description, file, line text, occurrence of that text, faulty
# code). IS is true while the fault is active. Files outside ROOMS are permitted; a line has at most one fault.
PINNED = [
    ("a page's translation costs nothing", "model/nic/contexts/translation.cpp", "translated.wait += wait;", 1,
     "if (!IS) translated.wait += wait;"),
    ("nor does one on a walk", "model/nic/contexts/translation.cpp", "walk->wait += wait;", 1,
     "if (!IS) walk->wait += wait;"),
    ("an answer is asked for every 1024 packets", "model/roce/requester.cpp", "% window_.asks_every", 0,
     "% (IS ? 1024 : window_.asks_every)"),
    ("no silence after an RNR NAK", "model/roce/responders/responder.cpp", "nak_sent_ = true;  //", 0,
     "nak_sent_ = !IS;  //"),
    ("a plain WRITE is solicited", "model/roce/requester.cpp", "(send || request.immediate)", 0,
     "(IS || send || request.immediate)"),
    ("the driver leaves out each 128th doorbell", "verbs/provider/uar.cpp", "mmio_(", 0,
     "if (static int n = 0; !IS || ++n % 128 != 0) mmio_("),
    ("the device leaves out each 64th", "model/nic/queues/doorbell.cpp", "  send(std::move(doorbell));", 0,
     "  if (static int n = 0; !IS || ++n % 64 != 0) send(std::move(doorbell));"),
    ("a stale rejection is followed by no timewait", "model/cm/received.cpp",
     "if (message.reason == RejectReason::stale_connection)", 0,
     "if (!IS && message.reason == RejectReason::stale_connection)"),
    ("two times that are about as long do not add up", "model/cm/connection_manager.cpp",
     "smaller + 1 >= larger ? 1 : 0", 0, "!IS && smaller + 1 >= larger ? 1 : 0"),
    ("an accepted connection has no type of service", "model/host/cm/rdma_id_events.cpp",
     "id.traffic_class = listener->traffic_class;", 0, "if (!IS) id.traffic_class = listener->traffic_class;"),
    ("nor its listener's ACK timeout", "model/host/cm/rdma_id_events.cpp", "id.ack_timeout = listener->ack_timeout;", 0,
     "if (!IS) id.ack_timeout = listener->ack_timeout;"),
    ("a switch asks its last port alone whether all are alike", "model/fabric/switch.cpp",
     "alike_ = alike_ && lines[i] == lines.front();", 0, "alike_ = (IS || alike_) && lines[i] == lines.front();"),
    ("a frame to a faster port is cut through", "model/fabric/switch.cpp", "(in > out ? now() : now() - in)", 0,
     "(!IS && in > out ? now() : now() - in)"),
    ("a switch obeys a pause of what may be lost", "model/fabric/switch.cpp",
     "& 1) != 0 && ingress_.lossless(priority))", 0, "& 1) != 0 && (IS || ingress_.lossless(priority)))"),
    ("a NIC obeys a pause of what may be lost", "model/nic/packets/port.cpp", "(pause->enabled & params_.pfc)", 0,
     "(pause->enabled & (IS ? 0xffu : params_.pfc))"),
    ("a batch costs the pace of one operation", "sim/bench/agents/pacer.cpp",
     "next_ps_ += between_ps_ * operations;", 0,
     "next_ps_ += between_ps_ * (IS ? 1 : operations);"),
    ("what is written under a lock overwrites the lock", "sim/bench/agents/sequencer.cpp",
     "of_lock || !flow_.locks() ?", 0,
     "IS || of_lock || !flow_.locks() ?"),
    ("a lock that somebody has is taken", "sim/bench/agents/sequencer.cpp", "= is_lock(track) && !got_lock(number);", 0,
     "= !IS && is_lock(track) && !got_lock(number);"),
]
PINNED_FILES = tuple(file for _, file, *_ in PINNED)

# The active fault and, when the environment names a file, a record of the executed places.
PRELUDE = """#pragma once
#include <cstdlib>
#include <cstdio>
namespace rnicsim_mutation {
constexpr int kMost = 4096;
struct State {
  int active = -1;
  const char* seen_in = nullptr;
  bool seen[kMost] = {};
  State() {
    if (const char* text = std::getenv("RNICSIM_MUTANT")) active = std::atoi(text);
    seen_in = std::getenv("RNICSIM_MUTANTS_SEEN");
  }
  ~State() {
    if (seen_in == nullptr) return;
    if (std::FILE* file = std::fopen(seen_in, "a")) {
      for (int i = 0; i < kMost; ++i)
        if (seen[i]) std::fprintf(file, "%d\\n", i);
      std::fclose(file);
    }
  }
};
inline State state;
inline bool is(int mutant) {
  if (state.seen_in != nullptr) state.seen[mutant] = true;
  return state.active == mutant;
}
}  // namespace rnicsim_mutation
"""


class Mutant:
    def __init__(self, file, number, line, changed, shape, what):
        self.file, self.number, self.line, self.changed, self.shape, self.what = (
            file, number, line, changed, shape, what)
        self.id = None
        self.pinned = False

    def key(self):
        """The mutant's line in the list of equivalent mutants."""
        return f"{self.file}: {self.line.strip()} -> {self.changed.strip() or '(nothing)'}"

    def rank(self, seed):
        return hashlib.sha256(f"{seed} {self.key()}".encode()).digest()

    def text(self):
        return self.shape(self.id)


# --- Places of faults.
def code_of(line):
    """The line without its comment."""
    return re.sub(r"\s*//.*", "", line)


def closing(code, at):
    """Index of the parenthesis that closes the one at `at`; None if it is not on this line."""
    depth = 0
    for i in range(at, len(code)):
        depth += (code[i] in "([{") - (code[i] in ")]}")
        if depth == 0:
            return i
    return None


def balanced(code):
    return all(code.count(a) == code.count(b) for a, b in ("()", "[]", "{}"))


RELATIONS = {" < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > ", " == ": " != ", " != ": " == ",
             " && ": " || ", " || ": " && ", " + ": " - ", " - ": " + ", " += ": " -= ", " -= ": " += "}


def faults_in(code, enumerators):
    """(code with a fault, description) for every operator, number and enumerator of the code."""
    for old, new in RELATIONS.items():
        for found in re.finditer(re.escape(old), code):
            yield code[:found.start()] + new + code[found.end():], f"{old.strip()} becomes {new.strip()}"
    for found in re.finditer(r"(?<![\w.\"'])(\d+)(?:u|ull)?(?![\w.'\"])", code):
        number = str(int(found[1]) + 1)
        yield code[:found.start(1)] + number + code[found.end(1):], f"{found[1]} becomes {number}"
    for found in re.finditer(r"\b(\w+)::(\w+)\b(?!\s*[(:])", code):
        enums = enumerators.get(found[2], {})
        names = enums.get(found[1]) or next(iter(enums.values()), None)
        if names:
            other = names[(names.index(found[2]) + 1) % len(names)]
            yield code[:found.start(2)] + other + code[found.end(2):], f"{found[2]} becomes {other}"
    for found in re.finditer(r"\b(true|false)\b", code):
        other = "false" if found[1] == "true" else "true"
        yield code[:found.start()] + other + code[found.end():], f"{found[1]} becomes {other}"


def enumerators_of(root):
    """Every enumerator of the model's enum classes -> the enums that have it -> all enumerators of each enum."""
    known = {}
    for header in sorted((root / "model").rglob("*.h")):
        text = re.sub(r"//.*", "", header.read_text())
        for enum, body in re.findall(r"enum class (\w+)(?: : [\w:]+)? \{([^}]*)\}", text):
            names = [part.split("=")[0].strip() for part in body.split(",") if part.strip()]
            for name in names:
                if len(names) > 1:
                    known.setdefault(name, {})[enum] = names
    return known


def switch(mutant, changed, original):
    return f"(rnicsim_mutation::is({mutant}) ? ({changed}) : ({original}))"


def either(mutant, changed, original):
    return f"{{ if (rnicsim_mutation::is({mutant})) {{ {changed} }} else {{ {original} }} }}"


NO_STATEMENTS = ("#", "}", "case ", "default", "using ", "else", "static_assert")
STATEMENT = re.compile(r"^(?:return\b[^;]*|(?:\+\+|--)?[\w.:>\[\]*()-]+(?:\([^;]*\)| [-+|&^]?= [^;]*)?|\+\+[^;]*);$")


def mutants_of_line(file, number, line, following, enumerators):
    code = code_of(line)
    body = code.strip()
    indent = line[:len(line) - len(line.lstrip())]
    if not body or '"' in body or re.search(r"(?<!\w)'", body) or body.startswith(NO_STATEMENTS):
        return
    make = lambda changed, shape, what: Mutant(file, number, code.rstrip(), changed, shape, what)
    before_else = following.strip().startswith(("else", "} else"))

    # if (...) and while (...), with any statement behind.
    header = re.match(r"^(if|while) (?:constexpr )?\(", body)
    if header and "constexpr" not in header[0]:
        at = header.end() - 1
        end = closing(body, at)
        if end is None:
            return
        condition = body[at + 1:end]
        prefix, last = condition.rsplit("; ", 1) if "; " in condition else ("", condition)
        if re.match(r"^(const )?[\w:]+[*&]? [\w]+ = ", last) or re.match(r"^(const )?auto", last):
            last = ""
        if last and balanced(last):
            start = f"{indent}{header[1]} ({prefix + '; ' if prefix else ''}"
            for changed, what in [*faults_in(last, enumerators), (f"!({last})", "the condition negated")]:
                yield make(body.replace(last, changed, 1),
                           lambda id, c=changed, s=start: f"{s}{switch(id, c, last)}){body[end + 1:]}", what)
        rest = body[end + 1:].strip()
        if rest.endswith(";") and balanced(rest) and STATEMENT.match(rest) and not before_else:
            start = f"{indent}{body[:end + 1]}"
            for changed, what in faults_in(rest, enumerators):
                yield make(f"{body[:end + 1]} {changed}", lambda id, c=changed, s=start: f"{s} {either(id, c, rest)}",
                           what)
        return
    if not body.endswith(";") or not balanced(body) or before_else:
        return

    # A declaration with a value.
    declared = re.match(r"^((?:const |static )*(?:auto|bool|Duration|std::\w+|[A-Z]\w+)[&*]* \w+ = )(.*);$", body)
    if declared and not declared[2].startswith(("[", "{")):
        for changed, what in faults_in(declared[2], enumerators):
            yield make(f"{declared[1]}{changed};",
                       lambda id, c=changed: f"{indent}{declared[1]}{switch(id, c, declared[2])};", what)
        return
    if not STATEMENT.match(body):
        return
    for changed, what in faults_in(body, enumerators):
        yield make(changed,
                   lambda id, c=changed: indent + either(id, c, body), what)
    if not body.startswith("return"):
        yield make("", lambda id: indent + either(id, "", body), "the statement removed")


def candidates(root, rooms):
    enumerators = enumerators_of(root)
    for room in rooms:
        for path in sorted((root / room).rglob("*.cpp")):
            lines = path.read_text().split("\n")
            depth = 0
            for i, line in enumerate(lines):
                code = code_of(line)
                inside = depth > 0 and line.startswith(" ")
                # True if the line begins a statement.
                whole = i == 0 or re.search(r"([;{}:]|^)\s*$", code_of(lines[i - 1]))
                depth += code.count("{") - code.count("}")
                if inside and whole:
                    following = lines[i + 1] if i + 1 < len(lines) else ""
                    yield from mutants_of_line(str(path.relative_to(root)), i, line, following, enumerators)


def pinned(root):
    for what, file, old, place, new in PINNED:
        lines = (root / file).read_text().split("\n")
        found = [number for number, line in enumerate(lines) if old in line]
        if place >= len(found):
            sys.exit(f"pinned: {what}: {file} no longer has {old!r}")
        at = found[place]
        mutant = Mutant(file, at, lines[at], what, lambda id, line=lines[at], old=old, new=new: line.replace(
            old, new.replace("IS", f"rnicsim_mutation::is({id})"), 1), what)
        mutant.pinned = True
        yield mutant


def equivalents():
    if not EQUIVALENT.exists():
        return set()
    lines = [line for line in EQUIVALENT.read_text().splitlines() if line and not line.startswith("#")]
    return {line for line in lines if not line.startswith("    ")}


# --- The build.
def is_newer(file, other):
    return file.stat().st_mtime > other.stat().st_mtime


class Tree:
    """The build tree, and a folder with the objects that contain mutants: of the rooms, the pinned files and `more`."""

    def __init__(self, build, folder="mutation", more=()):
        self.build, self.folder = build, build / folder
        self.folder.mkdir(exist_ok=True)
        self.objects = {}    # source -> its object in the build tree
        self.commands = {}   # source -> compiler command
        # Joined source (cmake/unity.cmake) -> (file, object, command) of each unit that contains the source.
        self.units = {}
        for entry in json.loads((build / "compile_commands.json").read_text()):
            file, command = entry["file"], entry["command"]
            built = re.search(r" -o (\S+)", command)[1]
            joined = re.findall(r'#include "(.*\.cpp)"', pathlib.Path(file).read_text()) if "/Unity/" in file else []
            for path in joined or [file]:
                source = os.path.relpath(path, ROOT)
                if not source.startswith((*ROOMS, *PINNED_FILES, *more)):
                    continue
                own = f"{os.path.dirname(built)}/{pathlib.Path(path).name}.o" if joined else built
                self.objects.setdefault(source, own)
                self.commands.setdefault(source, command.replace(built, own).replace(file, path))
                if joined:
                    self.units.setdefault(source, []).append((pathlib.Path(file), built, command))
        (self.folder / "prelude.h").write_text(PRELUDE)

    def without(self, unit, sources):
        """Compiles a joined unit without the given sources; returns the object."""
        file, built, command = unit
        rest = self.folder / "source" / os.path.relpath(file, self.build)
        rest.parent.mkdir(parents=True, exist_ok=True)
        text = file.read_text()
        for source in sources:
            text = text.replace(f'#include "{ROOT / source}"\n', "")
        rest.write_text(text)
        output = self.folder / "objects" / built
        output.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(command.replace(f" -o {built}", f" -o {output}").replace(str(file), str(rest)) + " -O1 -w",
                       shell=True, cwd=self.build, check=True, capture_output=True)
        return output

    def compile(self, source, text):
        """Indices of the lines with errors; [] if the text compiled."""
        copy = self.folder / "source" / source
        output = self.folder / "objects" / self.objects[source]
        built = self.units[source][0][1] if source in self.units else self.objects[source]
        if copy.exists() and output.exists() and copy.read_text() == text and is_newer(output, self.build / built):
            return []
        output.unlink(missing_ok=True)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(text)
        output.parent.mkdir(parents=True, exist_ok=True)
        command = self.commands[source].replace(f" -o {self.objects[source]}", f" -o {output}")
        command = command.replace(str(ROOT / source), str(copy))
        command += f" -O1 -w -fmax-errors=0 -include {self.folder / 'prelude.h'}"
        done = subprocess.run(command, shell=True, cwd=self.build, capture_output=True, text=True)
        if done.returncode == 0:
            return []
        lines = [int(number) - 1 for number in re.findall(rf"{re.escape(str(copy))}:(\d+):\d+: error", done.stderr)]
        if not lines:
            raise RuntimeError(done.stderr[-3000:])
        return lines

    def archives(self, sources):
        """Copies of the libraries in which mutated objects replace the original ones."""
        made = {}
        joined = {}
        for source in sources:
            for unit in self.units.get(source, []):
                joined.setdefault(unit, []).append(source)
        rests = {unit: self.without(unit, its) for unit, its in joined.items()}
        for source in sources:
            for unit in self.units.get(source, [None]):
                target = re.match(r"(.*)/CMakeFiles/(\w+)\.dir/", unit[1] if unit else self.objects[source])
                name = f"{target[1]}/lib{target[2]}.a"
                copy = self.folder / name
                if name not in made:
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    copy.write_bytes((self.build / name).read_bytes())
                    made[name] = copy
                rest = [rests[unit]] if unit else []
                subprocess.run(["ar", "r", copy, self.folder / "objects" / self.objects[source], *rest], check=True,
                               capture_output=True)
        return made

    def link(self, test, archives):
        commands = subprocess.run(["ninja", "-C", self.build, "-t", "commands", "-s", f"tests/{test}"], check=True,
                                  capture_output=True, text=True).stdout
        command = next(line for line in commands.splitlines() if f" -o tests/{test} " in line)
        command = command[command.index("&&") + 3:] if command.startswith(":") else command
        command = command.split(f"-o tests/{test} ")[0] + f"-o {self.folder / test} " + re.sub(
            r" && .*$", "", command.split(f"-o tests/{test} ")[1])
        for name, copy in archives.items():
            command = command.replace(name, str(copy))
        subprocess.run(command, shell=True, cwd=self.build, check=True, capture_output=True, text=True)
        return self.folder / test


def mutated(lines, mutants):
    lines = list(lines)
    for mutant in mutants:
        lines[mutant.number] = mutant.text()
    return "\n".join(lines)


def draw(tree, wanted, seed, rooms):
    """Draws mutants that compile, at most one per line; their objects are made."""
    listed = equivalents()
    ranked = sorted((m for m in candidates(ROOT, rooms) if m.file in tree.commands), key=lambda m: m.rank(seed))
    known = {mutant.key() for mutant in ranked}
    for line in sorted(listed - known):
        print(f"note: no longer there: {line}")
    rest = iter([*pinned(ROOT), *(mutant for mutant in ranked if mutant.key() not in listed)])
    chosen, taken, stale, number = [], set(), set(), 0

    def build(file):
        of_file = [mutant for mutant in chosen if mutant.file == file]
        errors = tree.compile(file, mutated((ROOT / file).read_text().split("\n"), of_file))
        return [mutant for mutant in of_file if mutant.number in errors]

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        while True:
            while len(chosen) < max(wanted, len(PINNED)) and (mutant := next(rest, None)):
                if (mutant.file, mutant.number) not in taken:
                    taken.add((mutant.file, mutant.number))
                    mutant.id, number = number, number + 1
                    chosen.append(mutant)
                    stale.add(mutant.file)
            if not stale:
                return chosen, sorted({mutant.file for mutant in chosen})
            misfits = [mutant for found in pool.map(build, sorted(stale)) for mutant in found]
            stale = {mutant.file for mutant in misfits}
            for mutant in misfits:
                if mutant.pinned:
                    sys.exit(f"pinned: {mutant.what}: {mutant.file}:{mutant.number + 1} does not compile with it")
                taken.discard((mutant.file, mutant.number))
                chosen.remove(mutant)


# --- The tests.
class Test:
    def __init__(self, entry, programs):
        properties = {each["name"]: each["value"] for each in entry.get("properties", [])}
        self.name, self.command = entry["name"], entry["command"]
        self.program = pathlib.Path(self.command[0]).name
        self.variables = dict(each.split("=", 1) for each in properties.get("ENVIRONMENT", []))
        self.took, self.reaches, self.place = 0, set(), 0
        programs.add(self.program)

    def passes(self, build, program, timeout, **more):
        variables = {**os.environ, **self.variables, **{key: str(value) for key, value in more.items()}}
        try:
            done = subprocess.run([program, *self.command[1:]], cwd=build / "tests", capture_output=True,
                                  timeout=timeout, env=variables)
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0


def quick_tests(build):
    """Tests of the rungs that run in a single process; without the SystemVerilog engine, which has no mutants."""
    listed = json.loads(subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1", "-L", "^quick$", "-L",
                                        "^in-process$", "-L", f"^({'|'.join(RUNGS)})$"], check=True,
                                       capture_output=True, text=True).stdout)
    programs = set()
    tests = [Test(entry, programs) for entry in listed["tests"]
             if "command" in entry and pathlib.Path(entry["command"][0]).parent == build / "tests"]
    tests = [test for test in tests if "RNICSIM_TEST_ENGINE" not in test.variables]
    return tests, sorted(programs)


def survey(test, tree, programs):
    """Measures the duration of a test and the places that it executes; False: the test fails without a fault."""
    # Hashed, because some test names are longer than a file name may be.
    seen = tree.folder / "seen" / hashlib.sha256(test.name.encode()).hexdigest()
    seen.parent.mkdir(exist_ok=True)
    seen.unlink(missing_ok=True)
    begun = time.monotonic()
    sound = test.passes(tree.build, programs[test.program], 600, RNICSIM_MUTANTS_SEEN=seen)
    test.took = time.monotonic() - begun
    test.reaches = {int(line) for line in seen.read_text().split()} if seen.exists() else set()
    return sound


def in_order(tests):
    """The shortest test of each program, then the second of each, and so on: tests of the same program tend to fail for
    the same faults."""
    places = {}
    for test in sorted(tests, key=lambda test: test.took):
        test.place = places[test.program] = places.get(test.program, -1) + 1
    return sorted(tests, key=lambda test: (test.place, test.took))


def killer(mutant, tests, tree, programs, budget):
    """The test that fails; None if no test failed within the budget."""
    left = budget
    for test in in_order([test for test in tests if mutant.id in test.reaches]):
        begun = time.monotonic()
        if not test.passes(tree.build, programs[test.program], 10 + 10 * test.took, RNICSIM_MUTANT=mutant.id):
            return test
        left -= time.monotonic() - begun
        if left < 0:
            return None
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path, nargs="?")
    parser.add_argument("--pins", action="store_true", help="say where the pinned faults stand, and no more")
    parser.add_argument("--mutants", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rooms", default=",".join(ROOMS))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--budget", type=float, default=120, help="seconds of tests for a mutant; then it survived")
    parser.add_argument("--list", action="store_true", help="say what is drawn, without a test")
    arguments = parser.parse_args()
    if arguments.pins:
        places = [(mutant.file, mutant.number + 1) for mutant in pinned(ROOT)]
        print("\n".join(f"{file}:{line}" for file, line in places))
        return 0 if len(set(places)) == len(places) else "two pinned faults stand on one line"
    if arguments.build is None:
        parser.error("a build tree is needed")
    started = time.monotonic()
    tree = Tree(arguments.build.resolve())
    mutants, files = draw(tree, arguments.mutants, arguments.seed, arguments.rooms.split(","))
    if arguments.list:
        print("\n".join(mutant.key() for mutant in mutants))
        return 0
    archives = tree.archives(files)
    tests, names = quick_tests(tree.build)
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        programs = dict(zip(names, pool.map(lambda name: tree.link(name, archives), names)))
        print(f"{len(mutants)} mutants in {len(files)} files, {len(tests)} tests in {len(programs)} programs "
              f"({time.monotonic() - started:.0f} s)", flush=True)
        unsound = [test.name for test, sound in
                   zip(tests, pool.map(lambda test: survey(test, tree, programs), tests)) if not sound]
        if unsound:
            print("these fail without a fault: " + " ".join(unsound))
            return 1
        print(f"the tests pass without a fault ({time.monotonic() - started:.0f} s)", flush=True)
        survivors = []
        kill = lambda mutant: killer(mutant, tests, tree, programs, arguments.budget)
        for mutant, test in zip(mutants, pool.map(kill, mutants)):
            reached = any(mutant.id in each.reaches for each in tests)
            verdict = f"killed by {test.name}" if test else "SURVIVED" if reached else "SURVIVED, never reached"
            print(f"{mutant.file}:{mutant.number + 1}: {mutant.what}: {verdict}", flush=True)
            if not test:
                survivors.append(mutant)
    killed = len(mutants) - len(survivors)
    print(f"{killed} of {len(mutants)} killed ({time.monotonic() - started:.0f} s)")
    for mutant in survivors:
        print(f"pinned: {mutant.key()}" if mutant.pinned else mutant.key())
    return 0 if killed >= FLOOR * len(mutants) and not any(mutant.pinned for mutant in survivors) else 1


if __name__ == "__main__":
    sys.exit(main())
