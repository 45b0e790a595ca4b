// One place between two streams (valid/ready): what comes in leaves in the next cycle at the soonest. It takes the next
// one in the cycle in which it gives one, or, so that no path leads back through it, in the cycle behind that.
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
