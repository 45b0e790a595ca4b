// A queue between two streams (valid/ready). What comes in can leave in the next cycle.
module stream_fifo #(
    parameter int unsigned Width = 32,
    parameter int unsigned Depth = 4,  // a power of two
    localparam int unsigned IndexWidth = $clog2(Depth)
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic             in_valid_i,
    output logic             in_ready_o,
    input  logic [Width-1:0] in_data_i,

    output logic             out_valid_o,
    input  logic             out_ready_i,
    output logic [Width-1:0] out_data_o,

    output logic [IndexWidth:0] count_o
);

  localparam logic [IndexWidth:0] Full = Depth[IndexWidth:0];

  logic [Width-1:0] items[Depth];
  // A bit more than an index, so that full and empty differ.
  logic [IndexWidth:0] written_q, written_d, read_q, read_d;
  logic push, pop;

  always_comb begin
    count_o = written_q - read_q;
    in_ready_o = count_o != Full;
    out_valid_o = count_o != '0;
    out_data_o = items[read_q[IndexWidth-1:0]];
    push = in_valid_i && in_ready_o;
    pop = out_valid_o && out_ready_i;
    written_d = push ? written_q + 1'b1 : written_q;
    read_d = pop ? read_q + 1'b1 : read_q;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      written_q <= '0;
      read_q <= '0;
    end else begin
      written_q <= written_d;
      read_q <= read_d;
    end
  end

  always_ff @(posedge clk_i) begin
    if (push) items[written_q[IndexWidth-1:0]] <= in_data_i;
  end

endmodule
