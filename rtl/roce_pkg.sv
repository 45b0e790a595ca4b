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

endpackage
