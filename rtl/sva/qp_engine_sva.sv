// SPDX-License-Identifier: Apache-2.0
// Assertions on the clock gate and on the streams at the engine's ports.
module qp_engine_sva (
    input logic                         clk_i,
    input logic                         rst_ni,
    input logic [qp_pkg::TickWidth-1:0] now_i,
    input logic                         send_control_valid_i,
    input logic                         send_control_ready_o,
    input logic                         post_valid_i,
    input logic                         response_valid_i,
    input logic                         send_event_valid_i,
    input logic                         send_record_valid_o,
    input logic                         send_record_ready_i,
    input logic                         answer_control_valid_i,
    input logic                         request_valid_i,
    input logic                         answer_event_valid_i,
    input logic                         answer_record_valid_o,
    input logic                         answer_record_ready_i,
    input logic                         busy_o,
    input logic                         armed_o,
    input logic [qp_pkg::TickWidth-1:0] wake_o,
    input logic                         expired_valid,
    input logic                         expired_ready,
    input logic [qp_pkg::SlotWidth-1:0] expired_slot,
    input logic [qp_pkg::SlotWidth-1:0] send_slot
);

  logic offered, due, asleep;
  assign offered = send_control_valid_i || post_valid_i || response_valid_i || send_event_valid_i ||
      answer_control_valid_i || request_valid_i || answer_event_valid_i;
  assign due = armed_o && now_i >= wake_o;
  assign asleep = !busy_o && !offered;

  emits_while_busy :
  assert property (@(posedge clk_i) disable iff (!rst_ni) send_record_valid_o || answer_record_valid_o |-> busy_o);
  sleeps_on :
  assert property (@(posedge clk_i) disable iff (!rst_ni) asleep |=> !busy_o || due);
  keeps_its_alarm :
  assert property (@(posedge clk_i) disable iff (!rst_ni) asleep |=> $stable(armed_o) && (!armed_o || $stable(wake_o)));
  wakes_when_it_is_due :
  assert property (@(posedge clk_i) disable iff (!rst_ni) due |-> busy_o);
  timeout_is_of_what_expired :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   expired_valid && expired_ready |=> send_slot == $past(expired_slot));

  // --- Rare states.
  both_sides_emit :
  cover property (@(posedge clk_i) send_record_valid_o && answer_record_valid_o);
  both_sides_stall :
  cover property (@(posedge clk_i) send_record_valid_o && !send_record_ready_i && answer_record_valid_o &&
                  !answer_record_ready_i);
  woken_by_a_timer :
  cover property (@(posedge clk_i) expired_valid && !offered);
  command_while_a_timer_has_expired :
  cover property (@(posedge clk_i) expired_valid && send_control_valid_i && send_control_ready_o);

endmodule

bind qp_engine qp_engine_sva sva (
    .*,
    .now_i(now_q),
    .expired_slot(expired_number[qp_pkg::SlotWidth:1]),
    .send_slot(send_record.slot)
);
