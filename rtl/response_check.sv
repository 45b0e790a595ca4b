// SPDX-License-Identifier: Apache-2.0
// Reaction of a requester to an answer for its oldest unanswered message. Combinational.
module response_check (
    input qp_pkg::send_context_t c_i,
    input qp_pkg::message_t      m_i,      // message `una`
    input logic                  moved_i,  // the answer also acknowledged earlier packets
    input qp_pkg::response_t     response_i,

    output logic              misfit_o,  // opcode or length that no answer has
    output logic              is_ack_o,
    output qp_pkg::outcome_e  outcome_o,
    output qp_pkg::reaction_t reaction_o
);

  logic known, row_begins, row_ends, is_atomic_answer, is_read_response, is_read, fits, gap_known;
  roce_pkg::operation_e row_operation;
  roce_pkg::position_e row_position;
  roce_pkg::payload_e row_payload;
  logic [1:0] class_of;
  logic [2:0] retries, rnr_retries;
  logic [23:0] message_end;
  logic [31:0] left, mtu;

  opcode_decoder decoder (
      .opcode_i(response_i.opcode),
      .known_o(known),
      .operation_o(row_operation),
      .position_o(row_position),
      .payload_o(row_payload),
      .headers_o()
  );

  // --- Operands.
  always_comb begin
    mtu = 32'd1 << c_i.mtu_shift;
    message_end = m_i.first + m_i.packets;
    is_read = m_i.operation == qp_pkg::MessageRead;
    // Rest of the READ from the expected packet on, in bytes.
    left = m_i.length - ({8'd0, c_i.una_psn - m_i.first} << c_i.mtu_shift);
    // Progress gives a queue pair all its retries again.
    retries = moved_i ? c_i.retry_count : c_i.retries;
    rnr_retries = moved_i ? c_i.rnr_retry : c_i.rnr_retries;
    gap_known = c_i.gap_known && !moved_i;

    row_begins = row_position == roce_pkg::PositionFirst || row_position == roce_pkg::PositionOnly;
    row_ends = row_position == roce_pkg::PositionLast || row_position == roce_pkg::PositionOnly;
    class_of = response_i.syndrome[6:5];
    is_ack_o = row_operation == roce_pkg::OperationAcknowledge;
    is_read_response = row_operation == roce_pkg::OperationReadResponse;
    is_atomic_answer = row_operation == roce_pkg::OperationAtomicAcknowledge;
    misfit_o = !known || !(is_ack_o || is_read_response || is_atomic_answer) ||
        !roce_pkg::payload_fits(row_payload, response_i.bytes, mtu[15:0]);
    // A response starts where a request starts; between requests, the rest of an earlier response may arrive.
    fits = is_read == is_read_response &&
        (!is_read || (row_ends == (c_i.una_psn + 24'd1 == message_end) &&
                      {16'd0, response_i.bytes} == (left < mtu ? left : mtu) &&
                      (row_begins ? c_i.una_psn == c_i.asked_psn : c_i.partial)));
  end

  // --- Decision.
  always_comb begin
    reaction_o = '0;
    outcome_o = qp_pkg::OutcomeProgress;
    reaction_o.status = qp_pkg::StatusBadResponseError;
    if (misfit_o) begin
      reaction_o.fail = 1'b1;
    end else if (is_ack_o) begin
      unique case (class_of)
        // An ACK beyond an unanswered READ or atomic: the response was lost.
        qp_pkg::ClassAck: reaction_o.lost = !roce_pkg::precedes(response_i.psn, c_i.una_psn);
        qp_pkg::ClassRnrNak: begin
          outcome_o = c_i.rnr_waiting ? qp_pkg::OutcomeDuplicate : qp_pkg::OutcomeRnr;
          reaction_o.fail = !c_i.rnr_waiting && rnr_retries == '0;
          reaction_o.rnr_wait = !c_i.rnr_waiting && rnr_retries != '0;
          reaction_o.status = qp_pkg::StatusRnrRetryExceeded;
        end
        qp_pkg::ClassNak: begin
          outcome_o = qp_pkg::OutcomeSequenceError;
          // All PSNs before the NAK count as answered, so the answer of a READ or an atomic was lost.
          if (c_i.una_psn != response_i.psn) begin
            reaction_o.lost = 1'b1;
          end else if (response_i.syndrome != qp_pkg::SyndromeSequenceError) begin
            reaction_o.fail = 1'b1;
            unique case (response_i.syndrome)
              qp_pkg::SyndromeInvalidRequest: reaction_o.status = qp_pkg::StatusRemoteInvalidRequestError;
              qp_pkg::SyndromeRemoteAccessError: reaction_o.status = qp_pkg::StatusRemoteAccessError;
              qp_pkg::SyndromeRemoteOperationError: reaction_o.status = qp_pkg::StatusRemoteOperationError;
              default: ;
            endcase
          end else if (c_i.rnr_waiting) begin
            // The NAK is for packets sent before the RNR NAK, which will be retransmitted anyway.
            outcome_o = qp_pkg::OutcomeDuplicate;
          end else begin
            reaction_o.go_back = 1'b1;
          end
        end
        default: reaction_o.fail = 1'b1;
      endcase
    end else if (class_of != qp_pkg::ClassAck || !qp_pkg::is_rd_atomic(m_i.operation)) begin
      reaction_o.fail = 1'b1;
    end else if (response_i.psn != c_i.una_psn) begin
      reaction_o.lost = 1'b1;
    end else if (!fits) begin
      reaction_o.fail = 1'b1;
    end else begin
      reaction_o.accepted = 1'b1;
    end

    if (reaction_o.lost) begin
      // A lost answer is requested again once; later packets in flight are from before.
      outcome_o = gap_known ? qp_pkg::OutcomeDropped : qp_pkg::OutcomeImpliedSequenceError;
      reaction_o.go_back = !gap_known;
    end
    if (reaction_o.go_back && retries == '0) begin
      reaction_o.go_back = 1'b0;
      reaction_o.fail = 1'b1;
      reaction_o.status = qp_pkg::StatusTransportRetryExceeded;
    end
  end

endmodule
