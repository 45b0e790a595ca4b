// SPDX-License-Identifier: Apache-2.0
// RoCEv2 constants for the engine, RC only. Must equal model/roce (tests/rtl/opcode_decoder_test.cpp).
package roce_pkg;

  // BTH opcodes (IBTA vol 1, table 38).
  localparam logic [7:0] OpSendFirst = 8'h00;
  localparam logic [7:0] OpSendMiddle = 8'h01;
  localparam logic [7:0] OpSendLast = 8'h02;
  localparam logic [7:0] OpSendLastImm = 8'h03;
  localparam logic [7:0] OpSendOnly = 8'h04;
  localparam logic [7:0] OpSendOnlyImm = 8'h05;
  localparam logic [7:0] OpWriteFirst = 8'h06;
  localparam logic [7:0] OpWriteMiddle = 8'h07;
  localparam logic [7:0] OpWriteLast = 8'h08;
  localparam logic [7:0] OpWriteLastImm = 8'h09;
  localparam logic [7:0] OpWriteOnly = 8'h0a;
  localparam logic [7:0] OpWriteOnlyImm = 8'h0b;
  localparam logic [7:0] OpReadRequest = 8'h0c;
  localparam logic [7:0] OpReadResponseFirst = 8'h0d;
  localparam logic [7:0] OpReadResponseMiddle = 8'h0e;
  localparam logic [7:0] OpReadResponseLast = 8'h0f;
  localparam logic [7:0] OpReadResponseOnly = 8'h10;
  localparam logic [7:0] OpAcknowledge = 8'h11;
  localparam logic [7:0] OpAtomicAcknowledge = 8'h12;
  localparam logic [7:0] OpCompareSwap = 8'h13;
  localparam logic [7:0] OpFetchAdd = 8'h14;

  typedef enum logic [2:0] {
    OperationSend,
    OperationWrite,
    OperationRead,
    OperationReadResponse,
    OperationAcknowledge,
    OperationAtomicAcknowledge,
    OperationAtomic
  } operation_e;

  typedef enum logic [1:0] {
    PositionFirst,
    PositionMiddle,
    PositionLast,
    PositionOnly
  } position_e;

  // Payload length in bytes: 0; exactly the path MTU; 1 to the MTU; 0 to the MTU.
  typedef enum logic [1:0] {
    PayloadNone,
    PayloadFullMtu,
    PayloadLastPart,
    PayloadWhole
  } payload_e;

  // Headers after the BTH, one bit each.
  localparam int unsigned HeaderWidth = 5;
  localparam logic [HeaderWidth-1:0] HeaderNone = 5'b00000;
  localparam logic [HeaderWidth-1:0] HeaderReth = 5'b00001;
  localparam logic [HeaderWidth-1:0] HeaderAeth = 5'b00010;
  localparam logic [HeaderWidth-1:0] HeaderImmediate = 5'b00100;
  localparam logic [HeaderWidth-1:0] HeaderAtomic = 5'b01000;
  localparam logic [HeaderWidth-1:0] HeaderAtomicAck = 5'b10000;

  // The package prefix inside its own functions is needed by yosys.
  // `mtu`: path MTU in bytes.
  function automatic logic payload_fits(input payload_e rule, input logic [15:0] bytes, input logic [15:0] mtu);
    case (rule)
      roce_pkg::PayloadNone: payload_fits = bytes == '0;
      roce_pkg::PayloadFullMtu: payload_fits = bytes == mtu;
      roce_pkg::PayloadLastPart: payload_fits = bytes != '0 && bytes <= mtu;
      default: payload_fits = bytes <= mtu;
    endcase
  endfunction

  // Opcode of a packet of a READ response.
  function automatic logic [7:0] read_response(input logic begins, input logic ends);
    read_response = roce_pkg::OpReadResponseMiddle;
    if (begins) read_response = roce_pkg::OpReadResponseFirst;
    if (ends) read_response = roce_pkg::OpReadResponseLast;
    if (begins && ends) read_response = roce_pkg::OpReadResponseOnly;
  endfunction

  // True if a is before b, modulo 2^24 (IBTA vol 1, 9.7.1).
  function automatic logic precedes(input logic [23:0] a, input logic [23:0] b);
    logic [23:0] ahead;
    ahead = b - a;
    precedes = !ahead[23] && ahead != '0;
  endfunction

  // RNR timer codes of IBTA vol 1, table 45, in ticks, rounded up.
  function automatic logic [35:0] rnr_ticks(input logic [4:0] code);
    case (code)
      5'd0: rnr_ticks = 36'd640000;
      5'd1: rnr_ticks = 36'd10;
      5'd2: rnr_ticks = 36'd20;
      5'd3: rnr_ticks = 36'd30;
      5'd4: rnr_ticks = 36'd40;
      5'd5: rnr_ticks = 36'd59;
      5'd6: rnr_ticks = 36'd79;
      5'd7: rnr_ticks = 36'd118;
      5'd8: rnr_ticks = 36'd157;
      5'd9: rnr_ticks = 36'd235;
      5'd10: rnr_ticks = 36'd313;
      5'd11: rnr_ticks = 36'd469;
      5'd12: rnr_ticks = 36'd625;
      5'd13: rnr_ticks = 36'd938;
      5'd14: rnr_ticks = 36'd1250;
      5'd15: rnr_ticks = 36'd1875;
      5'd16: rnr_ticks = 36'd2500;
      5'd17: rnr_ticks = 36'd3750;
      5'd18: rnr_ticks = 36'd5000;
      5'd19: rnr_ticks = 36'd7500;
      5'd20: rnr_ticks = 36'd10000;
      5'd21: rnr_ticks = 36'd15000;
      5'd22: rnr_ticks = 36'd20000;
      5'd23: rnr_ticks = 36'd30000;
      5'd24: rnr_ticks = 36'd40000;
      5'd25: rnr_ticks = 36'd60000;
      5'd26: rnr_ticks = 36'd80000;
      5'd27: rnr_ticks = 36'd120000;
      5'd28: rnr_ticks = 36'd160000;
      5'd29: rnr_ticks = 36'd240000;
      5'd30: rnr_ticks = 36'd320000;
      default: rnr_ticks = 36'd480000;
    endcase
  endfunction

endpackage
