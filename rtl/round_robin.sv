// Grants to 256 entries (queue pairs) that want something, one at a time: after each the next one that wants, in a
// circle. An entry that asks twice before it is granted is granted once. A grant stands until it is taken.
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

  localparam int unsigned Groups = 16;  // of 16 entries each

  logic [255:0] wanting_q, wanting_d;
  logic [7:0] grant_q, grant_d;
  logic valid_q, valid_d;

  // The first of 16 bits; of none it says 0.
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

    // Behind the last grant: in its group, else in a later group, else from the beginning.
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
      grant_q <= 8'hff;  // the first to be granted is the first of all
      valid_q <= 1'b0;
    end else begin
      wanting_q <= wanting_d;
      grant_q <= grant_d;
      valid_q <= valid_d;
    end
  end

endmodule
