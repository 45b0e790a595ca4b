// SPDX-License-Identifier: Apache-2.0
// Next packet of a queue pair's answers: repeated answers first, then the ACK that waits, then the oldest pending
// answer. Combinational.
module answer_packet (
    input qp_pkg::answer_step_t   stay_i,
    input qp_pkg::answer_record_t stay_record_i,
    input qp_pkg::pending_t       pending_i,   // oldest pending answer
    input logic [63:0]            original_i,  // its original value, for an atomic
    input qp_pkg::replay_t        replay_i,    // oldest answer to be repeated

    output qp_pkg::answer_step_t   step_o,
    output qp_pkg::answer_record_t record_o
);

  qp_pkg::answer_context_t c;
  logic [12:0] mtu;
  logic read_ends, replay_ends;

  always_comb begin
    c = stay_i.c;
    mtu = 13'd1 << c.mtu_shift;
    read_ends = c.next_packet == qp_pkg::further_packets(pending_i.length, c.mtu_shift);
    replay_ends = replay_i.is_atomic ||
        c.replay_packet == qp_pkg::further_packets(replay_i.length, c.mtu_shift);
  end

  always_comb begin
    step_o = stay_i;
    record_o = stay_record_i;
    step_o.state = qp_pkg::AnswerStIdle;
    record_o.syndrome = qp_pkg::SyndromeAck;
    record_o.opcode = roce_pkg::OpAcknowledge;
    if (c.ahead >= qp_pkg::MaxAhead) begin
      // Tried again when packets have left.
    end else if (c.replay_head != c.replay_tail) begin
      step_o.emit = 1'b1;
      record_o.duplicate = 1'b1;
      record_o.psn = replay_i.psn + c.replay_packet;
      record_o.original = replay_i.address;
      record_o.address = replay_i.address + ({40'd0, c.replay_packet} << c.mtu_shift);
      record_o.rkey = replay_i.rkey;
      record_o.length = replay_ends ? replay_i.length - ({8'd0, c.replay_packet} << c.mtu_shift) : {19'd0, mtu};
      record_o.opcode = replay_i.is_atomic ? roce_pkg::OpAtomicAcknowledge :
          roce_pkg::read_response(c.replay_packet == '0, replay_ends);
      step_o.c.replay_packet = replay_ends ? '0 : c.replay_packet + 24'd1;
      if (replay_ends) step_o.c.replay_head = c.replay_head + 1'b1;
      step_o.c.replay_psn = record_o.psn + 24'd1;
    end else if (c.ack_waits) begin
      step_o.emit = 1'b1;
      record_o.psn = c.ack_psn;
      record_o.msn = c.ack_msn;
      step_o.c.ack_waits = 1'b0;
      step_o.c.answered_psn = c.ack_psn + 24'd1;
    end else if (c.head_ready) begin
      step_o.emit = 1'b1;
      record_o.psn = pending_i.psn + c.next_packet;
      record_o.msn = pending_i.msn;
      record_o.syndrome = pending_i.syndrome;
      record_o.fatal = pending_i.fatal;
      record_o.original = original_i;
      record_o.address = pending_i.address + ({40'd0, c.next_packet} << c.mtu_shift);
      record_o.rkey = pending_i.rkey;
      record_o.length = read_ends ? pending_i.length - ({8'd0, c.next_packet} << c.mtu_shift) : {19'd0, mtu};
      step_o.c.answered_psn = record_o.psn + 24'd1;
      if (pending_i.kind == qp_pkg::PendingNak) step_o.c.answered_psn = pending_i.psn;
      if (pending_i.kind == qp_pkg::PendingRead)
        record_o.opcode = roce_pkg::read_response(c.next_packet == '0, read_ends);
      if (pending_i.kind == qp_pkg::PendingAtomic) record_o.opcode = roce_pkg::OpAtomicAcknowledge;
      if (pending_i.kind == qp_pkg::PendingRead && !read_ends) begin
        step_o.c.next_packet = c.next_packet + 24'd1;
      end else begin
        step_o.c.next_packet = '0;
        step_o.c.head = c.head + 1'b1;
        step_o.c.head_ready = 1'b0;
        if (pending_i.kind != qp_pkg::PendingNak) step_o.c.rd_pending = c.rd_pending - 5'd1;
        step_o.state = qp_pkg::AnswerStSettle;
      end
    end
    if (step_o.emit) step_o.c.ahead = c.ahead + 6'd1;
  end

endmodule
