// SPDX-License-Identifier: Apache-2.0
// Send side of 256 queue pairs: splits messages into request packets, handles answers, retries, and completes in order.
//
// Executes one operation at a time: a command, an expired timer, an event, an answer, a posted message, or a packet of
// the queue pair whose turn it is. Each operation reads the queue pair's context and the message concerned, works on
// copies, and writes the context back at its end. The window is a ring of messages with these pointers:
//
//     head: oldest not completed <= una: oldest unanswered <= cursor: next to send from <= tail
//
// Messages before the cursor were sent completely; messages after it were not started (or not restarted).
module requester (
    input logic clk_i,
    input logic rst_ni,

    input  logic             control_valid_i,
    output logic             control_ready_o,
    input  qp_pkg::send_control_t control_i,

    input  logic          post_valid_i,
    output logic          post_ready_o,
    input  qp_pkg::post_t post_i,

    input  logic              response_valid_i,
    output logic              response_ready_o,
    input  qp_pkg::response_t response_i,

    input  logic                event_valid_i,
    output logic                event_ready_o,
    input  qp_pkg::send_event_t event_i,

    // Timers; number = {slot, is_rnr}.
    output logic                         timer_set_valid_o,
    input  logic                         timer_set_ready_i,
    output logic [qp_pkg::SlotWidth:0]   timer_set_number_o,
    output logic                         timer_set_cancel_o,
    output logic [qp_pkg::TickWidth-1:0] timer_set_after_o,
    input  logic                         timer_valid_i,
    output logic                         timer_ready_o,
    input  logic [qp_pkg::SlotWidth:0]   timer_number_i,

    output logic                 record_valid_o,
    input  logic                 record_ready_i,
    output qp_pkg::send_record_t record_o,

    output logic busy_o
);

  localparam int unsigned MW = qp_pkg::MessageWidth;

  typedef enum logic [1:0] {
    TimerKeep,
    TimerSet,
    TimerCancel
  } timer_e;

  qp_pkg::send_state_e state_q, state_d;
  qp_pkg::send_op_e op_q, op_d;
  logic [qp_pkg::SlotWidth-1:0] slot_q, slot_d;
  qp_pkg::send_context_t c_q, c_d;
  logic [23:0] upto_q;
  logic moved_q, restart_q, rnr_set_q, rnr_cancel_q, walked_q;  // as in step_t
  logic offered, finish, blocked;

  // `stay`: no effect. A step per operation or state; `chosen` is this cycle's, `moved` has its changes of the window,
  // and `step` also waits for the record.
  qp_pkg::send_step_t stay, control_step, event_step, timeout_step, response_step, post_step, packet_step, walk_step,
      answer_step, complete_step, timer_step, chosen, moved, step;
  qp_pkg::send_record_t stay_record, control_record, event_record, timeout_record, response_record, post_record,
      packet_record, answer_record, complete_record, chosen_record;

  // --- Memories.
  logic context_read;
  qp_pkg::send_context_t context_data;
  qp_pkg::message_t message_new, m;
  qp_pkg::progress_t p;
  logic [127:0] operands;  // of an atomic: swap or add value, compare value

  ram_1r1w #(
      .Width($bits(c_q)),
      .Depth(2 ** qp_pkg::SlotWidth)
  ) contexts (
      .clk_i,
      .read_i(context_read),
      .read_index_i(slot_d),
      .read_data_o(context_data),
      .write_i(finish),
      .write_index_i(slot_q),
      .write_data_i(c_d)
  );
  ram_1r1w #(
      .Width($bits(message_new)),
      .Depth(2 ** (qp_pkg::SlotWidth + MW))
  ) messages (
      .clk_i,
      .read_i(step.message_read),
      .read_index_i({slot_q, step.message_index}),
      .read_data_o(m),
      .write_i(step.message_write),
      .write_index_i({slot_q, c_q.tail[MW-1:0]}),
      .write_data_i(message_new)
  );
  ram_1r1w #(
      .Width($bits(p)),
      .Depth(2 ** (qp_pkg::SlotWidth + MW))
  ) progress (
      .clk_i,
      .read_i(step.message_read),
      .read_index_i({slot_q, step.message_index}),
      .read_data_o(p),
      .write_i(step.progress_write),
      .write_index_i({slot_q, step.progress_index}),
      .write_data_i(step.progress)
  );
  ram_1r1w #(
      .Width(128),
      .Depth(2 ** (qp_pkg::SlotWidth + MW))
  ) operand_pairs (
      .clk_i,
      .read_i(step.message_read && op_q == qp_pkg::SendOpPacket),
      .read_index_i({slot_q, step.message_index}),
      .read_data_o(operands),
      .write_i(step.message_write),
      .write_index_i({slot_q, c_q.tail[MW-1:0]}),
      .write_data_i({post_i.swap_add, post_i.compare})
  );

  // --- Arbitration among queue pairs that want to send.
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
  logic misfit, is_ack, packet_blocked, packet_skip;
  qp_pkg::reaction_t reaction;
  qp_pkg::outcome_e outcome;
  qp_pkg::send_context_t c_packet;
  qp_pkg::send_record_t packet;

  response_check response_check (
      .c_i(c_q),
      .m_i(m),
      .moved_i(moved_q),
      .response_i,
      .misfit_o(misfit),
      .is_ack_o(is_ack),
      .outcome_o(outcome),
      .reaction_o(reaction)
  );
  send_control send_control (
      .stay_i(stay),
      .stay_record_i(stay_record),
      .control_i,
      .drained_i(drained),
      .step_o(control_step),
      .record_o(control_record)
  );
  send_completion send_completion (
      .stay_i(stay),
      .stay_record_i(stay_record),
      .m_i(m),
      .p_i(p),
      .drained_o(drained),
      .step_o(complete_step),
      .record_o(complete_record)
  );
  send_window send_window (
      .c_i(c_q),
      .step_i(chosen),
      .skip_i(passes),
      .rd_atomic_i(rd_atomic),
      .record_i(chosen_record),
      .response_psn_i(response_i.psn),
      .step_o(moved),
      .record_o(record_o)
  );
  request_packet request_packet (
      .c_i(c_q),
      .m_i(m),
      .operands_i(operands),
      .blocked_o(packet_blocked),
      .skip_o(packet_skip),
      .record_o(packet),
      .c_o(c_packet)
  );

  // --- Operands: the operation's queue pair, its message, and what the streams offer.
  logic [23:0] message_end;
  logic [31:0] post_packets;
  logic [1:0] class_of;
  logic rd_atomic, drained, ghost, silent;
  logic passes;  // `una` has no packets and a later message was sent: `una` counts as answered
  qp_pkg::message_e operation;

  always_comb begin
    message_end = m.first + m.packets;
    rd_atomic = qp_pkg::is_rd_atomic(m.operation);
    passes = c_q.una != c_q.tail && m.packets == '0 && roce_pkg::precedes(c_q.una_psn, c_q.unsent_psn);
    class_of = response_i.syndrome[6:5];
    ghost = !roce_pkg::precedes(response_i.psn, c_q.unsent_psn);
  end

  always_comb begin
    operation = post_i.operation;
    silent = post_i.refused != qp_pkg::StatusSuccess || operation == qp_pkg::MessageNop;
    post_packets = post_i.length == '0 ? 32'd1 : ((post_i.length - 32'd1) >> c_q.mtu_shift) + 32'd1;
    message_new = '0;
    message_new.operation = operation;
    message_new.first = c_q.next_psn;
    message_new.packets = silent ? '0 : post_packets[23:0];
    message_new.length = post_i.length;
    message_new.remote_address = post_i.remote_address;
    message_new.rkey = post_i.rkey;
    message_new.has_immediate = post_i.has_immediate;
    message_new.immediate = post_i.immediate;
    message_new.solicited = post_i.solicited;
    message_new.fence = post_i.fence;
  end

  always_comb begin
    stay = '0;
    stay_record = '0;
    stay.state = state_q;
    stay.c = c_q;
    stay_record.slot = slot_q;
    stay_record.op = op_q;
    stay_record.outcome = qp_pkg::OutcomeProgress;
    stay_record.message = c_q.una[MW-1:0];
    stay.message_index = c_q.una[MW-1:0];
    stay.progress_index = c_q.una[MW-1:0];
    stay.progress = p;
    stay.fail_status = qp_pkg::StatusBadResponseError;
    stay.upto = upto_q;
    stay.moved = moved_q;
    stay.walked = walked_q;
    stay.restart = restart_q;
    stay.rnr_set = rnr_set_q;
    stay.rnr_cancel = rnr_cancel_q;
  end

  // --- Choice of the next operation.
  always_comb begin
    offered = 1'b1;
    op_d = op_q;
    slot_d = slot_q;
    if (state_q == qp_pkg::SendStIdle) begin
      if (control_valid_i) begin
        op_d = qp_pkg::SendOpControl;
        slot_d = control_i.slot;
      end else if (event_valid_i) begin
        op_d = qp_pkg::SendOpEvent;
        slot_d = event_i.slot;
      end else if (response_valid_i) begin
        op_d = qp_pkg::SendOpResponse;
        slot_d = response_i.slot;
      end else if (timer_valid_i) begin
        op_d = timer_number_i[0] ? qp_pkg::SendOpRnrTimeout : qp_pkg::SendOpAckTimeout;
        slot_d = timer_number_i[qp_pkg::SlotWidth:1];
      end else if (post_valid_i) begin
        op_d = qp_pkg::SendOpPost;
        slot_d = post_i.slot;
      end else if (grant_valid) begin
        op_d = qp_pkg::SendOpPacket;
        slot_d = grant_slot;
      end else begin
        offered = 1'b0;
      end
    end
    context_read = state_q == qp_pkg::SendStIdle && offered;
  end

  // --- Events of packets and messages. A message that was flushed already ignores them.
  always_comb begin
    event_step = stay;
    event_record = stay_record;
    event_step.emit = 1'b1;
    event_record.message = event_i.message;
    event_step.progress_index = event_i.message;
    event_step.state = qp_pkg::SendStTimer;
    if (event_i.kind == qp_pkg::SendLeft) begin
      event_step.c.ahead = c_q.ahead - event_i.count;
      if (event_i.has_psn) event_step.c.left_psn = event_i.psn;
    end else if (c_q.life == qp_pkg::LifeActive) begin
      event_step.state = qp_pkg::SendStSettle;
      if (p.status == qp_pkg::StatusSuccess) event_step.progress.status = event_i.status;
      if (event_i.kind == qp_pkg::SendFailed) begin
        event_step.progress_write = p.status == qp_pkg::StatusSuccess;
      end else begin
        event_step.progress_write = 1'b1;
        event_step.progress.placing = p.placing - 12'd1;
        event_step.c.placing = c_q.placing - 12'd1;
      end
    end
  end

  // --- Expired timers.
  always_comb begin
    timeout_step = stay;
    timeout_record = stay_record;
    if (op_q == qp_pkg::SendOpRnrTimeout) begin
      timeout_step.emit = 1'b1;
      timeout_step.c.rnr_waiting = 1'b0;
      timeout_step.state = qp_pkg::SendStTimer;
    end else if (passes) begin
      timeout_step.advance = 1'b1;
      timeout_step.message_read = 1'b1;
      timeout_step.message_index = c_q.una[MW-1:0] + 1'b1;
    end else begin
      timeout_step.emit = 1'b1;
      timeout_step.c.ack_armed = 1'b0;
      timeout_step.restart = 1'b1;
      timeout_step.state = qp_pkg::SendStSettle;
      if (c_q.retries == '0) begin
        timeout_step.fail = 1'b1;
        timeout_step.fail_status = qp_pkg::StatusTransportRetryExceeded;
      end else begin
        timeout_step.go_back = 1'b1;
        timeout_step.c.gap_known = 1'b0;
      end
    end
  end

  // --- Answers: first, is the answer for this queue pair, and which PSNs does it acknowledge?
  always_comb begin
    response_step = stay;
    response_record = stay_record;
    response_step.message_read = 1'b1;
    if (c_q.life != qp_pkg::LifeActive || ghost || roce_pkg::precedes(response_i.psn, c_q.una_psn)) begin
      response_step.emit = 1'b1;
      response_record.outcome = c_q.life != qp_pkg::LifeActive || ghost ? qp_pkg::OutcomeDropped :
          qp_pkg::OutcomeDuplicate;
      response_step.state = qp_pkg::SendStIdle;
    end else if (!misfit && is_ack) begin
      // An ACK acknowledges its own PSN, a NAK only the PSNs before it.
      response_step.upto = class_of == qp_pkg::ClassAck ? response_i.psn + 24'd1 : response_i.psn;
      response_step.state = qp_pkg::SendStWalk;
    end else begin
      response_step.state = qp_pkg::SendStAct;
    end
  end

  // Then the messages before PSN upto_q are marked as answered, one after another.
  always_comb begin
    walk_step = stay;
    walk_step.message_read = 1'b1;
    walk_step.state = qp_pkg::SendStAct;
    if (passes) begin
      walk_step.advance = 1'b1;
      walk_step.message_index = c_q.una[MW-1:0] + 1'b1;
      walk_step.state = qp_pkg::SendStWalk;
    end else if (c_q.una != c_q.tail && !rd_atomic && roce_pkg::precedes(c_q.una_psn, upto_q)) begin
      walk_step.moved = 1'b1;
      walk_step.advance = 1'b1;
      walk_step.answered = !roce_pkg::precedes(upto_q, message_end);
      walk_step.c.una_psn = walk_step.answered ? message_end : upto_q;
      if (walk_step.answered) walk_step.message_index = c_q.una[MW-1:0] + 1'b1;
      // Done when the message is answered only in part, or is the last answered one.
      if (walk_step.answered && upto_q != message_end) walk_step.state = qp_pkg::SendStWalk;
    end
  end

  // Last, the reaction for the oldest unanswered message.
  always_comb begin
    answer_step = stay;
    answer_record = stay_record;
    answer_step.message_read = 1'b1;
    if (passes) begin
      answer_step.advance = 1'b1;
      answer_step.message_index = c_q.una[MW-1:0] + 1'b1;
    end else if (!misfit && !is_ack && !walked_q && !rd_atomic && class_of == qp_pkg::ClassAck) begin
      // A response acknowledges everything before its READ or atomic.
      answer_step.walked = 1'b1;
      answer_step.upto = response_i.psn;
      answer_step.state = qp_pkg::SendStWalk;
    end else begin
      answer_step.emit = 1'b1;
      answer_step.state = qp_pkg::SendStSettle;
      answer_record.outcome = outcome;
      answer_step.restart = outcome == qp_pkg::OutcomeProgress || reaction.rnr_wait || reaction.go_back;
      answer_step.fail = reaction.fail;
      answer_step.fail_status = reaction.status;
      answer_step.go_back = reaction.go_back;
      answer_step.rnr_wait = reaction.rnr_wait;
      if (moved_q || reaction.accepted) begin
        answer_step.c.retries = c_q.retry_count;
        answer_step.c.rnr_retries = c_q.rnr_retry;
        answer_step.c.gap_known = 1'b0;
      end
      if (reaction.lost) answer_step.c.gap_known = 1'b1;
      if (reaction.accepted) begin
        answer_step.advance = 1'b1;
        answer_step.answered = c_q.una_psn + 24'd1 == message_end;
        answer_step.c.una_psn = c_q.una_psn + 24'd1;
        answer_record.offset = {8'd0, c_q.una_psn - m.first} << c_q.mtu_shift;
        answer_record.place = m.operation != qp_pkg::MessageRead || response_i.bytes != '0;
        if (answer_record.place) begin
          answer_step.progress_write = 1'b1;
          answer_step.progress.placing = p.placing + 12'd1;
          answer_step.c.placing = c_q.placing + 12'd1;
        end
      end
    end
  end

  // --- Posted messages.
  always_comb begin
    post_step = stay;
    post_record = stay_record;
    post_step.emit = 1'b1;
    post_record.message = c_q.tail[MW-1:0];
    post_record.psn = message_new.first;
    post_record.end_psn = message_new.first + message_new.packets;
    post_step.message_write = 1'b1;
    post_step.progress_write = 1'b1;
    post_step.progress_index = c_q.tail[MW-1:0];
    post_step.progress = '0;
    post_step.progress.status = post_i.refused;
    post_step.c.next_psn = c_q.next_psn + message_new.packets;
    post_step.c.tail = c_q.tail + 1'b1;
    post_step.state = qp_pkg::SendStIdle;
    if (silent || (qp_pkg::is_rd_atomic(operation) && c_q.max_rd_atomic == '0))
      post_step.state = qp_pkg::SendStSettle;
    if (c_q.life == qp_pkg::LifeFailed) post_step.state = qp_pkg::SendStFlush;
  end

  // --- Packets.
  always_comb begin
    packet_step = stay;
    packet_step.state = qp_pkg::SendStIdle;
    packet_step.blocked = packet_blocked;
    packet_record = packet;
    packet_record.slot = slot_q;
    packet_record.op = op_q;
    packet_record.outcome = qp_pkg::OutcomeProgress;
    if (packet_skip) begin
      packet_step.c.cursor = c_q.cursor + 1'b1;
    end else if (!packet_blocked) begin
      packet_step.emit = 1'b1;
      packet_step.c = c_packet;
    end
  end

  // --- Timers at the end of an operation: first the RNR timer, then the ACK timer.
  timer_e ack_timer;
  logic ack_wanted;
  always_comb begin
    ack_wanted = c_q.life == qp_pkg::LifeActive && !c_q.rnr_waiting && c_q.timeout != '0 &&
        roce_pkg::precedes(c_q.una_psn, c_q.sent_psn) && roce_pkg::precedes(c_q.una_psn, c_q.left_psn);
    ack_timer = TimerKeep;
    if (ack_wanted && (!c_q.ack_armed || restart_q)) ack_timer = TimerSet;
    if (!ack_wanted && c_q.ack_armed) ack_timer = TimerCancel;
    timer_set_valid_o = state_q == qp_pkg::SendStTimer && (rnr_set_q || rnr_cancel_q || ack_timer != TimerKeep);
    timer_set_number_o = {slot_q, rnr_set_q || rnr_cancel_q};
    timer_set_cancel_o = ack_timer == TimerCancel;
    timer_set_after_o = 36'd4 << c_q.timeout;
    if (rnr_set_q || rnr_cancel_q) begin
      timer_set_cancel_o = rnr_cancel_q;
      timer_set_after_o = roce_pkg::rnr_ticks(response_i.syndrome[4:0]);
    end
  end

  always_comb begin
    timer_step = stay;
    if (rnr_set_q || rnr_cancel_q) begin
      if (timer_set_ready_i) begin
        timer_step.rnr_set = 1'b0;
        timer_step.rnr_cancel = 1'b0;
      end
    end else if (ack_timer == TimerKeep || timer_set_ready_i) begin
      if (ack_timer != TimerKeep) timer_step.c.ack_armed = ack_timer == TimerSet;
      timer_step.state = qp_pkg::SendStIdle;
    end
  end

  // --- Decision: the step of this cycle.
  always_comb begin
    chosen = stay;
    chosen_record = stay_record;
    unique case (state_q)
      qp_pkg::SendStIdle: begin
        chosen.state = offered ? qp_pkg::SendStContext : qp_pkg::SendStIdle;
        chosen.moved = 1'b0;
        chosen.walked = 1'b0;
        chosen.restart = 1'b0;
        chosen.rnr_set = 1'b0;
        chosen.rnr_cancel = 1'b0;
      end
      qp_pkg::SendStContext: begin
        chosen.c = context_data;
        chosen.message_read = 1'b1;
        chosen.message_index = context_data.una[MW-1:0];
        if (op_q == qp_pkg::SendOpPacket) chosen.message_index = context_data.cursor[MW-1:0];
        if (op_q == qp_pkg::SendOpEvent) chosen.message_index = event_i.message;
        chosen.state = qp_pkg::SendStExecute;
      end
      qp_pkg::SendStExecute:
        unique case (op_q)
          qp_pkg::SendOpControl: begin
            chosen = control_step;
            chosen_record = control_record;
          end
          qp_pkg::SendOpEvent: begin
            chosen = event_step;
            chosen_record = event_record;
          end
          qp_pkg::SendOpRnrTimeout, qp_pkg::SendOpAckTimeout: begin
            chosen = timeout_step;
            chosen_record = timeout_record;
          end
          qp_pkg::SendOpResponse: begin
            chosen = response_step;
            chosen_record = response_record;
          end
          qp_pkg::SendOpPost: begin
            chosen = post_step;
            chosen_record = post_record;
          end
          default: begin
            chosen = packet_step;
            chosen_record = packet_record;
          end
        endcase
      qp_pkg::SendStWalk: chosen = walk_step;
      qp_pkg::SendStAct: begin
        chosen = answer_step;
        chosen_record = answer_record;
      end
      qp_pkg::SendStTimer: chosen = timer_step;
      default: begin
        chosen = complete_step;
        chosen_record = complete_record;
      end
    endcase
  end

  // --- Write-back.
  // The step takes effect when its record is accepted.
  always_comb begin
    step = moved.emit && !record_ready_i ? stay : moved;
    state_d = step.state;
    c_d = step.c;
    blocked = step.blocked;
    record_valid_o = moved.emit;
    finish = state_q != qp_pkg::SendStIdle && state_d == qp_pkg::SendStIdle;
    wants = finish && c_d.life == qp_pkg::LifeActive && c_d.cursor != c_d.tail && !c_d.rnr_waiting &&
        c_d.ahead < qp_pkg::MaxAhead && !blocked;

    control_ready_o = finish && op_q == qp_pkg::SendOpControl;
    event_ready_o = finish && op_q == qp_pkg::SendOpEvent;
    response_ready_o = finish && op_q == qp_pkg::SendOpResponse;
    post_ready_o = finish && op_q == qp_pkg::SendOpPost;
    grant_ready = finish && op_q == qp_pkg::SendOpPacket;
    // Accepted at once, because a timer set by this operation is a new one.
    timer_ready_o = state_q == qp_pkg::SendStContext &&
        (op_q == qp_pkg::SendOpAckTimeout || op_q == qp_pkg::SendOpRnrTimeout);
    busy_o = state_q != qp_pkg::SendStIdle || turns_busy;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= qp_pkg::SendStIdle;
    end else begin
      state_q <= state_d;
    end
  end

  always_ff @(posedge clk_i) begin
    op_q <= op_d;
    slot_q <= slot_d;
    c_q <= c_d;
    upto_q <= step.upto;
    moved_q <= step.moved;
    restart_q <= step.restart;
    rnr_set_q <= step.rnr_set;
    rnr_cancel_q <= step.rnr_cancel;
    walked_q <= step.walked;
  end

endmodule
