// SPDX-License-Identifier: Apache-2.0
// Checks of a request, in the order of IBTA vol 1, 9.7: PSN, opcode sequence, opcode, resources, length, rkey.
// Combinational.
module request_check (
    input qp_pkg::answer_context_t c_i,
    input qp_pkg::request_t        request_i,

    output qp_pkg::parsed_t  parsed_o,
    output qp_pkg::verdict_e verdict_o,
    output qp_pkg::check_t   check_o
);

  logic known, has_reth, has_immediate, response, granted, misfit, full, wrong_sequence, over_long, needs_access;
  roce_pkg::operation_e operation;
  roce_pkg::position_e position;
  roce_pkg::payload_e payload;
  logic [roce_pkg::HeaderWidth-1:0] headers;
  logic [12:0] mtu;
  logic [31:0] named_length;
  logic [23:0] ahead_by, behind;
  qp_pkg::check_t duplicate, fresh;
  qp_pkg::verdict_e duplicate_verdict, fresh_verdict;

  opcode_decoder decoder (
      .opcode_i(request_i.opcode),
      .known_o(known),
      .operation_o(operation),
      .position_o(position),
      .payload_o(payload),
      .headers_o(headers)
  );

  // --- Operands.
  always_comb begin
    parsed_o = '0;
    parsed_o.begins = position == roce_pkg::PositionFirst || position == roce_pkg::PositionOnly;
    parsed_o.ends = position == roce_pkg::PositionLast || position == roce_pkg::PositionOnly;
    parsed_o.is_send = operation == roce_pkg::OperationSend;
    parsed_o.is_write = operation == roce_pkg::OperationWrite;
    parsed_o.is_read = operation == roce_pkg::OperationRead;
    parsed_o.is_atomic = operation == roce_pkg::OperationAtomic;
    has_reth = (headers & roce_pkg::HeaderReth) != '0;
    has_immediate = (headers & roce_pkg::HeaderImmediate) != '0;
    parsed_o.takes_receive = parsed_o.is_send ? parsed_o.begins : parsed_o.is_write && has_immediate;
    parsed_o.earlier = parsed_o.begins ? '0 : c_i.received;
    parsed_o.total = {1'b0, parsed_o.earlier} + {17'd0, request_i.bytes};
    parsed_o.further = qp_pkg::further_packets(request_i.length, c_i.mtu_shift);
  end

  always_comb begin
    mtu = 13'd1 << c_i.mtu_shift;
    response = !parsed_o.is_send && !parsed_o.is_write && !parsed_o.is_read && !parsed_o.is_atomic;
    granted = parsed_o.is_write ? c_i.allow_write : parsed_o.is_read ? c_i.allow_read :
        !parsed_o.is_atomic || c_i.allow_atomic;
    wrong_sequence = parsed_o.begins ? c_i.in_message : !c_i.in_message || c_i.is_send != parsed_o.is_send;
    misfit = !roce_pkg::payload_fits(payload, request_i.bytes, {3'd0, mtu});
    named_length = has_reth ? request_i.length : c_i.length;
    over_long = parsed_o.total > {1'b0, c_i.max_message};
    needs_access = parsed_o.is_atomic || (has_reth && request_i.length != '0);
    ahead_by = request_i.psn - c_i.expected_psn;  // at least 2^23: a duplicate
    behind = c_i.expected_psn - request_i.psn;
    full = c_i.head[qp_pkg::AnswerWidth-1:0] == c_i.tail[qp_pkg::AnswerWidth-1:0] && c_i.head != c_i.tail;
  end

  // --- A duplicate. A READ is repeated only if all its PSNs were accepted before, and if the READ is not pending
  // anyway.
  always_comb begin
    duplicate = '0;
    duplicate.duplicate = 1'b1;
    duplicate_verdict = qp_pkg::VerdictDrop;
    if (!known || response) begin
      // Dropped.
    end else if (full) begin
      duplicate_verdict = qp_pkg::VerdictBusy;
    end else if (parsed_o.is_read) begin
      if (behind > parsed_o.further && !behind[23] && parsed_o.further < 24'h7fffff && c_i.allow_read &&
          roce_pkg::precedes(request_i.psn, c_i.answered_psn)) begin
        if (request_i.length != '0 && !request_i.access_known) begin
          duplicate_verdict = qp_pkg::VerdictWantAccess;
        end else if (request_i.length == '0 || request_i.access_granted) begin
          duplicate_verdict = qp_pkg::VerdictRead;
          duplicate.repeats = 1'b1;
        end
      end
    end else if (parsed_o.is_atomic) begin
      duplicate.searches = 1'b1;
    end else begin
      duplicate_verdict = qp_pkg::VerdictAcknowledge;
    end
  end

  // --- A request with the expected PSN.
  always_comb begin
    fresh = '0;
    fresh_verdict = qp_pkg::VerdictReject;
    fresh.syndrome = qp_pkg::SyndromeInvalidRequest;
    fresh.fatal = 1'b1;
    if (known && response) begin
      fresh_verdict = qp_pkg::VerdictDrop;
    end else if (full) begin
      fresh_verdict = qp_pkg::VerdictBusy;
    end else if (!known || wrong_sequence) begin
      fresh.request_event = 1'b1;
    end else if (parsed_o.begins && !granted) begin
      fresh.syndrome = qp_pkg::SyndromeRemoteAccessError;
      fresh.access_event = 1'b1;
    end else if ((parsed_o.is_read || parsed_o.is_atomic) && c_i.rd_pending >= c_i.max_dest_rd_atomic) begin
      fresh.request_event = 1'b1;
    end else if (parsed_o.takes_receive && !request_i.receive_known) begin
      fresh_verdict = qp_pkg::VerdictWantReceive;
    end else if (parsed_o.takes_receive && !request_i.receive_available) begin
      fresh.syndrome = {1'b0, qp_pkg::ClassRnrNak, c_i.min_rnr_timer};
      fresh.fatal = 1'b0;
      fresh.not_ready = 1'b1;
    end else if (misfit || over_long || (parsed_o.is_atomic && request_i.address[2:0] != '0)) begin
      fresh.request_event = 1'b1;
    end else if (parsed_o.is_send && parsed_o.total > request_i.receive_bytes) begin
      fresh.receive_status = qp_pkg::StatusLocalLengthError;
      fresh.begins_receive = parsed_o.takes_receive;
    end else if (((parsed_o.is_write || parsed_o.is_read) && named_length > c_i.max_message) ||
                 (parsed_o.is_write && (parsed_o.ends ? parsed_o.total != {1'b0, named_length} :
                                        parsed_o.total >= {1'b0, named_length}))) begin
      fresh.request_event = 1'b1;
    end else if (needs_access && !request_i.access_known) begin
      fresh_verdict = qp_pkg::VerdictWantAccess;
    end else if (needs_access && !request_i.access_granted) begin
      fresh.syndrome = qp_pkg::SyndromeRemoteAccessError;
      // For a WRITE with immediate, the completion of its receive WQE reports the error.
      fresh.access_event = !parsed_o.takes_receive;
      fresh.begins_receive = parsed_o.takes_receive;
      if (parsed_o.takes_receive) fresh.receive_status = qp_pkg::StatusLocalAccessError;
    end else if (parsed_o.is_atomic ? c_i.writes != '0 : c_i.atomics != '0 && request_i.bytes != '0) begin
      // An atomic waits for earlier writes, and later requests with payload wait for the atomic.
      fresh_verdict = qp_pkg::VerdictBusy;
    end else begin
      fresh_verdict = parsed_o.is_read ? qp_pkg::VerdictRead :
          parsed_o.is_atomic ? qp_pkg::VerdictAtomic : qp_pkg::VerdictPlace;
      fresh.accepted = 1'b1;
    end
    if (fresh_verdict != qp_pkg::VerdictReject) begin
      fresh.syndrome = '0;
      fresh.fatal = 1'b0;
    end
  end

  always_comb begin
    check_o = '0;
    verdict_o = qp_pkg::VerdictDrop;
    if (!c_i.alive || c_i.dropping) begin
      // Dropped: the queue pair is in error.
    end else if (ahead_by[23]) begin
      verdict_o = duplicate_verdict;
      check_o = duplicate;
    end else if (ahead_by == '0) begin
      verdict_o = fresh_verdict;
      check_o = fresh;
    end else if (!c_i.nak_sent && full) begin
      verdict_o = qp_pkg::VerdictBusy;
    end else if (!c_i.nak_sent) begin
      // A packet was lost.
      verdict_o = qp_pkg::VerdictReject;
      check_o.syndrome = qp_pkg::SyndromeSequenceError;
      check_o.sequence_error = 1'b1;
    end
  end

endmodule
