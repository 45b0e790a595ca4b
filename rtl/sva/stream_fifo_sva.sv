module stream_fifo_sva #(
    parameter int unsigned Width = 32,
    parameter int unsigned Depth = 4
) (
    input logic                   clk_i,
    input logic                   rst_ni,
    input logic                   in_valid_i,
    input logic                   in_ready_o,
    input logic                   out_valid_o,
    input logic                   out_ready_i,
    input logic [Width-1:0]       out_data_o,
    input logic [$clog2(Depth):0] count_o
);

  // What is offered stays until it is taken.
  offer_stands :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   out_valid_o && !out_ready_i |=> out_valid_o && $stable(out_data_o));
  never_too_many :
  assert property (@(posedge clk_i) disable iff (!rst_ni) 32'(count_o) <= Depth);
  full_takes_nothing :
  assert property (@(posedge clk_i) disable iff (!rst_ni) 32'(count_o) == Depth |-> !in_ready_o);
  counts :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   in_valid_i && in_ready_o && !(out_valid_o && out_ready_i) |=> count_o == $past(count_o) + 1'b1);

  was_full :
  cover property (@(posedge clk_i) 32'(count_o) == Depth);

endmodule

bind stream_fifo stream_fifo_sva #(
    .Width(Width),
    .Depth(Depth)
) sva (.*);
