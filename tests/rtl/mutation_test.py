#!/usr/bin/env python3
"""Would the tests of rtl/ notice? Puts single-line faults into the modules, one at a time, and runs each module's test.

usage: mutation_test.py path/to/project     (needs verilator, g++ and GoogleTest)

A mutant is killed when lint, an assertion or the test fails. Exit status 0: at least nine of ten were, as was no module
without a fault.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

SKIP = 77
SOURCES = {
    "opcode_decoder": ["roce_pkg.sv", "opcode_decoder.sv"],
    "round_robin": ["round_robin.sv", "sva/round_robin_sva.sv"],
    "timer_wheel": ["timer_wheel.sv", "sva/timer_wheel_sva.sv"],
}
# Module, file, what stands there (once), and the fault.
MUTANTS = [
    ("opcode_decoder", "roce_pkg.sv", "OpWriteLast = 8'h08", "OpWriteLast = 8'h18"),
    ("opcode_decoder", "roce_pkg.sv", "HeaderAtomic = 5'b01000", "HeaderAtomic = 5'b01010"),
    ("opcode_decoder", "roce_pkg.sv", "    OperationRead,\n    OperationReadResponse,",
     "    OperationReadResponse,\n    OperationRead,"),
    ("opcode_decoder", "opcode_decoder.sv", "known_o = 1'b0", "known_o = 1'b1"),
    ("opcode_decoder", "opcode_decoder.sv", "roce_pkg::HeaderAeth | roce_pkg::HeaderAtomicAck", "roce_pkg::HeaderAtomicAck"),
    ("opcode_decoder", "opcode_decoder.sv", "payload_o = roce_pkg::PayloadLastPart", "payload_o = roce_pkg::PayloadWhole"),
    ("opcode_decoder", "opcode_decoder.sv", "position_o = roce_pkg::PositionMiddle", "position_o = roce_pkg::PositionFirst"),
    ("round_robin", "round_robin.sv", "16'hfffe << grant_q[3:0]", "16'hffff << grant_q[3:0]"),
    ("round_robin", "round_robin.sv", "16'hfffe << grant_q[7:4]", "16'hffff << grant_q[7:4]"),
    ("round_robin", "round_robin.sv", "(!valid_q || grant_ready_i)", "!valid_q"),
    ("round_robin", "round_robin.sv", "|| (valid_q && !grant_ready_i)", "|| valid_q"),
    ("round_robin", "round_robin.sv", "wanting_d[picked] = 1'b0", "wanting_d[grant_q] = 1'b0"),
    ("round_robin", "round_robin.sv", "first = i[3:0] - 4'd1", "first = i[3:0]"),
    ("round_robin", "round_robin.sv", "busy_o = valid_q || |group_wants", "busy_o = valid_q"),
    ("timer_wheel", "timer_wheel.sv", "deadline = now_i + set_after_i + 1'b1", "deadline = now_i + set_after_i"),
    ("timer_wheel", "timer_wheel.sv", "|| deadline_q[5:0] != row_q", "|| deadline_q[5:0] == row_q"),
    ("timer_wheel", "timer_wheel.sv", "if (set_timer_i == expired_q) valid_d = 1'b0", "if (set_timer_i == timer_q) valid_d = 1'b0"),
    ("timer_wheel", "timer_wheel.sv", "hand_d = now_i - TickWidth'(64)", "hand_d = now_i - TickWidth'(63)"),
    ("timer_wheel", "timer_wheel.sv", "if (!groups_data[timer_q[8:6]]) words_data = '0", "if (groups_data[timer_q[8:6]]) words_data = '0"),
]


def failure(project, rtl, module, folder):
    """Builds the module's test with the sources in `rtl`, and runs it: None, or what failed, and its output."""
    sources = [str(rtl / "lint.vlt")] + [str(rtl / source) for source in SOURCES[module]]
    extra = [str(project / "model/roce/opcode.cpp")] if module == "opcode_decoder" else []
    build = subprocess.run(
        ["verilator", "--cc", "--exe", "--build", "--assert", "-Wall", "--top", module, "--Mdir", str(folder), "-CFLAGS",
         f"-std=c++20 -O1 -I{project}", "-LDFLAGS", "-lgtest -lgtest_main -lpthread", "-o", "test", *sources,
         str(project / f"tests/rtl/{module}_test.cpp"), *extra],
        capture_output=True, text=True, check=False)
    if build.returncode != 0:
        return "lint", build.stdout + build.stderr
    run = subprocess.run([str(folder / "test")], capture_output=True, text=True, timeout=120, check=False)
    return "test" if run.returncode != 0 else None, run.stdout + run.stderr


def main():
    if shutil.which("verilator") is None:
        print("verilator is not installed")
        return SKIP
    project = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as top:
        folder = pathlib.Path(top)
        for module in SOURCES:
            failed, text = failure(project, project / "rtl", module, folder / module)
            if failed:
                print(f"{module} fails without a fault:\n{text}")
                return 1
        killed = 0
        for number, (module, file, old, new) in enumerate(MUTANTS):
            rtl = folder / f"rtl{number}"
            shutil.copytree(project / "rtl", rtl)
            text = (rtl / file).read_text()
            if text.count(old) != 1:
                print(f"{file}: {old!r} is there {text.count(old)} times")
                return 1
            (rtl / file).write_text(text.replace(old, new))
            failed, _ = failure(project, rtl, module, folder / f"build{number}")
            killed += failed is not None
            print(f"{'killed by ' + failed if failed else 'SURVIVED':<16}{file}: {old!r} -> {new!r}", flush=True)
    print(f"{killed} of {len(MUTANTS)} killed")
    return 0 if 10 * killed >= 9 * len(MUTANTS) else 1


if __name__ == "__main__":
    sys.exit(main())
