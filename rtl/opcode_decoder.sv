// SPDX-License-Identifier: Apache-2.0
// Decodes a BTH opcode. Combinational.
module opcode_decoder (
    input logic [7:0] opcode_i,

    output logic                                 known_o,  // an opcode of RC; if 0, the other outputs mean nothing
    output roce_pkg::operation_e                 operation_o,
    output roce_pkg::position_e                  position_o,
    output roce_pkg::payload_e                   payload_o,
    output logic [roce_pkg::HeaderWidth-1:0]     headers_o
);

  always_comb begin
    known_o = 1'b1;
    operation_o = roce_pkg::OperationSend;
    position_o = roce_pkg::PositionOnly;
    payload_o = roce_pkg::PayloadNone;
    headers_o = roce_pkg::HeaderNone;

    case (opcode_i)
      roce_pkg::OpSendFirst, roce_pkg::OpSendMiddle, roce_pkg::OpSendLast, roce_pkg::OpSendLastImm,
      roce_pkg::OpSendOnly, roce_pkg::OpSendOnlyImm:
        operation_o = roce_pkg::OperationSend;
      roce_pkg::OpWriteFirst, roce_pkg::OpWriteMiddle, roce_pkg::OpWriteLast, roce_pkg::OpWriteLastImm,
      roce_pkg::OpWriteOnly, roce_pkg::OpWriteOnlyImm:
        operation_o = roce_pkg::OperationWrite;
      roce_pkg::OpReadRequest:
        operation_o = roce_pkg::OperationRead;
      roce_pkg::OpReadResponseFirst, roce_pkg::OpReadResponseMiddle, roce_pkg::OpReadResponseLast,
      roce_pkg::OpReadResponseOnly:
        operation_o = roce_pkg::OperationReadResponse;
      roce_pkg::OpAcknowledge:
        operation_o = roce_pkg::OperationAcknowledge;
      roce_pkg::OpAtomicAcknowledge:
        operation_o = roce_pkg::OperationAtomicAcknowledge;
      roce_pkg::OpCompareSwap, roce_pkg::OpFetchAdd:
        operation_o = roce_pkg::OperationAtomic;
      default:
        known_o = 1'b0;
    endcase

    case (opcode_i)
      roce_pkg::OpSendFirst, roce_pkg::OpWriteFirst, roce_pkg::OpReadResponseFirst: begin
        position_o = roce_pkg::PositionFirst;
        payload_o = roce_pkg::PayloadFullMtu;
      end
      roce_pkg::OpSendMiddle, roce_pkg::OpWriteMiddle, roce_pkg::OpReadResponseMiddle: begin
        position_o = roce_pkg::PositionMiddle;
        payload_o = roce_pkg::PayloadFullMtu;
      end
      roce_pkg::OpSendLast, roce_pkg::OpSendLastImm, roce_pkg::OpWriteLast, roce_pkg::OpWriteLastImm,
      roce_pkg::OpReadResponseLast: begin
        position_o = roce_pkg::PositionLast;
        payload_o = roce_pkg::PayloadLastPart;
      end
      roce_pkg::OpSendOnly, roce_pkg::OpSendOnlyImm, roce_pkg::OpWriteOnly, roce_pkg::OpWriteOnlyImm,
      roce_pkg::OpReadResponseOnly:
        payload_o = roce_pkg::PayloadWhole;
      default: ;  // defaults as set above
    endcase

    case (opcode_i)
      roce_pkg::OpSendLastImm, roce_pkg::OpSendOnlyImm, roce_pkg::OpWriteLastImm:
        headers_o = roce_pkg::HeaderImmediate;
      roce_pkg::OpWriteFirst, roce_pkg::OpWriteOnly, roce_pkg::OpReadRequest:
        headers_o = roce_pkg::HeaderReth;
      roce_pkg::OpWriteOnlyImm:
        headers_o = roce_pkg::HeaderReth | roce_pkg::HeaderImmediate;
      roce_pkg::OpReadResponseFirst, roce_pkg::OpReadResponseLast, roce_pkg::OpReadResponseOnly,
      roce_pkg::OpAcknowledge:
        headers_o = roce_pkg::HeaderAeth;
      roce_pkg::OpAtomicAcknowledge:
        headers_o = roce_pkg::HeaderAeth | roce_pkg::HeaderAtomicAck;
      roce_pkg::OpCompareSwap, roce_pkg::OpFetchAdd:
        headers_o = roce_pkg::HeaderAtomic;
      default: ;  // no further headers
    endcase
  end

endmodule
