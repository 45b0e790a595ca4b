// SPDX-License-Identifier: Apache-2.0
module round_robin_sva (
    input logic       clk_i,
    input logic       rst_ni,
    input logic       request_valid_i,
    input logic       grant_valid_o,
    input logic       grant_ready_i,
    input logic [7:0] grant_entry_o,
    input logic       busy_o
);

  grant_stands :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   grant_valid_o && !grant_ready_i |=> grant_valid_o && $stable(grant_entry_o));
  busy_with_a_grant :
  assert property (@(posedge clk_i) disable iff (!rst_ni) grant_valid_o |-> busy_o);
  busy_behind_a_request :
  assert property (@(posedge clk_i) disable iff (!rst_ni) request_valid_i |=> busy_o);

endmodule

bind round_robin round_robin_sva sva (.*);
