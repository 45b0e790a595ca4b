// SPDX-License-Identifier: Apache-2.0
// Receive side of 256 queue pairs: checks requests by the check chain of IBTA vol 1, 9.7 (PSN, opcode sequence, opcode,
// resources, length, rkey), has payload placed, sends answers in order, and repeats answers to duplicates.
//
// A request is checked with the resources known so far, and changes no state until all are known: the shell offers it
// again with the resource that the verdict asked for. An accepted request stays in a ring of pending answers until its
// payload is in memory. Acknowledgements then coalesce into one, which waits for its turn.
module responder (
    input logic clk_i,
    input logic rst_ni,

    input  logic             control_valid_i,
    output logic             control_ready_o,
    input  qp_pkg::answer_control_t control_i,

    input  logic             request_valid_i,
    output logic             request_ready_o,
    input  qp_pkg::request_t request_i,

    input  logic                  event_valid_i,
    output logic                  event_ready_o,
    input  qp_pkg::answer_event_t event_i,

    output logic                   record_valid_o,
    input  logic                   record_ready_i,
    output qp_pkg::answer_record_t record_o,

    output logic busy_o
);

  localparam int unsigned OW = qp_pkg::AnswerWidth;
  localparam int unsigned SW = qp_pkg::SavedWidth;

  qp_pkg::answer_state_e state_q, state_d;
  qp_pkg::answer_op_e op_q, op_d;
  logic [qp_pkg::SlotWidth-1:0] slot_q, slot_d;
  qp_pkg::answer_context_t c_q, c_d;
  logic [SW:0] searched_q;  // as in step_t
  logic forward_q;          // as in step_t
  logic offered;

  // `stay`: no effect. A step per operation or state; `chosen` is this cycle's, `queued` also has its new entries in
  // the rings of answers, and `step` also waits for the record.
  qp_pkg::answer_step_t stay, control_step, event_step, request_step, packet_step, search_step, answer_step, chosen,
      queued, step;
  qp_pkg::answer_record_t stay_record, control_record, event_record, request_record, packet_record, search_record,
      answer_record, chosen_record;

  // --- Memories.
  logic context_read, context_write, replay_read;
  qp_pkg::answer_context_t context_data;
  qp_pkg::pending_t pending;
  qp_pkg::done_t done;
  qp_pkg::replay_t replay;
  logic [23:0] saved_psn;
  qp_pkg::result_t result;

  ram_1r1w #(
      .Width($bits(c_q)),
      .Depth(2 ** qp_pkg::SlotWidth)
  ) contexts (
      .clk_i,
      .read_i(context_read),
      .read_index_i(slot_d),
      .read_data_o(context_data),
      .write_i(context_write),
      .write_index_i(slot_q),
      .write_data_i(c_d)
  );
  ram_1r1w #(
      .Width($bits(pending)),
      .Depth(2 ** (qp_pkg::SlotWidth + OW))
  ) pending_answers (
      .clk_i,
      .read_i(step.pending_read),
      .read_index_i({slot_q, step.pending_index}),
      .read_data_o(pending),
      .write_i(step.pending_write),
      .write_index_i({slot_q, step.pending_write_index}),
      .write_data_i(step.pending)
  );
  ram_1r1w #(
      .Width($bits(done)),
      .Depth(2 ** (qp_pkg::SlotWidth + OW))
  ) placements (
      .clk_i,
      .read_i(step.pending_read),
      .read_index_i({slot_q, step.pending_index}),
      .read_data_o(done),
      .write_i(step.done_write),
      .write_index_i({slot_q, step.done_index}),
      .write_data_i(step.done)
  );
  ram_1r1w #(
      .Width($bits(replay)),
      .Depth(2 ** (qp_pkg::SlotWidth + SW))
  ) replays (
      .clk_i,
      .read_i(replay_read),
      .read_index_i({slot_q, c_d.replay_head[SW-1:0]}),
      .read_data_o(replay),
      .write_i(step.replay_write),
      .write_index_i({slot_q, c_d.replay_tail[SW-1:0] - 1'b1}),
      .write_data_i(step.replay)
  );
  // Atomics whose results are kept: PSNs and original values.
  ram_1r1w #(
      .Width(24),
      .Depth(2 ** (qp_pkg::SlotWidth + SW))
  ) saved_psns (
      .clk_i,
      .read_i(step.saved_read),
      .read_index_i({slot_q, step.saved_index}),
      .read_data_o(saved_psn),
      .write_i(step.saved_write),
      .write_index_i({slot_q, c_q.saved_next}),
      .write_data_i(request_i.psn)
  );
  ram_1r1w #(
      .Width($bits(result)),
      .Depth(2 ** (qp_pkg::SlotWidth + SW))
  ) saved_results (
      .clk_i,
      .read_i(step.saved_read),
      .read_index_i({slot_q, step.saved_index}),
      .read_data_o(result),
      .write_i(step.result_write),
      .write_index_i({slot_q, step.result_index}),
      .write_data_i(step.result)
  );

  // --- Arbitration among queue pairs that want to answer.
  logic wants, grant_valid, grant_ready, turns_busy;
  logic [qp_pkg::SlotWidth-1:0] grant_slot;
  round_robin turns (
      .clk_i,
      .rst_ni,
      .request_valid_i(wants),
      .request_entry_i(slot_q),
      .grant_valid_o(grant_valid),
      .grant_ready_i(grant_ready),
      .grant_entry_o(grant_slot),
      .busy_o(turns_busy)
  );

  // --- Combinational parts.
  qp_pkg::parsed_t parsed;
  qp_pkg::check_t check;
  qp_pkg::verdict_e verdict;
  request_check request_check (
      .c_i(c_q),
      .request_i,
      .parsed_o(parsed),
      .verdict_o(verdict),
      .check_o(check)
  );
  answer_packet answer_packet (
      .stay_i(stay),
      .stay_record_i(stay_record),
      .pending_i(pending),
      .original_i(done.original),
      .replay_i(replay),
      .step_o(packet_step),
      .record_o(packet_record)
  );

  always_comb begin
    stay = '0;
    stay_record = '0;
    stay.state = state_q;
    stay.c = c_q;
    stay_record.slot = slot_q;
    stay_record.op = op_q;
    stay_record.verdict = qp_pkg::VerdictDrop;
    stay_record.destination = c_q.remote_qpn;
    stay_record.msn = c_q.msn;
    stay_record.pending = c_q.tail[OW-1:0];
    stay_record.saved = c_q.saved_next;
    if (op_q == qp_pkg::AnswerOpRequest) begin
      stay_record.opcode = request_i.opcode;
      stay_record.psn = request_i.psn;
      stay_record.address = request_i.address;
      stay_record.rkey = request_i.rkey;
      stay_record.length = parsed.is_atomic ? 32'd8 : request_i.length;
    end
    stay.pending_index = c_q.head[OW-1:0];
    stay.pending_write_index = c_q.tail[OW-1:0];
    stay.pending.kind = qp_pkg::PendingSilent;
    stay.pending.psn = request_i.psn;
    stay.pending.syndrome = qp_pkg::SyndromeAck;
    stay.pending.address = request_i.address;
    stay.pending.rkey = request_i.rkey;
    stay.pending.length = request_i.length;
    stay.done_index = c_q.tail[OW-1:0];
    stay.done.placed = 1'b1;
    stay.replay.is_atomic = parsed.is_atomic;
    stay.replay.psn = request_i.psn;
    stay.replay.address = request_i.address;
    stay.replay.rkey = request_i.rkey;
    stay.replay.length = request_i.length;
    stay.saved_index = c_q.saved_next - 1'b1 - searched_q[SW-1:0];
    stay.result_index = event_i.saved;
    stay.searched = searched_q;
    stay.forward = forward_q;
  end

  // --- Choice of the next operation.
  always_comb begin
    offered = 1'b1;
    op_d = op_q;
    slot_d = slot_q;
    if (state_q == qp_pkg::AnswerStIdle) begin
      if (control_valid_i) begin
        op_d = qp_pkg::AnswerOpControl;
        slot_d = control_i.slot;
      end else if (event_valid_i) begin
        op_d = qp_pkg::AnswerOpEvent;
        slot_d = event_i.slot;
      end else if (grant_valid) begin
        op_d = qp_pkg::AnswerOpPacket;
        slot_d = grant_slot;
      end else if (request_valid_i) begin
        op_d = qp_pkg::AnswerOpRequest;
        slot_d = request_i.slot;
      end else begin
        offered = 1'b0;
      end
    end
    context_read = state_q == qp_pkg::AnswerStIdle && offered;
  end

  // --- Commands.
  always_comb begin
    control_step = stay;
    control_record = stay_record;
    control_step.emit = 1'b1;
    control_record.psn = c_q.expected_psn;
    control_record.idle = c_q.head == c_q.tail && !c_q.ack_waits && c_q.replay_head == c_q.replay_tail &&
        c_q.ahead == '0;
    control_step.state = qp_pkg::AnswerStIdle;
    unique case (control_i.kind)
      qp_pkg::ControlReset: control_step.c = '0;
      qp_pkg::ControlStart, qp_pkg::ControlUpdate: begin
        control_step.c.remote_qpn = control_i.remote_qpn;
        control_step.c.mtu_shift = {1'b0, control_i.mtu} + 4'd7;
        control_step.c.allow_write = control_i.allow_write;
        control_step.c.allow_read = control_i.allow_read;
        control_step.c.allow_atomic = control_i.allow_atomic;
        control_step.c.max_dest_rd_atomic = control_i.max_dest_rd_atomic;
        // Results beyond the old limit were not kept.
        if (c_q.saved_count > c_q.max_dest_rd_atomic) control_step.c.saved_count = c_q.max_dest_rd_atomic;
        control_step.c.min_rnr_timer = control_i.min_rnr_timer;
        control_step.c.max_message = control_i.max_message;
        if (control_i.kind == qp_pkg::ControlStart) begin
          control_step.c.alive = 1'b1;
          control_step.c.expected_psn = control_i.psn;
          control_step.c.answered_psn = control_i.psn;
        end
      end
      qp_pkg::ControlError: begin
        control_step.c.alive = 1'b0;
        control_step.c.head = '0;
        control_step.c.tail = '0;
        control_step.c.head_ready = 1'b0;
        control_step.c.ack_waits = 1'b0;
        control_step.c.replay_head = '0;
        control_step.c.replay_tail = '0;
      end
      default: ;  // query
    endcase
  end

  // --- Events of packets, placed payloads and executed atomics.
  always_comb begin
    event_step = stay;
    event_record = stay_record;
    event_step.emit = 1'b1;
    event_record.pending = event_i.pending;
    event_step.state = qp_pkg::AnswerStIdle;
    event_step.done_index = event_i.pending;
    event_step.done.result = event_i.result;
    event_step.done.original = event_i.original;
    event_step.result.done = 1'b1;
    event_step.result.original = event_i.original;
    if (event_i.kind == qp_pkg::AnswerLeft) begin
      event_step.c.ahead = c_q.ahead - event_i.count;
    end else if (event_i.kind == qp_pkg::AnswerFailed) begin
      // Sends a NAK of its own, instead of the packet whose data could not be read.
      event_record.op = qp_pkg::AnswerOpPacket;
      event_record.opcode = roce_pkg::OpAcknowledge;
      event_record.psn = event_i.psn;
      event_record.syndrome = event_i.result == qp_pkg::ResultOperation ?
          qp_pkg::SyndromeRemoteOperationError : qp_pkg::SyndromeRemoteAccessError;
      event_record.fatal = 1'b1;
      event_record.in_place = 1'b1;
      event_step.c.ahead = c_q.ahead + 6'd1;
      event_step.c.dropping = 1'b1;
    end else begin
      event_step.done_write = 1'b1;
      if (event_i.kind == qp_pkg::AnswerPlaced) begin
        event_step.c.writes = c_q.writes - 6'd1;
      end else begin
        event_step.c.atomics = c_q.atomics - 5'd1;
        event_step.result_write = event_i.result == qp_pkg::ResultOk;
      end
      // The event is mostly for the head, whose entry is already read.
      event_step.forward = event_i.pending == c_q.head[OW-1:0];
      event_step.state = event_step.forward ? qp_pkg::AnswerStAnswer : qp_pkg::AnswerStSettle;
    end
  end

  // --- Requests.
  always_comb begin
    request_step = stay;
    request_record = stay_record;
    request_step.emit = !check.searches;
    request_step.state = qp_pkg::AnswerStIdle;
    request_record.verdict = verdict;
    request_record.duplicate = check.duplicate;
    request_record.syndrome = check.syndrome;
    request_record.fatal = check.fatal;
    request_record.access_event = check.access_event;
    request_record.request_event = check.request_event;
    request_record.begins_receive = check.begins_receive;
    request_record.receive_status = check.receive_status;
    request_step.repeats = check.repeats;
    if (check.searches) begin
      request_step.saved_read = 1'b1;
      request_step.state = qp_pkg::AnswerStSearch;
    end
    unique case (verdict)
      qp_pkg::VerdictAcknowledge: begin
        request_step.push = 1'b1;
        request_step.pending.kind = qp_pkg::PendingAcknowledge;
        request_step.pending.psn = c_q.expected_psn - 24'd1;
      end
      qp_pkg::VerdictReject: begin
        if (check.sequence_error) request_record.psn = c_q.expected_psn;
        // Packets in flight behind a NAK are dropped silently.
        if (check.sequence_error || check.not_ready) request_step.c.nak_sent = 1'b1;
        request_step.push = 1'b1;
        request_step.pending.kind = qp_pkg::PendingNak;
        request_step.pending.psn = request_record.psn;
        request_step.pending.syndrome = check.syndrome;
        request_step.pending.fatal = check.fatal;
        request_step.pending.has_cqe = check.receive_status != qp_pkg::StatusSuccess;
        request_step.c.dropping = check.fatal;
      end
      default: ;
    endcase
    if (check.accepted) begin
      request_step.push = 1'b1;
      request_step.c.nak_sent = 1'b0;
      request_step.c.expected_psn = c_q.expected_psn + 24'd1;
      if (parsed.is_read) begin
        request_step.pending.kind = qp_pkg::PendingRead;
        request_step.c.expected_psn = c_q.expected_psn + parsed.further + 24'd1;
        request_step.c.rd_pending = c_q.rd_pending + 5'd1;
      end else if (parsed.is_atomic) begin
        request_step.pending.kind = qp_pkg::PendingAtomic;
        request_step.done.placed = 1'b0;
        request_step.saved_write = 1'b1;
        request_step.result_write = 1'b1;
        request_step.result_index = c_q.saved_next;
        request_step.c.saved_next = c_q.saved_next + 1'b1;
        if (!c_q.saved_count[SW]) request_step.c.saved_count = c_q.saved_count + 5'd1;
        request_step.c.rd_pending = c_q.rd_pending + 5'd1;
        request_step.c.atomics = c_q.atomics + 5'd1;
      end else begin
        request_record.to_receive = parsed.is_send;
        request_record.begins_receive = parsed.takes_receive;
        request_record.completes = parsed.ends;
        request_record.completes_receive = parsed.ends &&
            (parsed.takes_receive || (!parsed.begins && c_q.has_receive));
        request_record.offset = parsed.earlier;
        request_record.message_bytes = parsed.total[31:0];
        request_record.address = (parsed.begins ? request_i.address : c_q.address) + {32'd0, parsed.earlier};
        if (!parsed.begins) request_record.rkey = c_q.rkey;
        request_record.length = {16'd0, request_i.bytes};
        if (request_i.ack_request) request_step.pending.kind = qp_pkg::PendingAcknowledge;
        request_step.pending.to_receive = parsed.is_send;
        request_step.pending.has_cqe = request_record.completes_receive;
        request_step.done.placed = request_i.bytes == '0;
        if (request_i.bytes != '0) request_step.c.writes = c_q.writes + 6'd1;
        request_step.c.in_message = !parsed.ends;
        request_step.c.received = parsed.total[31:0];
        if (parsed.begins) begin
          request_step.c.is_send = parsed.is_send;
          request_step.c.has_receive = parsed.takes_receive;
          request_step.c.address = request_i.address;
          request_step.c.rkey = request_i.rkey;
          request_step.c.length = request_i.length;
        end
      end
      if (parsed.ends) request_step.c.msn = c_q.msn + 24'd1;
      request_record.msn = request_step.c.msn;
    end
  end

  // The result of the saved atomic searched_q places back is valid, except in the first cycle.
  always_comb begin
    search_step = stay;
    search_record = stay_record;
    search_step.saved_read = 1'b1;
    search_step.searched = searched_q + 1'b1;
    search_step.saved_index = c_q.saved_next - 1'b1 - search_step.searched[SW-1:0];
    search_record.duplicate = 1'b1;
    search_step.replay.address = result.original;
    if (searched_q >= c_q.saved_count || searched_q >= c_q.max_dest_rd_atomic) begin
      search_step.emit = 1'b1;
      search_step.state = qp_pkg::AnswerStIdle;
    end else if (saved_psn == request_i.psn) begin
      search_step.emit = 1'b1;
      search_step.state = qp_pkg::AnswerStIdle;
      search_step.repeats = result.done && roce_pkg::precedes(request_i.psn, c_q.answered_psn);
      if (search_step.repeats) search_record.verdict = qp_pkg::VerdictReplay;
    end
  end

  // --- The oldest pending answer, when its payload is placed or its atomic executed.
  logic [1:0] head_result;
  always_comb begin
    head_result = forward_q ? event_i.result : done.result;
    answer_step = stay;
    answer_record = stay_record;
    answer_step.state = qp_pkg::AnswerStIdle;
    answer_step.forward = 1'b0;
    answer_record.pending = c_q.head[OW-1:0];
    answer_record.psn = pending.psn;
    answer_step.pending_write_index = c_q.head[OW-1:0];
    answer_step.pending = pending;
    if (c_q.head == c_q.tail || !(done.placed || forward_q) || c_q.head_ready) begin
      // Nothing to report.
    end else if (head_result != qp_pkg::ResultOk) begin
      // The head's answer becomes a NAK.
      answer_step.emit = 1'b1;
      answer_record.op = qp_pkg::AnswerOpFailed;
      answer_record.to_receive = pending.to_receive;
      answer_record.had_cqe = pending.has_cqe;
      answer_record.fatal = 1'b1;
      answer_record.access_event = !pending.to_receive && head_result == qp_pkg::ResultAccess;
      answer_step.pending_write = 1'b1;
      answer_step.pending.kind = qp_pkg::PendingNak;
      answer_step.pending.has_cqe = 1'b0;
      answer_step.pending.fatal = 1'b1;
      answer_step.pending.syndrome = answer_record.access_event ? qp_pkg::SyndromeRemoteAccessError :
          qp_pkg::SyndromeRemoteOperationError;
      answer_step.c.dropping = 1'b1;
      answer_step.c.head_ready = 1'b1;
    end else begin
      answer_step.emit = pending.has_cqe;
      answer_record.op = qp_pkg::AnswerOpComplete;
      if (pending.kind == qp_pkg::PendingSilent || pending.kind == qp_pkg::PendingAcknowledge) begin
        answer_step.c.head = c_q.head + 1'b1;
        if (pending.kind == qp_pkg::PendingAcknowledge) begin
          answer_step.c.ack_waits = 1'b1;
          answer_step.c.ack_psn = pending.psn;
          answer_step.c.ack_msn = pending.msn;
        end
        answer_step.pending_read = 1'b1;
        answer_step.pending_index = answer_step.c.head[OW-1:0];
        if (answer_step.c.head != c_q.tail) answer_step.state = qp_pkg::AnswerStAnswer;
      end else begin
        answer_step.c.head_ready = 1'b1;
      end
    end
  end

  // --- Decision: the step of this cycle.
  always_comb begin
    chosen = stay;
    chosen_record = stay_record;
    replay_read = 1'b0;
    unique case (state_q)
      qp_pkg::AnswerStIdle: begin
        chosen.searched = '0;
        chosen.forward = 1'b0;
        chosen.state = offered ? qp_pkg::AnswerStContext : qp_pkg::AnswerStIdle;
      end
      qp_pkg::AnswerStContext: begin
        chosen.c = context_data;
        chosen.pending_read = 1'b1;
        chosen.pending_index = context_data.head[OW-1:0];
        replay_read = 1'b1;
        chosen.state = qp_pkg::AnswerStExecute;
      end
      qp_pkg::AnswerStExecute:
        unique case (op_q)
          qp_pkg::AnswerOpControl: begin
            chosen = control_step;
            chosen_record = control_record;
          end
          qp_pkg::AnswerOpEvent: begin
            chosen = event_step;
            chosen_record = event_record;
          end
          qp_pkg::AnswerOpRequest: begin
            chosen = request_step;
            chosen_record = request_record;
          end
          default: begin
            chosen = packet_step;
            chosen_record = packet_record;
          end
        endcase
      qp_pkg::AnswerStSearch: begin
        chosen = search_step;
        chosen_record = search_record;
      end
      qp_pkg::AnswerStSettle: begin
        chosen.pending_read = 1'b1;
        chosen.state = qp_pkg::AnswerStAnswer;
      end
      qp_pkg::AnswerStAnswer: begin
        chosen = answer_step;
        chosen_record = answer_record;
      end
      default: chosen.state = qp_pkg::AnswerStIdle;
    endcase
  end

  // --- Write-back: new answers and repetitions.
  logic starts_again, is_queued;
  always_comb begin
    queued = chosen;
    record_o = chosen_record;
    if (chosen.push) begin
      queued.pending.msn = chosen.c.msn;
      queued.pending_write = 1'b1;
      queued.done_write = 1'b1;
      queued.c.tail = c_q.tail + 1'b1;
      if (chosen.done.placed) queued.state = qp_pkg::AnswerStSettle;
    end
    // A repetition is sent before all new answers. A PSN before the queued ones means that the requester retransmits
    // from further back, and will ask again for the rest.
    starts_again = c_q.replay_head == c_q.replay_tail || roce_pkg::precedes(request_i.psn, c_q.replay_psn);
    is_queued = !starts_again && (roce_pkg::precedes(request_i.psn, c_q.replay_end) ||
                                  c_q.replay_tail - c_q.replay_head >= c_q.max_dest_rd_atomic);
    if (chosen.repeats && is_queued) begin
      // Already queued, or more than max_dest_rd_atomic allows.
      record_o.verdict = qp_pkg::VerdictDrop;
    end else if (chosen.repeats) begin
      if (starts_again) begin
        queued.c.replay_head = c_q.replay_tail;
        queued.c.replay_psn = request_i.psn;
        queued.c.replay_packet = '0;
      end
      queued.replay_write = 1'b1;
      queued.c.replay_tail = c_q.replay_tail + 1'b1;
      queued.c.replay_end = request_i.psn + (parsed.is_atomic ? '0 : parsed.further) + 24'd1;
    end
    // No answers after a fatal NAK: an ACK would acknowledge the refused request.
    if (chosen.emit && chosen_record.op == qp_pkg::AnswerOpPacket && chosen_record.fatal) begin
      queued.c.head = c_q.tail;
      queued.c.head_ready = 1'b0;
      queued.c.next_packet = '0;
      queued.c.ack_waits = 1'b0;
      queued.c.replay_head = c_q.replay_tail;
    end
  end

  // The step takes effect when its record is accepted.
  always_comb begin
    step = queued.emit && !record_ready_i ? stay : queued;
    state_d = step.state;
    c_d = step.c;
    record_valid_o = queued.emit;
    context_write = state_q != qp_pkg::AnswerStIdle && state_d == qp_pkg::AnswerStIdle;
    wants = context_write && c_d.ahead < qp_pkg::MaxAhead &&
        (c_d.replay_head != c_d.replay_tail || c_d.ack_waits || c_d.head_ready);
    control_ready_o = context_write && op_q == qp_pkg::AnswerOpControl;
    event_ready_o = context_write && op_q == qp_pkg::AnswerOpEvent;
    request_ready_o = context_write && op_q == qp_pkg::AnswerOpRequest;
    grant_ready = context_write && op_q == qp_pkg::AnswerOpPacket;
    busy_o = state_q != qp_pkg::AnswerStIdle || turns_busy;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= qp_pkg::AnswerStIdle;
    end else begin
      state_q <= state_d;
    end
  end

  always_ff @(posedge clk_i) begin
    op_q <= op_d;
    slot_q <= slot_d;
    c_q <= c_d;
    searched_q <= step.searched;
    forward_q <= step.forward;
  end

endmodule
