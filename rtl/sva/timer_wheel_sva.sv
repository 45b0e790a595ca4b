// SPDX-License-Identifier: Apache-2.0
module timer_wheel_sva #(
    parameter int unsigned TickWidth = 36
) (
    input logic                 clk_i,
    input logic                 rst_ni,
    input logic [TickWidth-1:0] now_i,
    input logic                 set_valid_i,
    input logic                 set_ready_o,
    input logic [          8:0] set_timer_i,
    input logic                 set_cancel_i,
    input logic [TickWidth-1:0] set_after_i,
    input logic                 expired_valid_o,
    input logic                 expired_ready_i,
    input logic [          8:0] expired_timer_o,
    input logic                 busy_o,
    input logic                 armed_o,
    input logic [TickWidth-1:0] wake_o,
    input logic [TickWidth-1:0] hand_q
);

  logic accepts, withdraws;
  logic [1:0] waited_q;
  assign accepts = set_valid_i && set_ready_o;
  assign withdraws = accepts && set_timer_i == expired_timer_o;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) waited_q <= '0;
    else waited_q <= set_valid_i && !set_ready_o ? waited_q + 1'b1 : '0;
  end

  // Assumptions about the inputs.
  now_never_goes_back :
  assert property (@(posedge clk_i) disable iff (!rst_ni) 1'b1 |=> now_i >= $past(now_i));
  deadline_fits :
  assert property (@(posedge clk_i) disable iff (!rst_ni) accepts && !set_cancel_i |-> set_after_i < ~now_i);

  hand_is_not_ahead :
  assert property (@(posedge clk_i) disable iff (!rst_ni) hand_q <= now_i);
  expired_stands :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   expired_valid_o && !expired_ready_i && !withdraws |=> expired_valid_o && $stable(expired_timer_o));
  expired_is_withdrawn :
  assert property (@(posedge clk_i) disable iff (!rst_ni) expired_valid_o && withdraws |=> !expired_valid_o);
  busy_with_an_expiry :
  assert property (@(posedge clk_i) disable iff (!rst_ni) expired_valid_o |-> busy_o);
  busy_behind_a_set :
  assert property (@(posedge clk_i) disable iff (!rst_ni) accepts && !set_cancel_i |=> busy_o);
  sleeps_until_later :
  assert property (@(posedge clk_i) disable iff (!rst_ni) !busy_o && armed_o |-> wake_o > now_i);
  // A set is accepted in the fourth cycle at the latest.
  set_is_accepted :
  assert property (@(posedge clk_i) disable iff (!rst_ni) waited_q == 2'd3 && set_valid_i |-> set_ready_o);

  was_withdrawn :
  cover property (@(posedge clk_i) expired_valid_o && withdraws);

endmodule

bind timer_wheel timer_wheel_sva #(
    .TickWidth(TickWidth)
) sva (.*);
