// SPDX-License-Identifier: Apache-2.0
// Changes of a queue pair's window by a step: the window moves over answered PSNs, or back to the oldest unanswered
// one. Combinational.
module send_window (
    input qp_pkg::send_context_t c_i,          // before the step
    input qp_pkg::send_step_t    step_i,
    input qp_pkg::send_record_t  record_i,
    input logic                  skip_i,       // `una` has no packets: an advance is over this message
    input logic                  rd_atomic_i,  // `una` is a READ or atomic
    input logic [23:0]           response_psn_i,

    output qp_pkg::send_step_t   step_o,
    output qp_pkg::send_record_t record_o
);

  localparam int unsigned MW = qp_pkg::MessageWidth;

  logic [MW-1:0] fail_place, progress_place;  // positions in the window, relative to head
  logic skips;

  always_comb begin
    step_o = step_i;
    record_o = record_i;
    skips = step_i.advance && skip_i;
    if (step_i.advance) begin
      if (!skips) step_o.c.partial = !step_i.answered;
      if (skips || step_i.answered) begin
        step_o.c.una = c_i.una + 1'b1;
        if (c_i.cursor == c_i.una) step_o.c.cursor = step_o.c.una;
        else if (!skips && rd_atomic_i) step_o.c.outstanding = c_i.outstanding - 5'd1;
      end
      if (!skips && step_i.answered) step_o.c.asked_psn = step_i.c.una_psn;
      // Skip retransmission of packets whose answer was only late.
      if (!skips && roce_pkg::precedes(c_i.sent_psn, step_i.c.una_psn)) step_o.c.sent_psn = step_i.c.una_psn;
    end
    record_o.rewound = step_i.go_back || step_i.rnr_wait;
    if (step_i.go_back) step_o.c.retries = step_i.c.retries - 3'd1;
    if (step_i.rnr_wait) begin
      if (c_i.rnr_retry != 3'd7) step_o.c.rnr_retries = step_i.c.rnr_retries - 3'd1;
      step_o.c.rnr_waiting = 1'b1;
      step_o.rnr_set = 1'b1;
    end
    if (record_o.rewound) begin
      step_o.c.cursor = c_i.una;
      step_o.c.sent_psn = c_i.una_psn;
      step_o.c.left_psn = c_i.una_psn;
      step_o.c.outstanding = '0;
    end
    if (step_i.fail) begin
      record_o.outcome = qp_pkg::OutcomeFailed;
      step_o.progress_write = c_i.una != c_i.tail;
      step_o.progress.status = step_i.fail_status;
    end
    if (record_i.op == qp_pkg::SendOpResponse) begin
      record_o.psn = response_psn_i;
      record_o.end_psn = step_i.c.una_psn;
    end
    // The oldest message that will fail.
    fail_place = c_i.fail_at - c_i.head[MW-1:0];
    progress_place = step_i.progress_index - c_i.head[MW-1:0];
    if (step_o.progress_write && step_o.progress.status != qp_pkg::StatusSuccess &&
        {1'b0, progress_place} < step_i.c.tail - c_i.head && (!c_i.failing || progress_place < fail_place)) begin
      step_o.c.failing = 1'b1;
      step_o.c.fail_at = step_i.progress_index;
    end
  end

endmodule
