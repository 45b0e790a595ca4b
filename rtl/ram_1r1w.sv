// SPDX-License-Identifier: Apache-2.0
// Memory with one read port and one write port. Read data is valid in the next cycle. A read and a write of the same
// word in one cycle return the old word.
module ram_1r1w #(
    parameter int unsigned Width = 32,
    parameter int unsigned Depth = 256,  // a power of two
    localparam int unsigned IndexWidth = $clog2(Depth)
) (
    input logic clk_i,

    input  logic                  read_i,
    input  logic [IndexWidth-1:0] read_index_i,
    output logic [Width-1:0]      read_data_o,

    input logic                  write_i,
    input logic [IndexWidth-1:0] write_index_i,
    input logic [Width-1:0]      write_data_i
);

  logic [Width-1:0] words[Depth];
  logic [Width-1:0] read_data_q;

  assign read_data_o = read_data_q;

  always_ff @(posedge clk_i) begin
    if (read_i) read_data_q <= words[read_index_i];
    if (write_i) words[write_index_i] <= write_data_i;
  end

endmodule
