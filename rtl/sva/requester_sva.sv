// SPDX-License-Identifier: Apache-2.0
module requester_sva (
    input logic clk_i,
    input logic rst_ni,

    input logic                  control_valid_i,
    input logic                  control_ready_o,
    input qp_pkg::send_control_t control_i,
    input logic                  post_valid_i,
    input logic                  post_ready_o,
    input qp_pkg::post_t         post_i,
    input logic                  response_valid_i,
    input logic                  response_ready_o,
    input qp_pkg::response_t     response_i,
    input logic                  event_valid_i,
    input logic                  event_ready_o,
    input qp_pkg::send_event_t   event_i,

    input logic                         timer_set_valid_o,
    input logic                         timer_set_ready_i,
    input logic [qp_pkg::SlotWidth:0]   timer_set_number_o,
    input logic                         timer_set_cancel_o,
    input logic [qp_pkg::TickWidth-1:0] timer_set_after_o,
    input logic                         timer_valid_i,
    input logic                         timer_ready_o,

    input logic                 record_valid_o,
    input logic                 record_ready_i,
    input qp_pkg::send_record_t record_o,
    input logic                 busy_o,

    // Internal state: the operation, and its context before a step (was_*) and in the last cycle, when it is written
    // back.
    input logic                 idle,
    input logic                 executes,
    input logic                 ends,
    input logic                 blocked,
    input qp_pkg::send_op_e     op_q,
    input logic                 active,
    input logic                 was_active,
    input logic [5:0]           head,
    input logic [5:0]           una,
    input logic [5:0]           cursor,
    input logic [5:0]           tail,
    input logic [23:0]          una_psn,
    input logic [23:0]          was_una_psn,
    input logic [23:0]          sent_psn,
    input logic [23:0]          was_sent_psn,
    input logic [23:0]          unsent_psn,
    input logic [23:0]          next_psn,
    input logic [5:0]           ahead,
    input logic [5:0]           was_ahead,
    input logic [4:0]           outstanding,
    input logic [4:0]           was_outstanding,
    input logic [4:0]           max_rd_atomic,
    input logic [11:0]          placing,
    input logic [11:0]          was_placing,
    input logic                 rnr_waiting
);

  logic taken, emits_packet, rewinds, takes_event;
  assign taken = record_valid_o && record_ready_i;
  assign emits_packet = taken && record_o.op == qp_pkg::SendOpPacket;
  assign rewinds = taken && record_o.rewound;
  assign takes_event = executes && taken && record_o.op == qp_pkg::SendOpEvent;

  // Oldest unanswered PSN at the start of the operation.
  logic [23:0] psn_q;
  always_ff @(posedge clk_i) if (executes) psn_q <= was_una_psn;

  // Expected PSN of a queue pair's next packet, valid as long as nothing is answered or retransmitted.
  logic [255:0] follows_q;
  logic [23:0] follows_psn_q[256];
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      follows_q <= '0;
    end else if (taken) begin
      if (emits_packet) follows_q[record_o.slot] <= 1'b1;
      else if (record_o.op == qp_pkg::SendOpResponse || record_o.op == qp_pkg::SendOpControl || record_o.rewound)
        follows_q[record_o.slot] <= 1'b0;
    end
  end
  always_ff @(posedge clk_i) if (emits_packet) follows_psn_q[record_o.slot] <= record_o.end_psn;
  logic follows;
  logic [23:0] follows_psn;
  assign follows = emits_packet && follows_q[record_o.slot];
  assign follows_psn = follows_psn_q[record_o.slot];

  // --- Assumptions about the inputs.
  control_stands :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   control_valid_i && !control_ready_o |=> control_valid_i && $stable(control_i));
  post_stands :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   post_valid_i && !post_ready_o |=> post_valid_i && $stable(post_i));
  response_stands :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   response_valid_i && !response_ready_o |=> response_valid_i && $stable(response_i));
  event_stands :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   event_valid_i && !event_ready_o |=> event_valid_i && $stable(event_i));
  none_leaves_twice :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   takes_event && event_i.kind == qp_pkg::SendLeft |-> event_i.count <= was_ahead);
  placed_was_placing :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   takes_event && event_i.kind == qp_pkg::SendPlaced && was_active |-> was_placing != '0);
  placing_is_counted :
  assert property (@(posedge clk_i) disable iff (!rst_ni) taken && record_o.place |-> was_placing != '1);
  post_finds_room :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   taken && record_o.op == qp_pkg::SendOpPost |-> tail - head != 6'd33);

  // --- Streams.
  record_stands :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   record_valid_o && !record_ready_i |=> record_valid_o && $stable(record_o));
  set_stands :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   timer_set_valid_o && !timer_set_ready_i |=>
                   timer_set_valid_o && $stable(timer_set_number_o) && $stable(timer_set_cancel_o) &&
                   $stable(timer_set_after_o));
  one_input_a_cycle :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   $onehot0({control_ready_o, post_ready_o, response_ready_o, event_ready_o, timer_ready_o}));
  takes_what_is_offered :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   (!control_ready_o || control_valid_i) && (!post_ready_o || post_valid_i) &&
                   (!response_ready_o || response_valid_i) && (!event_ready_o || event_valid_i) &&
                   (!timer_ready_o || timer_valid_i));
  idle_emits_nothing :
  assert property (@(posedge clk_i) disable iff (!rst_ni) idle |-> !record_valid_o && !timer_set_valid_o);
  works_while_busy :
  assert property (@(posedge clk_i) disable iff (!rst_ni) !idle |-> busy_o);

  // --- The window.
  window_is_in_order :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   ends |-> una - head <= cursor - head && cursor - head <= tail - head && tail - head <= 6'd32);
  psns_are_in_order :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   ends && active |->
                   sent_psn - una_psn <= qp_pkg::MaxPsns && unsent_psn - sent_psn <= qp_pkg::MaxPsns);
  all_is_sent_at_the_tail :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   ends && active && cursor == tail |-> sent_psn == next_psn && unsent_psn == next_psn);
  all_is_answered_at_the_tail :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   ends && active && una == tail |-> una_psn == next_psn && outstanding == '0);
  ahead_is_bounded :
  assert property (@(posedge clk_i) disable iff (!rst_ni) ends |-> ahead <= qp_pkg::MaxAhead);
  rd_atomics_are_bounded :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   ends && outstanding > was_outstanding |-> outstanding <= max_rd_atomic);
  failed_is_flushed :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   ends && !active |-> head == tail || op_q == qp_pkg::SendOpPost);

  // The ACK timer runs only while a PSN is unanswered. After its first step, an answer is not a duplicate.
  times_out_while_it_waits :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   executes && op_q == qp_pkg::SendOpAckTimeout |-> was_active && was_una_psn != was_sent_psn);
  answers_what_was_not :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   taken && record_o.op == qp_pkg::SendOpResponse && !executes &&
                   record_o.outcome == qp_pkg::OutcomeProgress |-> una_psn != psn_q);

  // --- Packets.
  sends_while_it_may :
  assert property (@(posedge clk_i) disable iff (!rst_ni) emits_packet |-> active && !rnr_waiting && !blocked);
  packets_follow :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   follows |-> record_o.psn == follows_psn);
  packets_move_on :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   emits_packet |-> record_o.end_psn != record_o.psn && record_o.bytes <= 13'd4096);
  goes_back_to_what_is_not_answered :
  assert property (@(posedge clk_i) disable iff (!rst_ni) rewinds |-> sent_psn == una_psn && cursor == una);

  // --- Rare states.
  window_was_full :
  cover property (@(posedge clk_i) ends && tail - head == 6'd32);
  as_many_ahead_as_there_may_be :
  cover property (@(posedge clk_i) ends && ahead == qp_pkg::MaxAhead);
  packet_at_the_last_psn :
  cover property (@(posedge clk_i) emits_packet && record_o.psn == 24'hffffff);
  read_across_the_last_psn :
  cover property (@(posedge clk_i) emits_packet && record_o.end_psn < record_o.psn);
  answered_before_it_was_sent_again :
  cover property (@(posedge clk_i) ends && op_q == qp_pkg::SendOpResponse && active && was_active && una == cursor &&
                  una != tail && sent_psn == una_psn && unsent_psn != sent_psn);
  response_at_the_ghosts_border :
  cover property (@(posedge clk_i) ends && op_q == qp_pkg::SendOpResponse && active && response_i.psn == unsent_psn);
  placing_while_the_window_is_answered :
  cover property (@(posedge clk_i) ends && active && una == tail && placing != '0);
  post_to_a_failed_queue_pair :
  cover property (@(posedge clk_i) ends && op_q == qp_pkg::SendOpPost && !was_active);
  timer_set_waits :
  cover property (@(posedge clk_i) timer_set_valid_o && !timer_set_ready_i);

endmodule

bind requester requester_sva sva (
    .*,
    .idle(state_q == qp_pkg::SendStIdle),
    .executes(state_q == qp_pkg::SendStExecute),
    .ends(finish),
    .active(c_d.life == qp_pkg::LifeActive),
    .was_active(c_q.life == qp_pkg::LifeActive),
    .head(c_d.head),
    .una(c_d.una),
    .cursor(c_d.cursor),
    .tail(c_d.tail),
    .una_psn(c_d.una_psn),
    .was_una_psn(c_q.una_psn),
    .sent_psn(c_d.sent_psn),
    .was_sent_psn(c_q.sent_psn),
    .unsent_psn(c_d.unsent_psn),
    .next_psn(c_d.next_psn),
    .ahead(c_d.ahead),
    .was_ahead(c_q.ahead),
    .outstanding(c_d.outstanding),
    .was_outstanding(c_q.outstanding),
    .max_rd_atomic(c_d.max_rd_atomic),
    .placing(c_d.placing),
    .was_placing(c_q.placing),
    .rnr_waiting(c_q.rnr_waiting)
);
