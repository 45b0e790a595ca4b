// SPDX-License-Identifier: Apache-2.0
// Round-robin arbiter for 256 entries (queue pairs). Grants one entry at a time, continuing after the last granted one.
// Several requests of an entry before its grant give one grant. A grant stays until it is accepted.
module round_robin (
    input logic clk_i,
    input logic rst_ni,

    input logic       request_valid_i,
    input logic [7:0] request_entry_i,

    output logic       grant_valid_o,
    input  logic       grant_ready_i,
    output logic [7:0] grant_entry_o,

    output logic busy_o
);

  localparam int unsigned Groups = 16;  // 16 entries each

  logic [255:0] wanting_q, wanting_d;
  logic [7:0] grant_q, grant_d;
  logic valid_q, valid_d;

  // Index of the lowest set bit; 0 if none is set.
  function automatic logic [3:0] first(input logic [15:0] bits);
    first = 4'd0;
    for (int unsigned i = 16; i > 0; i--) begin
      if (bits[i-1]) first = i[3:0] - 4'd1;
    end
  endfunction

  logic [15:0] group_wants, groups_behind, own_group, own_behind, picked_group_bits;
  logic [3:0] picked_group;
  logic [7:0] picked;
  logic takes;

  always_comb begin
    for (int unsigned g = 0; g < Groups; g++) group_wants[g] = |wanting_q[16*g+:16];

    // Next after the last grant: in the same group, else in a later group, else from the beginning.
    own_group = wanting_q[{grant_q[7:4], 4'd0}+:16];
    own_behind = own_group & (16'hfffe << grant_q[3:0]);
    groups_behind = group_wants & (16'hfffe << grant_q[7:4]);
    picked_group = |groups_behind ? first(groups_behind) : first(group_wants);
    picked_group_bits = wanting_q[{picked_group, 4'd0}+:16];
    picked = |own_behind ? {grant_q[7:4], first(own_behind)} : {picked_group, first(picked_group_bits)};

    takes = |group_wants && (!valid_q || grant_ready_i);
    valid_d = takes || (valid_q && !grant_ready_i);
    grant_d = takes ? picked : grant_q;

    wanting_d = wanting_q;
    if (takes) wanting_d[picked] = 1'b0;
    if (request_valid_i) wanting_d[request_entry_i] = 1'b1;

    grant_valid_o = valid_q;
    grant_entry_o = grant_q;
    busy_o = valid_q || |group_wants;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      wanting_q <= '0;
      grant_q <= 8'hff;  // so that entry 0 is granted first
      valid_q <= 1'b0;
    end else begin
      wanting_q <= wanting_d;
      grant_q <= grant_d;
      valid_q <= valid_d;
    end
  end

endmodule
