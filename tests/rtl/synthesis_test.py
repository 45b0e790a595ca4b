#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Synthesis of each module by yosys: no latches, no loops, and inferred memories. Prints the cells.

usage: synthesis_test.py path/to/rtl
"""
import json
import pathlib
import shutil
import subprocess
import sys

SKIP = 77
# Bits of memory for 256 queue pairs: contexts; 32 messages each, with their progress and operands.
REQUESTER = 256 * 255 + 8192 * (214 + 16 + 128)
# Contexts; 32 pending answers each, with their outcomes; 16 replays each, and PSNs and results of 16 atomics.
RESPONDER = 256 * 510 + 8192 * (190 + 67) + 4096 * (153 + 24 + 65)
# Deadlines of the timers, the timers of each row, and the non-empty groups of each row.
WHEEL = 512 * 37 + 512 * 64 + 64 * 8
PARTS = ["roce_pkg.sv", "qp_pkg.sv", "opcode_decoder.sv", "round_robin.sv", "ram_1r1w.sv"]
REQUESTER_PARTS = ["response_check.sv", "request_packet.sv", "send_control.sv", "send_completion.sv",
                   "send_window.sv", "requester.sv"]
RESPONDER_PARTS = ["request_check.sv", "answer_packet.sv", "responder.sv"]
MODULES = {
    "opcode_decoder": (["roce_pkg.sv", "opcode_decoder.sv"], 0),
    "round_robin": (["round_robin.sv"], 0),
    "ram_1r1w": (["ram_1r1w.sv"], 256 * 32),
    "stream_register": (["stream_register.sv"], 0),
    "requester": ([*PARTS, *REQUESTER_PARTS], REQUESTER),
    "responder": ([*PARTS, *RESPONDER_PARTS], RESPONDER),
    "qp_engine": ([*PARTS, "stream_register.sv", "timer_wheel.sv", *REQUESTER_PARTS, *RESPONDER_PARTS, "qp_engine.sv"],
                  REQUESTER + RESPONDER + WHEEL),
    "timer_wheel": (["timer_wheel.sv"], WHEEL),
}


def synthesized(folder, module, sources):
    """The statistics of a module before its memories are mapped to cells."""
    script = "; ".join([
        "read_verilog -sv " + " ".join(str(folder / source) for source in sources),
        f"hierarchy -check -top {module}", "proc -norom", "flatten", "opt", "check -assert",
        "select -assert-none t:$dlatch t:$adlatch t:$dlatchsr", "select -clear",
        "tee -q -o /dev/stdout stat -json"])
    run = subprocess.run(["yosys", "-q", "-p", script], capture_output=True, text=True, check=False)
    if run.returncode != 0:
        sys.exit(f"{module}: yosys failed:\n{run.stdout}{run.stderr}")
    text = run.stdout
    return json.loads(text[text.index("{"):])["design"]


def main():
    if shutil.which("yosys") is None:
        print("yosys is not installed")
        return SKIP
    folder = pathlib.Path(sys.argv[1])
    wrong = 0
    for module, (sources, memory_bits) in MODULES.items():
        stat = synthesized(folder, module, sources)
        print(f"{module}: {stat['num_cells']} cells, {stat['num_memory_bits']} bits of memory")
        if stat["num_memory_bits"] != memory_bits:
            print(f"{module}: {memory_bits} bits of memory were wanted")
            wrong = 1
    listed = {source for sources, _ in MODULES.values() for source in sources}
    for forgotten in {path.name for path in folder.glob("*.sv")} - listed:
        print(f"{forgotten} is not in the list of this test")
        wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main())
