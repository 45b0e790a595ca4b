#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Checks that the tests of rtl/ detect faults: puts single-line faults into the modules, one at a time, and runs the tests
of the module, or of the engine that contains it.

usage: mutation_test.py path/to/project     (needs verilator, g++, GoogleTest, and the libraries of the simulator)

A mutant is killed when lint, an assertion or a test fails. Exit status 0: at least nine of ten mutants were killed, and
every module has a fault.
"""
import pathlib
import shutil
import sys
import tempfile

import verilated_modules

# Module under test, file, original text (occurs once), and the faulty text.
MUTANTS = [
    ("opcode_decoder", "roce_pkg.sv", "OpWriteLast = 8'h08", "OpWriteLast = 8'h18"),
    ("opcode_decoder", "opcode_decoder.sv", "known_o = 1'b0", "known_o = 1'b1"),
    ("opcode_decoder", "opcode_decoder.sv", "payload_o = roce_pkg::PayloadLastPart",
     "payload_o = roce_pkg::PayloadWhole"),
    ("round_robin", "round_robin.sv", "16'hfffe << grant_q[7:4]", "16'hffff << grant_q[7:4]"),
    ("round_robin", "round_robin.sv", "wanting_d[picked] = 1'b0", "wanting_d[grant_q] = 1'b0"),
    ("round_robin", "round_robin.sv", "busy_o = valid_q || |group_wants", "busy_o = valid_q"),
    ("timer_wheel", "timer_wheel.sv", "deadline = now_i + set_after_i + 1'b1", "deadline = now_i + set_after_i"),
    ("timer_wheel", "timer_wheel.sv", "|| deadline_q[5:0] != row_q", "|| deadline_q[5:0] == row_q"),
    ("timer_wheel", "timer_wheel.sv", "hand_d = now_i - TickWidth'(64)", "hand_d = now_i - TickWidth'(63)"),
    # Requester: PSNs, counters, timers, the window.
    ("qp_engine", "qp_pkg.sv", "precedes = !ahead[23] && ahead != '0;", "precedes = !ahead[23];"),
    ("qp_engine", "requester.sv", "ghost = !qp_pkg::precedes(response_i.psn, c_q.unsent_psn)", "ghost = 1'b0"),
    ("qp_engine", "requester.sv", "if (c_q.rnr_retry != 3'd7) c_d.rnr_retries", "if (1'b1) c_d.rnr_retries"),
    ("qp_engine", "requester.sv", "restart_d = r.outcome == qp_pkg::OutcomeProgress || r.rewound",
     "restart_d = r.rewound"),
    ("qp_engine", "requester.sv", "c_d.left_psn = c_q.una_psn", "c_d.left_psn = c_q.left_psn"),
    ("qp_engine", "requester.sv", "c_q.outstanding != '0 || c_q.placing != '0)", "c_q.outstanding != '0)"),
    ("qp_engine", "requester.sv", "c_q.outstanding >= c_q.max_rd_atomic)", "c_q.outstanding > c_q.max_rd_atomic)"),
    ("qp_engine", "requester.sv", "if (record_ready_i) c_d.drain_told = 1'b1;",
     "if (record_ready_i) c_d.drain_told = 1'b0;"),
    ("qp_engine", "requester.sv", "if (c_q.life == Failed) state_d = StFlush;",
     "if (c_q.life == Failed) state_d = StIdle;"),
    ("qp_engine", "requester.sv", "c_d.asked_psn = c_d.una_psn;", "c_d.asked_psn = c_q.una_psn;"),
    ("qp_engine", "requester.sv", "c_d.sent_psn = c_d.una_psn;", "c_d.sent_psn = c_q.sent_psn;"),
    ("qp_engine", "requester.sv", "c_d.una = c_q.una + 1'b1;\n      if (c_q.cursor == c_q.una)",
     "c_d.una = c_q.una + 1'b1;\n      if (1'b0)"),
    ("qp_engine", "requester.sv", "cursor_place >= fail_place", "cursor_place > fail_place"),
    ("qp_engine", "requester.sv", "index[7:0] == 8'hff", "index[7:0] == 8'hfe"),
    ("qp_engine", "requester.sv", "c_d.gap_known = 1'b1;", "c_d.gap_known = 1'b0;"),
    ("qp_engine", "requester.sv", "if (control_i.retry_count != c_q.retry_count) c_d.retries", "if (1'b0) c_d.retries"),
    ("qp_engine", "requester.sv", "restart_d = control_i.timeout != c_q.timeout;", "restart_d = 1'b0;"),
    # Responder: PSNs, NAKs, kept results, pending answers and their order.
    ("qp_engine", "responder.sv", "end else if (ahead_by[23]) begin", "end else if (ahead_by[22]) begin"),
    ("qp_engine", "responder.sv", "r.psn = c_q.expected_psn;\n                  c_d.nak_sent = 1'b1;",
     "r.psn = c_q.expected_psn;\n                  c_d.nak_sent = 1'b0;"),
    ("qp_engine", "responder.sv", "c_d.nak_sent = 1'b1;  // what follows", "c_d.nak_sent = 1'b0;  // what follows"),
    ("qp_engine", "responder.sv", "c_q.saved_next - 1'b1 - searched_d[SW-1:0]", "c_q.saved_next - searched_d[SW-1:0]"),
    ("qp_engine", "responder.sv", "|| searched_q >= c_q.max_dest_rd_atomic) begin", ") begin"),
    ("qp_engine", "responder.sv", "result_new.done = 1'b1", "result_new.done = 1'b0"),
    ("qp_engine", "responder.sv", "|| qp_pkg::precedes(request_i.psn, c_q.replay_psn)) begin", ") begin"),
    ("qp_engine", "responder.sv", "done_new.placed = request_i.bytes == '0", "done_new.placed = 1'b1"),
    ("qp_engine", "responder.sv", "is_atomic ? c_q.writes != '0 :", "is_atomic ? 1'b0 :"),
    ("qp_engine", "responder.sv", "c_d.head = c_q.tail;", "c_d.head = c_q.head;"),
    ("qp_engine", "responder.sv", "c_d.ack_psn = pending.psn;", "c_d.ack_psn = c_q.expected_psn - 24'd1;"),
    ("qp_engine", "responder.sv", "c_q.rd_pending >= c_q.max_dest_rd_atomic) begin",
     "c_q.rd_pending > c_q.max_dest_rd_atomic) begin"),
    ("qp_engine", "responder.sv", "forward_d = event_i.pending == c_q.head[OW-1:0]", "forward_d = 1'b1"),
    ("qp_engine", "responder.sv", "if (c_q.ahead >= qp_pkg::MaxAhead) begin", "if (1'b0) begin"),
    ("qp_engine", "qp_engine.sv", "|| timers_busy ||", "||"),
]


def killer(bench, rtl, name):
    """(killer, output): the check that detects the fault in the sources of `rtl`, or None."""
    try:
        program = bench.build(rtl, name)
    except verilated_modules.BuildError as error:
        return "lint", str(error)
    passed, text = verilated_modules.passes(program, "--gtest_fail_fast", timeout=600)
    return None if passed else "test", text


def main():
    if shutil.which("verilator") is None:
        print("verilator is not installed")
        return verilated_modules.SKIP
    project = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as top:
        folder = pathlib.Path(top)
        benches = {module: verilated_modules.Bench(project, module, folder / module)
                   for module in verilated_modules.MODULES}
        for module, bench in benches.items():
            failed, text = killer(bench, project / "rtl", "sound")
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
            failed, _ = killer(benches[module], rtl, f"build{number}")
            killed += failed is not None
            print(f"{'killed by ' + failed if failed else 'SURVIVED':<16}{file}: {old!r} -> {new!r}", flush=True)
    print(f"{killed} of {len(MUTANTS)} killed")
    return 0 if 10 * killed >= 9 * len(MUTANTS) else 1


if __name__ == "__main__":
    sys.exit(main())
