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
    ("qp_engine", "roce_pkg.sv", "precedes = !ahead[23] && ahead != '0;", "precedes = !ahead[23];"),
    ("qp_engine", "requester.sv", "ghost = !roce_pkg::precedes(response_i.psn, c_q.unsent_psn)", "ghost = 1'b0"),
    ("qp_engine", "send_window.sv", "if (c_i.rnr_retry != 3'd7) step_o", "if (1'b1) step_o"),
    ("qp_engine", "requester.sv", "restart = outcome == qp_pkg::OutcomeProgress || reaction.rnr_wait",
     "restart = reaction.rnr_wait"),
    ("qp_engine", "send_window.sv", "step_o.c.left_psn = c_i.una_psn", "step_o.c.left_psn = c_i.left_psn"),
    ("qp_engine", "request_packet.sv", "c_i.outstanding != '0 || c_i.placing != '0)", "c_i.outstanding != '0)"),
    ("qp_engine", "request_packet.sv", "c_i.outstanding >= c_i.max_rd_atomic)", "c_i.outstanding > c_i.max_rd_atomic)"),
    ("qp_engine", "send_completion.sv", "step_o.c.drain_told = 1'b1;", "step_o.c.drain_told = 1'b0;"),
    ("qp_engine", "requester.sv", "if (c_q.life == qp_pkg::LifeFailed) post_step.state = qp_pkg::SendStFlush;",
     "if (c_q.life == qp_pkg::LifeFailed) post_step.state = qp_pkg::SendStIdle;"),
    ("qp_engine", "send_window.sv", "step_o.c.asked_psn = step_i.c.una_psn;", "step_o.c.asked_psn = c_i.una_psn;"),
    ("qp_engine", "send_window.sv", "step_o.c.sent_psn = step_i.c.una_psn;", "step_o.c.sent_psn = c_i.sent_psn;"),
    ("qp_engine", "send_window.sv", "if (c_i.cursor == c_i.una) step_o.c.cursor", "if (1'b0) step_o.c.cursor"),
    ("qp_engine", "request_packet.sv", "cursor_place >= fail_place", "cursor_place > fail_place"),
    ("qp_engine", "request_packet.sv", "index[7:0] == 8'hff", "index[7:0] == 8'hfe"),
    ("qp_engine", "requester.sv", "answer_step.c.gap_known = 1'b1;", "answer_step.c.gap_known = 1'b0;"),
    ("qp_engine", "send_control.sv", "if (control_i.retry_count != stay_i.c.retry_count) step_o",
     "if (1'b0) step_o"),
    ("qp_engine", "send_control.sv", "restart = control_i.timeout != stay_i.c.timeout;", "restart = 1'b0;"),
    # Responder: PSNs, NAKs, kept results, pending answers and their order.
    ("qp_engine", "request_check.sv", "end else if (ahead_by[23]) begin", "end else if (ahead_by[22]) begin"),
    ("qp_engine", "responder.sv", "if (check.sequence_error || check.not_ready)", "if (check.not_ready)"),
    ("qp_engine", "responder.sv", "if (check.sequence_error || check.not_ready) request_step",
     "if (check.sequence_error) request_step"),
    ("qp_engine", "responder.sv", "c_q.saved_next - 1'b1 - search_step", "c_q.saved_next - search_step"),
    ("qp_engine", "responder.sv", "|| searched_q >= c_q.max_dest_rd_atomic) begin", ") begin"),
    ("qp_engine", "responder.sv", "event_step.result.done = 1'b1", "event_step.result.done = 1'b0"),
    ("qp_engine", "responder.sv", "|| roce_pkg::precedes(request_i.psn, c_q.replay_psn);", ";"),
    ("qp_engine", "responder.sv", "request_step.done.placed = request_i.bytes == '0",
     "request_step.done.placed = 1'b1"),
    ("qp_engine", "request_check.sv", "parsed_o.is_atomic ? c_i.writes != '0 :", "parsed_o.is_atomic ? 1'b0 :"),
    ("qp_engine", "responder.sv", "queued.c.head = c_q.tail;", "queued.c.head = c_q.head;"),
    ("qp_engine", "responder.sv", "answer_step.c.ack_psn = pending.psn;",
     "answer_step.c.ack_psn = c_q.expected_psn - 24'd1;"),
    ("qp_engine", "request_check.sv", "c_i.rd_pending >= c_i.max_dest_rd_atomic) begin",
     "c_i.rd_pending > c_i.max_dest_rd_atomic) begin"),
    ("qp_engine", "responder.sv", "forward = event_i.pending == c_q.head[OW-1:0]", "forward = 1'b1"),
    ("qp_engine", "answer_packet.sv", "if (c.ahead >= qp_pkg::MaxAhead) begin", "if (1'b0) begin"),
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
