#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Checks that the golden gate finds faults. Twelve faults, one at a time: parameters of the NIC, lines of the verbs
library, of the transport, of the device and of the kernel agent, layouts. `rnicsim check traces/golden CASE` must find
each fault in its case, and print the first difference, the block that shows the difference, and the changed parameter
or that no parameter differs. Without a fault all cases pass.

usage: sabotage_test.py BUILD [FAULT...]

BUILD is a build tree in which everything is built. The tools are those of tests/soak/mutation_test.py: the test
compiles copies of the sources with the fault beside the original code, and links golden_behaviour again in
BUILD/sabotage. An environment variable selects the active fault. Exit status 0: all faults were found.
"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "soak"))
import mutation_test  # noqa: E402

NONE, ALL_PASSED, NOT_ALL = -1, 0, 1


class Fault:
    """A fault, the case that must find it, the block that shows the first difference, and a regular expression for the
    output of `check` from the difference on."""
    cause = "(no parameter, seed, command or version differs|code, or a parameter that is not known to act)"

    def __init__(self, name, case, block, difference):
        self.name, self.case, self.block, self.difference = name, case, block, difference


class Parameters(Fault):
    def __init__(self, name, sets, case, block, difference):
        super().__init__(name, case, block, difference)
        self.sets = sets
        self.cause = re.escape(sets.split("=")[0])


class Line(Fault):
    """`old` occurs once in the file; IS in `new` is true while the fault is active."""
    def __init__(self, name, file, old, new, case, block, difference):
        super().__init__(name, case, block, difference)
        self.file, self.old, self.new = file, old, new


FAULTS = [
    Parameters("transmit_latency", "nic.tx.latency=171ns", "rc_write", "nic.port",
               r"time \+1 ns\n(.*\n)* +A: .* frame_sent .*\n"),
    Parameters("pcie_read_latency", "nic.pcie.read_latency=404ns", "qp_states", "nic.command_unit",
               r"time \+2 ns\n(.*\n)* +A: .* device_command .*\n"),
    Parameters("context_cache", "nic.contexts.qpc.l0_entries=0,nic.contexts.qpc.l1_entries=1", "loopback", "nic.engine",
               r"time \+.*\n(.*\n)* +nic\.contexts\.qpc\.l0_entries: 256 \| 0\n"),
    Parameters("send_time", "nic.units.send=55.5ns", "rc_send", "nic.engine",
               r"time \+1 ns\n(.*\n)* +A: .* packet_sent .*\n"),
    Line("no_blue_flame", "verbs/provider/send_ring.cpp", "if (layout_.blue_flame && ",
         "if (!IS && layout_.blue_flame && ", "rc_write", "nic.doorbell",
         r".*wqe_bytes 64 -> 0\n(.*\n)* +B: .* doorbell .*\n"),
    Line("arms_for_solicited", "verbs/provider/uar.cpp", "(solicited_only ? abi::CqArm::kSolicitedOnly : 0)",
         "(solicited_only || IS ? abi::CqArm::kSolicitedOnly : 0)", "cq_event", "nic.doorbell",
         r"solicited_only 0 -> 1\n(.*\n)* +B: .* cq_arm .*\n"),
    Line("message_numbers", "model/roce/responders/responder.cpp", "    msn_ = (msn_ + 1) & Psn::kMask;",
         "    if (!IS) msn_ = (msn_ + 1) & Psn::kMask;", "rc_send", "nic.engine",
         r".*msn 1 -> 0\n(.*\n)* +B: .* packet_sent .*\n"),
    Line("immediate_layout", "verbs/provider/wqe_builder.cpp", "segment.immediate = immediate;",
         "segment.immediate = IS ? __builtin_bswap32(immediate) : immediate;", "rc_send_imm", "nic.engine",
         r"immediate 0x\w+ -> 0x\w+\n(.*\n)* +B: .* packet_sent .*\n"),
    Line("remote_key_layout", "verbs/provider/wqe_builder.cpp", ".rkey = rkey});",
         ".rkey = IS ? __builtin_bswap32(rkey) : rkey});", "rc_read", "nic.engine",
         r"rkey 0x202 -> 0x2020000\n(.*\n)* +B: .* packet_sent .* READ_REQUEST .*\n"),
    Line("context_layout", "model/nic/engine/qp_context.cpp", "context.timeout = given.timeout;",
         "context.timeout = IS ? given.retry_count : given.timeout;", "ack_timeout", "nic.engine",
         r"time .*\n(.*\n)* +A: .* packet_sent .*\n"),
    Line("receive_pipeline", "model/nic/packets/receive/steering.cpp", "pipeline_.push(now() + delay + latency_, ",
         "pipeline_.push(now() + delay + latency_ + Duration{IS ? 1000 : 0}, ", "rc_write", "nic.rx",
         r"time \+1 ns\n(.*\n)* +A: .* packet_received .*\n"),
    Line("registration_time", "model/host/kernel_agent.cpp", "params_.cpu.register_page * std::int64_t{pages->count}",
         "params_.cpu.register_page * std::int64_t{pages->count} * (IS ? 2 : 1)", "rc_write", "nic.command_unit",
         r"time \+.*\n(.*\n)* +A: .* device_command .*\n"),
]


