// SPDX-License-Identifier: Apache-2.0
module responder_sva (
    input logic clk_i,
    input logic rst_ni,

    input logic                    control_valid_i,
    input logic                    control_ready_o,
    input qp_pkg::answer_control_t control_i,
    input logic                    request_valid_i,
    input logic                    request_ready_o,
    input qp_pkg::request_t        request_i,
    input logic                    event_valid_i,
    input logic                    event_ready_o,
    input qp_pkg::answer_event_t   event_i,

    input logic                   record_valid_o,
    input logic                   record_ready_i,
    input qp_pkg::answer_record_t record_o,
    input logic                   busy_o,

    // Internal state: the operation, and its context before a step (was_*) and in the last cycle, when it is written
    // back.
    input logic               idle,
    input logic               executes,
    input logic               ends,
    input qp_pkg::answer_op_e op_q,
    input logic               alive,
    input logic               was_alive,
    input logic               dropping,
    input logic               was_dropping,
    input logic [5:0]         head,
    input logic [5:0]         tail,
    input logic [5:0]         was_head,
    input logic [5:0]         was_tail,
    input logic               head_ready,
    input logic [23:0]        next_packet,
    input logic               ack_waits,
    input logic [23:0]        ack_psn,
    input logic [23:0]        expected_psn,
    input logic [23:0]        was_expected_psn,
    input logic [23:0]        answered_psn,
    input logic [5:0]         ahead,
    input logic [5:0]         was_ahead,
    input logic [4:0]         rd_pending,
    input logic [4:0]         was_rd_pending,
    input logic [4:0]         max_dest_rd_atomic,
    input logic [5:0]         was_writes,
    input logic [4:0]         was_atomics,
    input logic [4:0]         replay_head,
    input logic [4:0]         replay_tail,
    input logic [4:0]         saved_count
);

  logic taken, validates, accepts, answers, takes_event;
  assign taken = record_valid_o && record_ready_i;
  assign validates = taken && record_o.op == qp_pkg::AnswerOpRequest;
  assign accepts = validates && !record_o.duplicate && (record_o.verdict == qp_pkg::VerdictPlace ||
      record_o.verdict == qp_pkg::VerdictRead || record_o.verdict == qp_pkg::VerdictAtomic);
  assign answers = taken && record_o.op == qp_pkg::AnswerOpPacket;
  assign takes_event = executes && taken && op_q == qp_pkg::AnswerOpEvent;

  // --- Assumptions about the inputs.
  control_stands :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   control_valid_i && !control_ready_o |=> control_valid_i && $stable(control_i));
  request_stands :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   request_valid_i && !request_ready_o |=> request_valid_i && $stable(request_i));
  event_stands :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   event_valid_i && !event_ready_o |=> event_valid_i && $stable(event_i));
  as_many_rd_atomics_as_are_kept :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   control_valid_i && control_i.kind <= qp_pkg::ControlUpdate |->
                   control_i.max_dest_rd_atomic <= 5'd16);
  none_leaves_twice :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   takes_event && event_i.kind == qp_pkg::AnswerLeft |-> event_i.count <= was_ahead);
  placed_was_placing :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   takes_event && event_i.kind == qp_pkg::AnswerPlaced && was_alive |-> was_writes != '0);
  atomic_was_accepted :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   takes_event && event_i.kind == qp_pkg::AnswerAtomic && was_alive |-> was_atomics != '0);

  // --- Streams.
  record_stands :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   record_valid_o && !record_ready_i |=> record_valid_o && $stable(record_o));
  one_input_a_cycle :
  assert property (@(posedge clk_i) disable iff (!rst_ni) $onehot0({control_ready_o, request_ready_o, event_ready_o}));
  takes_what_is_offered :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   (!control_ready_o || control_valid_i) && (!request_ready_o || request_valid_i) &&
                   (!event_ready_o || event_valid_i));
  idle_emits_nothing :
  assert property (@(posedge clk_i) disable iff (!rst_ni) idle |-> !record_valid_o);
  works_while_busy :
  assert property (@(posedge clk_i) disable iff (!rst_ni) !idle |-> busy_o);

  // --- Pending answers.
  pending_fit :
  assert property (@(posedge clk_i) disable iff (!rst_ni) ends |-> tail - head <= 6'd32);
  head_is_pending :
  assert property (@(posedge clk_i) disable iff (!rst_ni) ends && head_ready |-> head != tail);
  read_goes_on_at_the_head :
  assert property (@(posedge clk_i) disable iff (!rst_ni) ends && alive && next_packet != '0 |-> head_ready);
  full_accepts_nothing :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   executes && validates && was_tail - was_head == 6'd32 |-> tail == was_tail);
  rd_atomics_are_bounded :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   ends && rd_pending > was_rd_pending |-> rd_pending <= max_dest_rd_atomic);
  rd_atomics_are_pending :
  assert property (@(posedge clk_i) disable iff (!rst_ni) ends && alive && !dropping |->
      {1'b0, rd_pending} <= tail - head);
  replays_fit :
  assert property (@(posedge clk_i) disable iff (!rst_ni) ends |-> replay_tail - replay_head <= 5'd16);
  saved_fit :
  assert property (@(posedge clk_i) disable iff (!rst_ni) ends |-> saved_count <= 5'd16);
  ahead_is_bounded :
  assert property (@(posedge clk_i) disable iff (!rst_ni) ends |-> ahead <= qp_pkg::MaxAhead);

  // --- Order of PSNs.
  accepts_the_one_expected :
  assert property (@(posedge clk_i) disable iff (!rst_ni) accepts |-> request_i.psn == was_expected_psn);
  expects_no_other_unless_it_accepts :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   executes && taken && op_q != qp_pkg::AnswerOpControl && !accepts |->
                   expected_psn == was_expected_psn);
  answers_what_it_took :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   ends && alive |-> expected_psn - answered_psn <= qp_pkg::MaxPsns);
  acknowledges_what_it_took :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   ends && ack_waits |-> expected_psn - ack_psn - 24'd1 <= qp_pkg::MaxPsns);
  dropping_takes_nothing :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   validates && (was_dropping || !was_alive) |->
                       record_o.verdict == qp_pkg::VerdictDrop && tail == was_tail);

  // --- Rare states.
  pending_were_full :
  cover property (@(posedge clk_i) ends && tail - head == 6'd32);
  as_many_ahead_as_there_may_be :
  cover property (@(posedge clk_i) ends && ahead == qp_pkg::MaxAhead);
  as_many_rd_atomics_as_agreed :
  cover property (@(posedge clk_i) ends && alive && max_dest_rd_atomic != '0 && rd_pending == max_dest_rd_atomic);
  took_the_last_psn :
  cover property (@(posedge clk_i) accepts && request_i.psn == 24'hffffff);
  read_across_the_last_psn :
  cover property (@(posedge clk_i) accepts && expected_psn < was_expected_psn && expected_psn != '0);
  duplicate_from_the_far_end :
  cover property (@(posedge clk_i) validates && record_o.duplicate
      && was_expected_psn - request_i.psn == qp_pkg::MaxPsns);
  replay_while_the_head_waits :
  cover property (@(posedge clk_i) answers && record_o.duplicate && head_ready);
  replays_wait :
  cover property (@(posedge clk_i) ends && replay_tail - replay_head > 5'd1);
  all_results_are_kept :
  cover property (@(posedge clk_i) ends && saved_count == 5'd16);

endmodule

bind responder responder_sva sva (
    .*,
    .idle(state_q == qp_pkg::AnswerStIdle),
    .executes(state_q == qp_pkg::AnswerStExecute),
    .ends(context_write),
    .alive(c_d.alive),
    .was_alive(c_q.alive),
    .dropping(c_d.dropping),
    .was_dropping(c_q.dropping),
    .head(c_d.head),
    .tail(c_d.tail),
    .was_head(c_q.head),
    .was_tail(c_q.tail),
    .head_ready(c_d.head_ready),
    .next_packet(c_d.next_packet),
    .ack_waits(c_d.ack_waits),
    .ack_psn(c_d.ack_psn),
    .expected_psn(c_d.expected_psn),
    .was_expected_psn(c_q.expected_psn),
    .answered_psn(c_d.answered_psn),
    .ahead(c_d.ahead),
    .was_ahead(c_q.ahead),
    .rd_pending(c_d.rd_pending),
    .was_rd_pending(c_q.rd_pending),
    .max_dest_rd_atomic(c_d.max_dest_rd_atomic),
    .was_writes(c_q.writes),
    .was_atomics(c_q.atomics),
    .replay_head(c_d.replay_head),
    .replay_tail(c_d.replay_tail),
    .saved_count(c_d.saved_count)
);
