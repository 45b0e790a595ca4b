// SPDX-License-Identifier: Apache-2.0
// Layout of the engine's package (rtl/qp_pkg.sv) for layout_test.cpp: bits of a struct's field, values of enumerators
// and parameters, and their names.
`define FIELD(NUMBER, OF, NAME) NUMBER: begin {OF.NAME} = '1; field_name_o = `"NAME`"; end
`define VALUE(NUMBER, NAME) NUMBER: begin value_o = 32'(qp_pkg::NAME); value_name_o = `"NAME`"; end

module layout_probe (
    input  logic [  7:0] struct_i,
    input  logic [  7:0] field_i,
    output logic [511:0] bits_o,
    output logic [ 31:0] width_o,
    output logic [255:0] field_name_o,  // none: the struct has no such field

    input  logic [  7:0] value_i,
    output logic [ 31:0] value_o,
    output logic [255:0] value_name_o   // none: there is no such value
);

  qp_pkg::send_control_t send_control;
  qp_pkg::answer_control_t answer_control;
  qp_pkg::post_t post;
  qp_pkg::response_t response;
  qp_pkg::send_event_t send_event;
  qp_pkg::send_record_t send_record;
  qp_pkg::request_t request;
  qp_pkg::answer_event_t answer_event;
  qp_pkg::answer_record_t answer_record;

  always_comb begin
    field_name_o = '0;
    bits_o = '0;
    width_o = '0;
    send_control = '0;
    answer_control = '0;
    post = '0;
    response = '0;
    send_event = '0;
    send_record = '0;
    request = '0;
    answer_event = '0;
    answer_record = '0;
    case (struct_i)
      0: begin
        case (field_i)
          `FIELD(0, send_control, slot)
          `FIELD(1, send_control, kind)
          `FIELD(2, send_control, psn)
          `FIELD(3, send_control, mtu)
          `FIELD(4, send_control, remote_qpn)
          `FIELD(5, send_control, max_rd_atomic)
          `FIELD(6, send_control, retry_count)
          `FIELD(7, send_control, rnr_retry)
          `FIELD(8, send_control, timeout)
          `FIELD(9, send_control, draining)
          default: ;
        endcase
        bits_o = 512'(send_control);
        width_o = $bits(send_control);
      end
      1: begin
        case (field_i)
          `FIELD(0, answer_control, slot)
          `FIELD(1, answer_control, kind)
          `FIELD(2, answer_control, psn)
          `FIELD(3, answer_control, mtu)
          `FIELD(4, answer_control, remote_qpn)
          `FIELD(5, answer_control, allow_write)
          `FIELD(6, answer_control, allow_read)
          `FIELD(7, answer_control, allow_atomic)
          `FIELD(8, answer_control, max_dest_rd_atomic)
          `FIELD(9, answer_control, min_rnr_timer)
          `FIELD(10, answer_control, max_message)
          default: ;
        endcase
        bits_o = 512'(answer_control);
        width_o = $bits(answer_control);
      end
      2: begin
        case (field_i)
          `FIELD(0, post, slot)
          `FIELD(1, post, operation)
          `FIELD(2, post, length)
          `FIELD(3, post, remote_address)
          `FIELD(4, post, rkey)
          `FIELD(5, post, swap_add)
          `FIELD(6, post, compare)
          `FIELD(7, post, has_immediate)
          `FIELD(8, post, immediate)
          `FIELD(9, post, solicited)
          `FIELD(10, post, fence)
          `FIELD(11, post, refused)
          default: ;
        endcase
        bits_o = 512'(post);
        width_o = $bits(post);
      end
      3: begin
        case (field_i)
          `FIELD(0, response, slot)
          `FIELD(1, response, opcode)
          `FIELD(2, response, psn)
          `FIELD(3, response, syndrome)
          `FIELD(4, response, bytes)
          default: ;
        endcase
        bits_o = 512'(response);
        width_o = $bits(response);
      end
      4: begin
        case (field_i)
          `FIELD(0, send_event, slot)
          `FIELD(1, send_event, kind)
          `FIELD(2, send_event, message)
          `FIELD(3, send_event, status)
          `FIELD(4, send_event, count)
          `FIELD(5, send_event, has_psn)
          `FIELD(6, send_event, psn)
          default: ;
        endcase
        bits_o = 512'(send_event);
        width_o = $bits(send_event);
      end
      5: begin
        case (field_i)
          `FIELD(0, send_record, slot)
          `FIELD(1, send_record, op)
          `FIELD(2, send_record, message)
          `FIELD(3, send_record, outcome)
          `FIELD(4, send_record, rewound)
          `FIELD(5, send_record, place)
          `FIELD(6, send_record, status)
          `FIELD(7, send_record, opcode)
          `FIELD(8, send_record, destination)
          `FIELD(9, send_record, psn)
          `FIELD(10, send_record, end_psn)
          `FIELD(11, send_record, ack_request)
          `FIELD(12, send_record, solicited)
          `FIELD(13, send_record, offset)
          `FIELD(14, send_record, bytes)
          `FIELD(15, send_record, address)
          `FIELD(16, send_record, rkey)
          `FIELD(17, send_record, length)
          `FIELD(18, send_record, immediate)
          `FIELD(19, send_record, swap_add)
          `FIELD(20, send_record, compare)
          `FIELD(21, send_record, retries)
          `FIELD(22, send_record, rnr_retries)
          `FIELD(23, send_record, drained)
          default: ;
        endcase
        bits_o = 512'(send_record);
        width_o = $bits(send_record);
      end
      6: begin
        case (field_i)
          `FIELD(0, request, slot)
          `FIELD(1, request, opcode)
          `FIELD(2, request, psn)
          `FIELD(3, request, ack_request)
          `FIELD(4, request, bytes)
          `FIELD(5, request, address)
          `FIELD(6, request, rkey)
          `FIELD(7, request, length)
          `FIELD(8, request, receive_known)
          `FIELD(9, request, receive_available)
          `FIELD(10, request, receive_bytes)
          `FIELD(11, request, access_known)
          `FIELD(12, request, access_granted)
          default: ;
        endcase
        bits_o = 512'(request);
        width_o = $bits(request);
      end
      7: begin
        case (field_i)
          `FIELD(0, answer_event, slot)
          `FIELD(1, answer_event, kind)
          `FIELD(2, answer_event, pending)
          `FIELD(3, answer_event, saved)
          `FIELD(4, answer_event, result)
          `FIELD(5, answer_event, original)
          `FIELD(6, answer_event, count)
          `FIELD(7, answer_event, psn)
          default: ;
        endcase
        bits_o = 512'(answer_event);
        width_o = $bits(answer_event);
      end
      8: begin
        case (field_i)
          `FIELD(0, answer_record, slot)
          `FIELD(1, answer_record, op)
          `FIELD(2, answer_record, verdict)
          `FIELD(3, answer_record, duplicate)
          `FIELD(4, answer_record, to_receive)
          `FIELD(5, answer_record, begins_receive)
          `FIELD(6, answer_record, completes)
          `FIELD(7, answer_record, completes_receive)
          `FIELD(8, answer_record, offset)
          `FIELD(9, answer_record, message_bytes)
          `FIELD(10, answer_record, receive_status)
          `FIELD(11, answer_record, access_event)
          `FIELD(12, answer_record, request_event)
          `FIELD(13, answer_record, pending)
          `FIELD(14, answer_record, saved)
          `FIELD(15, answer_record, had_cqe)
          `FIELD(16, answer_record, idle)
          `FIELD(17, answer_record, in_place)
          `FIELD(18, answer_record, fatal)
          `FIELD(19, answer_record, opcode)
          `FIELD(20, answer_record, destination)
          `FIELD(21, answer_record, psn)
          `FIELD(22, answer_record, syndrome)
          `FIELD(23, answer_record, msn)
          `FIELD(24, answer_record, address)
          `FIELD(25, answer_record, rkey)
          `FIELD(26, answer_record, length)
          `FIELD(27, answer_record, original)
          default: ;
        endcase
        bits_o = 512'(answer_record);
        width_o = $bits(answer_record);
      end
      default: ;
    endcase
  end

  always_comb begin
    value_o = '0;
    value_name_o = '0;
    case (value_i)
      `VALUE(0, MessageNop)
      `VALUE(1, MessageSend)
      `VALUE(2, MessageWrite)
      `VALUE(3, MessageRead)
      `VALUE(4, MessageFetchAdd)
      `VALUE(5, MessageCompareSwap)
      `VALUE(6, ControlReset)
      `VALUE(7, ControlStart)
      `VALUE(8, ControlUpdate)
      `VALUE(9, ControlError)
      `VALUE(10, ControlQuery)
      `VALUE(11, SendLeft)
      `VALUE(12, SendFailed)
      `VALUE(13, SendPlaced)
      `VALUE(14, SendOpControl)
      `VALUE(15, SendOpAckTimeout)
      `VALUE(16, SendOpRnrTimeout)
      `VALUE(17, SendOpEvent)
      `VALUE(18, SendOpResponse)
      `VALUE(19, SendOpPost)
      `VALUE(20, SendOpPacket)
      `VALUE(21, SendOpComplete)
      `VALUE(22, SendOpDrained)
      `VALUE(23, OutcomeDropped)
      `VALUE(24, OutcomeDuplicate)
      `VALUE(25, OutcomeProgress)
      `VALUE(26, OutcomeSequenceError)
      `VALUE(27, OutcomeImpliedSequenceError)
      `VALUE(28, OutcomeRnr)
      `VALUE(29, OutcomeFailed)
      `VALUE(30, AnswerLeft)
      `VALUE(31, AnswerFailed)
      `VALUE(32, AnswerPlaced)
      `VALUE(33, AnswerAtomic)
      `VALUE(34, ResultOk)
      `VALUE(35, ResultAccess)
      `VALUE(36, ResultOperation)
      `VALUE(37, AnswerOpControl)
      `VALUE(38, AnswerOpEvent)
      `VALUE(39, AnswerOpRequest)
      `VALUE(40, AnswerOpPacket)
      `VALUE(41, AnswerOpComplete)
      `VALUE(42, AnswerOpFailed)
      `VALUE(43, VerdictDrop)
      `VALUE(44, VerdictBusy)
      `VALUE(45, VerdictWantReceive)
      `VALUE(46, VerdictWantAccess)
      `VALUE(47, VerdictAcknowledge)
      `VALUE(48, VerdictReject)
      `VALUE(49, VerdictPlace)
      `VALUE(50, VerdictRead)
      `VALUE(51, VerdictAtomic)
      `VALUE(52, VerdictReplay)
      `VALUE(53, SlotWidth)
      `VALUE(54, MessageWidth)
      `VALUE(55, AnswerWidth)
      `VALUE(56, SavedWidth)
      `VALUE(57, TickWidth)
      `VALUE(58, MaxAhead)
      `VALUE(59, MaxPsns)
      `VALUE(60, StatusSuccess)
      `VALUE(61, StatusLocalLengthError)
      `VALUE(62, StatusLocalQpOperationError)
      `VALUE(63, StatusFlushedError)
      `VALUE(64, StatusBadResponseError)
      `VALUE(65, StatusLocalAccessError)
      `VALUE(66, StatusRemoteInvalidRequestError)
      `VALUE(67, StatusRemoteAccessError)
      `VALUE(68, StatusRemoteOperationError)
      `VALUE(69, StatusTransportRetryExceeded)
      `VALUE(70, StatusRnrRetryExceeded)
      `VALUE(71, ClassAck)
      `VALUE(72, ClassRnrNak)
      `VALUE(73, ClassNak)
      `VALUE(74, SyndromeAck)
      `VALUE(75, SyndromeSequenceError)
      `VALUE(76, SyndromeInvalidRequest)
      `VALUE(77, SyndromeRemoteAccessError)
      `VALUE(78, SyndromeRemoteOperationError)
      default: ;
    endcase
  end

endmodule