def mutants(faults):
    for number, fault in enumerate(faults):
        lines = (ROOT / fault.file).read_text().split("\n")
        found = [at for at, line in enumerate(lines) if fault.old in line]
        if len(found) != 1:
            sys.exit(f"{fault.name}: {fault.file} has {fault.old!r} {len(found)} times")
        line, new = lines[found[0]], fault.new.replace("IS", f"rnicsim_mutation::is({number})")
        mutant = mutation_test.Mutant(fault.file, found[0], line, new,
                                      lambda _, changed=line.replace(fault.old, new): changed, fault.name)
        mutant.id = number
        yield mutant


def link(tree, faults):
    """The folder of golden_behaviour with the faults compiled in, none active."""
    of_file = {}
    for mutant in mutants(faults):
        of_file.setdefault(mutant.file, []).append(mutant)

    def compile_one(file):
        if tree.compile(file, mutation_test.mutated((ROOT / file).read_text().split("\n"), of_file[file])):
            sys.exit(f"{file} does not compile with its faults")

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(compile_one, of_file))
    return tree.link("golden_behaviour", tree.archives(sorted(of_file))).parent


def check(build, folder, *cases, mutant=NONE, sets=""):
    environment = {**os.environ, "RNICSIM_MUTANT": str(mutant), "RNICSIM_TEST_SETS": sets}
    done = subprocess.run([build / "bin" / "rnicsim", "check", ROOT / "traces" / "golden", *cases, "--path", folder],
                          capture_output=True, text=True, env=environment, timeout=600)
    return done.returncode, done.stdout + done.stderr


def findings(text, case):
    """Output of `check` for a failed case, without the case's name."""
    found = re.search(rf"^FAILED  {case}: (.*\n(?: .*\n)*)", text, re.M)
    return found[1] if found else ""


def is_found(fault, status, text):
    told = findings(text, fault.case)
    return (status == NOT_ALL and re.search(rf"event \d+: {fault.difference}", told) is not None
            and f"\n  first in: {fault.block} of h" in told
            and re.search(rf"\n  cause: {fault.cause}", told) is not None)


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    chosen = [fault for fault in FAULTS if not sys.argv[2:] or fault.name in sys.argv[2:]]
    lines = [fault for fault in FAULTS if isinstance(fault, Line)]
    folder = link(mutation_test.Tree(build, "sabotage", [fault.file for fault in lines]), lines)
    status, text = check(build, folder)
    if status != ALL_PASSED:
        print(f"without a fault: status {status}\n{text}")
        return 1
    missed = 0
    for fault in chosen:
        if isinstance(fault, Line):
            status, text = check(build, folder, fault.case, mutant=lines.index(fault))
        else:
            status, text = check(build, folder, fault.case, sets=fault.sets)
        if is_found(fault, status, text):
            print(f"{fault.name}: found in {fault.case}: {findings(text, fault.case).splitlines()[0]}")
        else:
            missed += 1
            print(f"{fault.name}: NOT FOUND as expected: status {status}; of {fault.case}:\n"
                  f"{findings(text, fault.case) or text}")
    print(f"{len(chosen) - missed} of {len(chosen)} found")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
