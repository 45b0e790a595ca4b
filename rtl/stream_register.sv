// SPDX-License-Identifier: Apache-2.0
// One register between two valid/ready streams; data leaves one cycle after it came, at the earliest. With
// TakesAsItGives, a new word is accepted in the cycle in which the old one leaves; otherwise one cycle later, which
// avoids a combinational path from out_ready_i to in_ready_o.
module stream_register #(
    parameter int unsigned Width = 32,
    parameter bit TakesAsItGives = 1'b1
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic             in_valid_i,
    output logic             in_ready_o,
    input  logic [Width-1:0] in_data_i,

    output logic             out_valid_o,
    input  logic             out_ready_i,
    output logic [Width-1:0] out_data_o
);

  logic full_q;
  logic [Width-1:0] data_q;

  assign in_ready_o = !full_q || (TakesAsItGives && out_ready_i);
  assign out_valid_o = full_q;
  assign out_data_o = data_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) full_q <= 1'b0;
    else full_q <= (in_valid_i && in_ready_o) || (full_q && !out_ready_i);
  end

  always_ff @(posedge clk_i) begin
    if (in_valid_i && in_ready_o) data_q <= in_data_i;
  end

endmodule
