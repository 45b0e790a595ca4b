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
    Off,
    Active,
    Failed
  } life_e;

  typedef struct packed {
    life_e       life;
    // Attributes.
    logic [23:0] remote_qpn;
    logic [3:0]  mtu_shift;
    logic [4:0]  max_rd_atomic;
    logic [2:0]  retry_count;
    logic [2:0]  rnr_retry;
    logic [4:0]  timeout;
    logic        draining;
    logic        drain_told;
    // Window. A pointer has one bit more than an index, to distinguish full from empty.
    logic [MW:0] head;
    logic [MW:0] una;
    logic [MW:0] cursor;
    logic [MW:0] tail;
    logic [23:0] next_psn;    // first PSN of the next posted message
    logic [23:0] unsent_psn;  // one past the last PSN ever sent
    logic [23:0] una_psn;     // oldest unanswered PSN
    logic        partial;     // the message `una` is answered in part
    logic [23:0] sent_psn;    // next PSN to send
    logic [23:0] asked_psn;   // first PSN of the last request for the READ `una`
    logic [23:0] left_psn;    // one past the last PSN that left the port since the last rewind
    logic [5:0]  ahead;       // packets that have not left the port
    logic [4:0]  outstanding; // READs and atomics sent and not answered
    logic [11:0] placing;     // response packets not yet placed in memory
    logic [2:0]  retries;
    logic [2:0]  rnr_retries;
    logic        rnr_waiting;
    logic        gap_known;   // a lost answer was requested again: later packets in flight are from before
    logic        ack_armed;
    logic        failing;     // a message will fail: neither this message nor later ones are sent
    logic [MW-1:0] fail_at;   // the oldest message that will fail
  } context_t;

  typedef struct packed {
    logic [2:0]  operation;  // qp_pkg::message_e
    logic [23:0] first;      // first PSN
    logic [23:0] packets;    // number of PSNs
    logic [31:0] length;
    logic [63:0] remote_address;
    logic [31:0] rkey;
    logic        has_immediate;
    logic [31:0] immediate;
    logic        solicited;
    logic        fence;
  } message_t;

  // The part of a message's state that changes.
  typedef struct packed {
    logic [3:0]  status;   // status with which the message will complete
    logic [11:0] placing;  // packets of its response not yet placed in memory
  } progress_t;

  typedef enum logic [3:0] {
    StIdle,
    StContext,  // context read; choose the message
    StExecute,  // message read
    StWalk,     // mark messages before PSN upto_q as answered, one after another
    StAct,      // handle the rest of the answer
    StSettle,   // read the head message
    StRetire,   // complete the head message
    StFlush,    // complete all messages in error
    StDrained,
    StTimer     // set or cancel a timer
  } state_e;

  typedef enum logic [1:0] {
    TimerKeep,
    TimerSet,
    TimerCancel
  } timer_e;

  state_e state_q, state_d;
  qp_pkg::send_op_e op_q, op_d;
  logic [qp_pkg::SlotWidth-1:0] slot_q, slot_d;
  context_t c_q, c_d;
  logic [23:0] upto_q, upto_d;
  logic moved_q, moved_d;      // at least one PSN was newly answered
  logic restart_q, restart_d;  // restart the ACK timer
  logic rnr_set_q, rnr_set_d;
  logic rnr_cancel_q, rnr_cancel_d;
  logic walked_q, walked_d;    // the messages before the answered READ or atomic are marked as answered

  // --- Memories.
  logic context_read, context_write, message_read, message_write, progress_write;
  logic [qp_pkg::SlotWidth-1:0] context_index;
  logic [MW-1:0] message_index, progress_index;
  context_t context_data;
  message_t message_new, m;
  progress_t progress_new, p;
  logic [127:0] operands;  // of an atomic: swap or add value, compare value

  ram_1r1w #(
      .Width($bits(c_q)),
      .Depth(2 ** qp_pkg::SlotWidth)
  ) contexts (
      .clk_i,
      .read_i(context_read),
      .read_index_i(context_index),
      .read_data_o(context_data),
      .write_i(context_write),
      .write_index_i(slot_q),
      .write_data_i(c_d)
  );
  ram_1r1w #(
      .Width($bits(message_new)),
      .Depth(2 ** (qp_pkg::SlotWidth + MW))
  ) messages (
      .clk_i,
      .read_i(message_read),
      .read_index_i({slot_q, message_index}),
      .read_data_o(m),
      .write_i(message_write),
      .write_index_i({slot_q, c_q.tail[MW-1:0]}),
      .write_data_i(message_new)
  );
  ram_1r1w #(
      .Width($bits(progress_new)),
      .Depth(2 ** (qp_pkg::SlotWidth + MW))
  ) progress (
      .clk_i,
      .read_i(message_read),
      .read_index_i({slot_q, message_index}),
      .read_data_o(p),
      .write_i(progress_write),
      .write_index_i({slot_q, progress_index}),
      .write_data_i(progress_new)
  );
  ram_1r1w #(
      .Width(128),
      .Depth(2 ** (qp_pkg::SlotWidth + MW))
  ) operand_pairs (
      .clk_i,
      .read_i(message_read && op_q == qp_pkg::SendOpPacket),
      .read_index_i({slot_q, message_index}),
      .read_data_o(operands),
      .write_i(message_write),
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

  logic known;
  qp_pkg::message_e operation;
  roce_pkg::operation_e row_operation;
  roce_pkg::position_e row_position;
  roce_pkg::payload_e row_payload;
  opcode_decoder decoder (
      .opcode_i(response_i.opcode),
      .known_o(known),
      .operation_o(row_operation),
      .position_o(row_position),
      .payload_o(row_payload),
      .headers_o()
  );

  function automatic logic is_rd_atomic(input logic [2:0] message);
    is_rd_atomic = message == qp_pkg::MessageRead || message == qp_pkg::MessageFetchAdd ||
        message == qp_pkg::MessageCompareSwap;
  endfunction

  logic [12:0] mtu;
  logic [31:0] left, post_packets;
  logic misfit, ghost, is_ack, ends, begins, row_begins, row_ends, may_start, psns_allow, silent, drained;
  logic [23:0] index, needed, in_flight, message_end;
  logic [1:0] class_of;
  logic lost, go_back, fail, answered, advance;
  logic [3:0] fail_status;
  logic head_begun, head_starved;
  logic blocked;  // the packet whose turn it was may not be sent yet
  logic passes;   // `una` has no packets and a later message was sent: `una` counts as answered
  logic finish, emit;
  logic [MW-1:0] cursor_place, fail_place, progress_place;  // positions in the window, relative to head
  timer_e ack_timer;
  logic ack_wanted;
  qp_pkg::send_record_t r;

  // --- Timers at the end of an operation: first the RNR timer, then the ACK timer.
  always_comb begin
    ack_wanted = c_q.life == Active && !c_q.rnr_waiting && c_q.timeout != '0 &&
        qp_pkg::precedes(c_q.una_psn, c_q.sent_psn) && qp_pkg::precedes(c_q.una_psn, c_q.left_psn);
    ack_timer = TimerKeep;
    if (ack_wanted && (!c_q.ack_armed || restart_q)) ack_timer = TimerSet;
    if (!ack_wanted && c_q.ack_armed) ack_timer = TimerCancel;
    timer_set_valid_o = state_q == StTimer && (rnr_set_q || rnr_cancel_q || ack_timer != TimerKeep);
    timer_set_number_o = {slot_q, rnr_set_q || rnr_cancel_q};
    timer_set_cancel_o = ack_timer == TimerCancel;
    timer_set_after_o = 36'd4 << c_q.timeout;
    if (rnr_set_q || rnr_cancel_q) begin
      timer_set_cancel_o = rnr_cancel_q;
      timer_set_after_o = qp_pkg::rnr_ticks(response_i.syndrome[4:0]);
    end
  end

  always_comb begin
    // --- Derived from the operation's context and message.
    mtu = 13'd1 << c_q.mtu_shift;
    message_end = m.first + m.packets;
    index = c_q.sent_psn - m.first;
    needed = m.operation == qp_pkg::MessageRead ? message_end - c_q.sent_psn : 24'd1;
    in_flight = c_q.sent_psn - c_q.una_psn;
    cursor_place = c_q.cursor[MW-1:0] - c_q.head[MW-1:0];
    fail_place = c_q.fail_at - c_q.head[MW-1:0];
    passes = c_q.una != c_q.tail && m.packets == '0 && qp_pkg::precedes(c_q.una_psn, c_q.unsent_psn) &&
        ((state_q == StExecute && op_q == qp_pkg::SendOpAckTimeout) || state_q == StWalk || state_q == StAct);
    psns_allow = in_flight == '0 || {1'b0, in_flight} + {1'b0, needed} < {1'b0, qp_pkg::MaxPsns};
    begins = index == '0;
    ends = index + 24'd1 == m.packets;
    drained = !(qp_pkg::precedes(c_q.una_psn, c_q.unsent_psn) || c_q.partial) && c_q.placing == '0;
    // For the head message, whose data are in `m` when they are used. A READ or atomic with max_rd_atomic 0 could never
    // be sent.
    head_begun = c_q.head != c_q.una || c_q.partial || qp_pkg::precedes(c_q.una_psn, c_q.unsent_psn);
    head_starved = c_q.head == c_q.una && is_rd_atomic(m.operation) && c_q.max_rd_atomic == '0 &&
        c_q.outstanding == '0;
    may_start = !(c_q.draining && !qp_pkg::precedes(c_q.sent_psn, c_q.unsent_psn)) &&
        !(m.fence && (c_q.outstanding != '0 || c_q.placing != '0)) &&
        !(is_rd_atomic(m.operation) && c_q.outstanding >= c_q.max_rd_atomic);

    // --- Derived from the answer.
    row_begins = row_position == roce_pkg::PositionFirst || row_position == roce_pkg::PositionOnly;
    row_ends = row_position == roce_pkg::PositionLast || row_position == roce_pkg::PositionOnly;
    class_of = response_i.syndrome[6:5];
    is_ack = row_operation == roce_pkg::OperationAcknowledge;
    ghost = !qp_pkg::precedes(response_i.psn, c_q.unsent_psn);
    misfit = !roce_pkg::payload_fits(row_payload, response_i.bytes, {3'd0, mtu}) || !known ||
        !(is_ack || row_operation == roce_pkg::OperationReadResponse ||
          row_operation == roce_pkg::OperationAtomicAcknowledge);
    // Rest of the READ `una` from the expected packet on, in bytes.
    left = m.length - ({8'd0, c_q.una_psn - m.first} << c_q.mtu_shift);

    // --- Derived from the posted message.
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

    // --- Defaults of the record.
    r = '0;
    r.slot = slot_q;
    r.op = op_q;
    r.outcome = qp_pkg::OutcomeProgress;
    r.message = c_q.una[MW-1:0];
    emit = 1'b0;

    state_d = state_q;
    op_d = op_q;
    slot_d = slot_q;
    c_d = c_q;
    upto_d = upto_q;
    moved_d = moved_q;
    restart_d = restart_q;
    rnr_set_d = rnr_set_q;
    rnr_cancel_d = rnr_cancel_q;
    blocked = 1'b0;
    walked_d = walked_q;
    context_read = 1'b0;
    context_index = slot_d;
    context_write = 1'b0;
    message_read = 1'b0;
    message_index = c_q.una[MW-1:0];
    message_write = 1'b0;
    progress_write = 1'b0;
    progress_index = c_q.una[MW-1:0];
    progress_new = p;
    lost = 1'b0;
    go_back = 1'b0;
    fail = 1'b0;
    fail_status = qp_pkg::StatusBadResponseError;
    answered = 1'b0;
    advance = 1'b0;

    case (state_q)
      StIdle: begin
        moved_d = 1'b0;
        restart_d = 1'b0;
        rnr_set_d = 1'b0;
        rnr_cancel_d = 1'b0;
        walked_d = 1'b0;
        context_read = 1'b1;
        state_d = StContext;
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
          context_read = 1'b0;
          state_d = StIdle;
        end
        context_index = slot_d;
      end

      StContext: begin
        c_d = context_data;
        message_read = 1'b1;
        message_index = context_data.una[MW-1:0];
        if (op_q == qp_pkg::SendOpPacket) message_index = context_data.cursor[MW-1:0];
        if (op_q == qp_pkg::SendOpEvent) message_index = event_i.message;
        state_d = StExecute;
      end

      StExecute: begin
        case (op_q)
          qp_pkg::SendOpControl: begin
            emit = 1'b1;
            r.psn = c_q.una_psn;
            r.end_psn = c_q.unsent_psn;
            r.retries = c_q.retries;
            r.rnr_retries = c_q.rnr_retries;
            r.drained = drained;
            if (record_ready_i) begin
              state_d = StTimer;
              case (control_i.kind)
                qp_pkg::ControlReset: begin
                  c_d = '0;
                  rnr_cancel_d = 1'b1;
                  c_d.ack_armed = c_q.ack_armed;
                end
                qp_pkg::ControlStart, qp_pkg::ControlUpdate: begin
                  c_d.remote_qpn = control_i.remote_qpn;
                  c_d.mtu_shift = {1'b0, control_i.mtu} + 4'd7;
                  c_d.max_rd_atomic = control_i.max_rd_atomic;
                  c_d.retry_count = control_i.retry_count;
                  c_d.rnr_retry = control_i.rnr_retry;
                  c_d.timeout = control_i.timeout;
                  c_d.draining = control_i.draining;
                  if (!control_i.draining) c_d.drain_told = 1'b0;
                  // New values take effect at once, also for packets in flight.
                  if (control_i.retry_count != c_q.retry_count) c_d.retries = control_i.retry_count;
                  if (control_i.rnr_retry != c_q.rnr_retry) c_d.rnr_retries = control_i.rnr_retry;
                  restart_d = control_i.timeout != c_q.timeout;
                  state_d = StSettle;
                  if (control_i.kind == qp_pkg::ControlStart) begin
                    c_d.life = Active;
                    c_d.next_psn = control_i.psn;
                    c_d.unsent_psn = control_i.psn;
                    c_d.una_psn = control_i.psn;
                    c_d.sent_psn = control_i.psn;
                    c_d.asked_psn = control_i.psn;
                    c_d.left_psn = control_i.psn;
                    c_d.retries = control_i.retry_count;
                    c_d.rnr_retries = control_i.rnr_retry;
                  end
                end
                qp_pkg::ControlError: begin
                  c_d.life = Failed;
                  state_d = StFlush;
                end
                default: ;  // query
              endcase
            end
          end

          qp_pkg::SendOpEvent: begin
            emit = 1'b1;
            r.message = event_i.message;
            if (record_ready_i) begin
              state_d = StSettle;
              progress_index = event_i.message;
              if (event_i.kind != qp_pkg::SendLeft && c_q.life != Active) begin
                // The message of this event was flushed already.
                state_d = StTimer;
              end else case (event_i.kind)
                qp_pkg::SendLeft: begin
                  c_d.ahead = c_q.ahead - event_i.count;
                  if (event_i.has_psn) c_d.left_psn = event_i.psn;
                  state_d = StTimer;
                end
                qp_pkg::SendFailed: begin
                  progress_write = p.status == qp_pkg::StatusSuccess;
                  progress_new.status = event_i.status;
                end
                default: begin
                  progress_write = 1'b1;
                  progress_new.placing = p.placing - 12'd1;
                  if (p.status == qp_pkg::StatusSuccess) progress_new.status = event_i.status;
                  c_d.placing = c_q.placing - 12'd1;
                end
              endcase
            end
          end

          qp_pkg::SendOpRnrTimeout: begin
            emit = 1'b1;
            if (record_ready_i) begin
              c_d.rnr_waiting = 1'b0;
              state_d = StTimer;
            end
          end

          qp_pkg::SendOpAckTimeout: begin
            if (passes) begin
              message_read = 1'b1;
              message_index = c_q.una[MW-1:0] + 1'b1;
            end else begin
              emit = 1'b1;
              if (c_q.retries == '0) begin
                fail = 1'b1;
                fail_status = qp_pkg::StatusTransportRetryExceeded;
              end else begin
                go_back = 1'b1;
              end
              if (record_ready_i) begin
                c_d.ack_armed = 1'b0;
                restart_d = 1'b1;
                if (go_back) c_d.gap_known = 1'b0;
                state_d = StSettle;
              end
            end
          end

          qp_pkg::SendOpResponse: begin
            if (c_q.life != Active || ghost) begin
              emit = 1'b1;
              r.outcome = qp_pkg::OutcomeDropped;
              if (record_ready_i) state_d = StIdle;
            end else if (qp_pkg::precedes(response_i.psn, c_q.una_psn)) begin
              emit = 1'b1;
              r.outcome = qp_pkg::OutcomeDuplicate;
              if (record_ready_i) state_d = StIdle;
            end else if (misfit) begin
              state_d = StAct;
            end else if (is_ack) begin
              // An ACK acknowledges its own PSN, a NAK only the PSNs before it.
              upto_d = class_of == qp_pkg::ClassAck ? response_i.psn + 24'd1 : response_i.psn;
              state_d = StWalk;
            end else begin
              state_d = StAct;
            end
            message_read = 1'b1;
          end

          qp_pkg::SendOpPost: begin
            emit = 1'b1;
            r.message = c_q.tail[MW-1:0];
            r.psn = message_new.first;
            r.end_psn = message_new.first + message_new.packets;
            if (record_ready_i) begin
              message_write = 1'b1;
              progress_write = 1'b1;
              progress_index = c_q.tail[MW-1:0];
              progress_new = '0;
              progress_new.status = post_i.refused;
              c_d.next_psn = c_q.next_psn + message_new.packets;
              c_d.tail = c_q.tail + 1'b1;
              if (c_q.life == Failed) state_d = StFlush;
              else state_d = silent || (is_rd_atomic(operation) && c_q.max_rd_atomic == '0) ? StSettle : StIdle;
            end
          end

          default: begin  // send a packet, if one may be sent
            if (c_q.life != Active || c_q.rnr_waiting || c_q.cursor == c_q.tail || c_q.ahead >= qp_pkg::MaxAhead ||
                (c_q.failing && cursor_place >= fail_place)) begin
              blocked = 1'b1;
              state_d = StIdle;
            end else if (m.packets == '0) begin
              c_d.cursor = c_q.cursor + 1'b1;
              state_d = StIdle;
            end else if (((begins || is_rd_atomic(m.operation)) && !may_start) || !psns_allow) begin
              blocked = 1'b1;
              state_d = StIdle;
            end else begin
              emit = 1'b1;
              r.message = c_q.cursor[MW-1:0];
              r.destination = c_q.remote_qpn;
              r.psn = c_q.sent_psn;
              r.offset = {8'd0, index} << c_q.mtu_shift;
              r.address = m.remote_address;
              r.rkey = m.rkey;
              r.length = m.length;
              r.ack_request = 1'b1;
              c_d.sent_psn = c_q.sent_psn + 24'd1;
              c_d.cursor = c_q.cursor + 1'b1;
              case (m.operation)
                qp_pkg::MessageRead: begin
                  // One READ request asks for all missing packets of the response.
                  r.opcode = roce_pkg::OpReadRequest;
                  r.address = m.remote_address + {32'd0, r.offset};
                  r.length = m.length - r.offset;
                  c_d.sent_psn = message_end;
                end
                qp_pkg::MessageFetchAdd: r.opcode = roce_pkg::OpFetchAdd;
                qp_pkg::MessageCompareSwap: r.opcode = roce_pkg::OpCompareSwap;
                default: begin
                  r.bytes = ends ? m.length[12:0] - r.offset[12:0] : mtu;
                  // A long message requests an ACK every 256 packets, and at its end.
                  r.ack_request = ends || index[7:0] == 8'hff;
                  r.solicited = ends && m.solicited &&
                      (m.operation == qp_pkg::MessageSend || m.has_immediate);
                  r.opcode = m.operation == qp_pkg::MessageSend ? roce_pkg::OpSendMiddle : roce_pkg::OpWriteMiddle;
                  if (begins && !ends) r.opcode = r.opcode - 8'd1;
                  if (!begins && ends) r.opcode = r.opcode + 8'd1 + {7'd0, m.has_immediate};
                  if (begins && ends) r.opcode = r.opcode + 8'd3 + {7'd0, m.has_immediate};
                  if (!ends) c_d.cursor = c_q.cursor;
                end
              endcase
              r.end_psn = c_d.sent_psn;
              r.immediate = m.immediate;
              r.swap_add = operands[127:64];
              r.compare = operands[63:0];
              if (is_rd_atomic(m.operation)) begin
                c_d.outstanding = c_q.outstanding + 5'd1;
                if (c_q.cursor == c_q.una) c_d.asked_psn = c_q.sent_psn;
              end
              if (qp_pkg::precedes(c_q.unsent_psn, c_d.sent_psn)) c_d.unsent_psn = c_d.sent_psn;
              c_d.ahead = c_q.ahead + 6'd1;
              if (record_ready_i) state_d = StIdle;
              else c_d = c_q;
            end
          end
        endcase
      end

      StWalk: begin
        if (passes) begin
          state_d = StWalk;
        end else if (c_q.una != c_q.tail && !is_rd_atomic(m.operation) && qp_pkg::precedes(c_q.una_psn, upto_q)) begin
          moved_d = 1'b1;
          answered = !qp_pkg::precedes(upto_q, message_end);
          advance = 1'b1;
          c_d.una_psn = answered ? message_end : upto_q;
          // Done when the message is answered only in part, or is the last answered one.
          if (!answered || upto_q == message_end) state_d = StAct;
        end else begin
          state_d = StAct;
        end
        message_read = 1'b1;
        if (passes || answered) message_index = c_q.una[MW-1:0] + 1'b1;
      end

      StAct: begin
        message_read = 1'b1;
        if (passes) begin
          message_index = c_q.una[MW-1:0] + 1'b1;
        end else if (!misfit && !is_ack && !walked_q && !is_rd_atomic(m.operation) &&
                     class_of == qp_pkg::ClassAck) begin
          // A response acknowledges everything before its READ or atomic.
          walked_d = 1'b1;
          upto_d = response_i.psn;
          state_d = StWalk;
        end else begin
          emit = 1'b1;
          if (moved_q) begin
            c_d.retries = c_q.retry_count;
            c_d.rnr_retries = c_q.rnr_retry;
            c_d.gap_known = 1'b0;
          end
          if (misfit) begin
            fail = 1'b1;
          end else if (is_ack) begin
            case (class_of)
              qp_pkg::ClassAck: begin
                // An ACK beyond an unanswered READ or atomic: the response was lost.
                lost = !qp_pkg::precedes(response_i.psn, c_q.una_psn);
              end
              qp_pkg::ClassRnrNak: begin
                r.outcome = qp_pkg::OutcomeRnr;
                if (c_q.rnr_waiting) begin
                  r.outcome = qp_pkg::OutcomeDuplicate;
                end else if (c_d.rnr_retries == '0) begin
                  fail = 1'b1;
                  fail_status = qp_pkg::StatusRnrRetryExceeded;
                end else begin
                  if (c_q.rnr_retry != 3'd7) c_d.rnr_retries = c_d.rnr_retries - 3'd1;
                  c_d.rnr_waiting = 1'b1;
                  rnr_set_d = 1'b1;
                  r.rewound = 1'b1;
                end
              end
              qp_pkg::ClassNak: begin
                r.outcome = qp_pkg::OutcomeSequenceError;
                // All PSNs before the NAK count as answered, so the answer of a READ or an atomic was lost.
                if (c_q.una_psn != response_i.psn) lost = 1'b1;
                else if (response_i.syndrome == qp_pkg::SyndromeSequenceError) begin
                  if (c_q.rnr_waiting) begin
                    // The NAK is for packets sent before the RNR NAK, which will be retransmitted anyway.
                    r.outcome = qp_pkg::OutcomeDuplicate;
                  end else if (c_d.retries == '0) begin
                    fail = 1'b1;
                    fail_status = qp_pkg::StatusTransportRetryExceeded;
                  end else begin
                    go_back = 1'b1;
                  end
                end else begin
                  fail = 1'b1;
                  case (response_i.syndrome)
                    qp_pkg::SyndromeInvalidRequest: fail_status = qp_pkg::StatusRemoteInvalidRequestError;
                    qp_pkg::SyndromeRemoteAccessError: fail_status = qp_pkg::StatusRemoteAccessError;
                    qp_pkg::SyndromeRemoteOperationError: fail_status = qp_pkg::StatusRemoteOperationError;
                    default: fail_status = qp_pkg::StatusBadResponseError;
                  endcase
                end
              end
              default: fail = 1'b1;
            endcase
          end else if (class_of != qp_pkg::ClassAck || !is_rd_atomic(m.operation)) begin
            fail = 1'b1;
          end else if (response_i.psn != c_q.una_psn) begin
            lost = 1'b1;
          end else if ((m.operation == qp_pkg::MessageRead) != (row_operation == roce_pkg::OperationReadResponse)) begin
            fail = 1'b1;
          end else if (m.operation == qp_pkg::MessageRead &&
                       (row_ends != (c_q.una_psn + 24'd1 == message_end) ||
                        {16'd0, response_i.bytes} != (left < {19'd0, mtu} ? left : {19'd0, mtu}) ||
                        (row_begins ? c_q.una_psn != c_q.asked_psn : !c_q.partial))) begin
            // A response starts where a request starts; between requests, the rest of an earlier response may arrive.
            fail = 1'b1;
          end else begin
            moved_d = 1'b1;
            advance = 1'b1;
            answered = c_q.una_psn + 24'd1 == message_end;
            c_d.una_psn = c_q.una_psn + 24'd1;
            c_d.retries = c_q.retry_count;
            c_d.rnr_retries = c_q.rnr_retry;
            c_d.gap_known = 1'b0;
            r.offset = {8'd0, c_q.una_psn - m.first} << c_q.mtu_shift;
            r.place = m.operation != qp_pkg::MessageRead || response_i.bytes != '0;
            if (r.place) begin
              progress_write = 1'b1;
              progress_new.placing = p.placing + 12'd1;
              c_d.placing = c_q.placing + 12'd1;
            end
          end
          if (lost) begin
            r.outcome = qp_pkg::OutcomeImpliedSequenceError;
            if (c_d.gap_known) begin
              r.outcome = qp_pkg::OutcomeDropped;
            end else if (c_d.retries == '0) begin
              fail = 1'b1;
              fail_status = qp_pkg::StatusTransportRetryExceeded;
            end else begin
              go_back = 1'b1;
            end
            c_d.gap_known = 1'b1;
          end
          state_d = StSettle;
          restart_d = r.outcome == qp_pkg::OutcomeProgress || r.rewound || go_back;
        end
      end

      StSettle: begin
        message_read = 1'b1;
        message_index = c_q.head[MW-1:0];
        state_d = StRetire;
      end

      StRetire: begin
        state_d = StTimer;
        if (c_q.life == Active && c_q.head != c_q.tail && p.placing == '0 && (!c_q.draining || head_begun)) begin
          if (p.status != qp_pkg::StatusSuccess || c_q.head != c_q.una || m.packets == '0 || head_starved) begin
            emit = 1'b1;
            r.op = qp_pkg::SendOpComplete;
            r.message = c_q.head[MW-1:0];
            r.status = p.status;
            if (p.status == qp_pkg::StatusSuccess && head_starved) r.status = qp_pkg::StatusLocalQpOperationError;
            if (record_ready_i) begin
              c_d.head = c_q.head + 1'b1;
              if (c_q.una == c_q.head) c_d.una = c_d.head;
              if (c_q.cursor == c_q.head) c_d.cursor = c_d.head;
              if (r.status != qp_pkg::StatusSuccess) begin
                c_d.life = Failed;
                state_d = StFlush;
              end else begin
                message_read = 1'b1;
                message_index = c_d.head[MW-1:0];
                state_d = StRetire;
              end
            end else begin
              state_d = StRetire;
            end
          end
        end
        if (state_d == StTimer && c_q.life == Active && c_q.draining && !c_q.drain_told) state_d = StDrained;
      end

      StFlush: begin
        if (c_q.head == c_q.tail) begin
          c_d.una = c_q.tail;
          c_d.cursor = c_q.tail;
          c_d.una_psn = c_q.next_psn;
          c_d.partial = 1'b0;
          c_d.placing = '0;
          c_d.rnr_waiting = 1'b0;
          rnr_cancel_d = 1'b1;
          state_d = StTimer;
        end else begin
          emit = 1'b1;
          r.op = qp_pkg::SendOpComplete;
          r.message = c_q.head[MW-1:0];
          r.status = qp_pkg::StatusFlushedError;
          if (record_ready_i) c_d.head = c_q.head + 1'b1;
        end
      end

      StDrained: begin
        state_d = StTimer;
        if (drained) begin
          emit = 1'b1;
          r.op = qp_pkg::SendOpDrained;
          if (record_ready_i) c_d.drain_told = 1'b1;
          else state_d = StDrained;
        end
      end

      StTimer: ;  // handled below
      default: state_d = StIdle;
    endcase

    // --- Advance the window over answered PSNs.
    if (passes) begin
      c_d.una = c_q.una + 1'b1;
      if (c_q.cursor == c_q.una) c_d.cursor = c_d.una;
    end
    if (advance) begin
      c_d.partial = !answered;
      if (answered) begin
        c_d.una = c_q.una + 1'b1;
        c_d.asked_psn = c_d.una_psn;
        if (c_q.cursor == c_q.una) c_d.cursor = c_d.una;
        else if (is_rd_atomic(m.operation)) c_d.outstanding = c_q.outstanding - 5'd1;
      end
      // Skip retransmission of packets whose answer was only late.
      if (qp_pkg::precedes(c_q.sent_psn, c_d.una_psn)) c_d.sent_psn = c_d.una_psn;
    end
    if (go_back) begin
      c_d.retries = c_d.retries - 3'd1;
      r.rewound = 1'b1;
    end
    if (r.rewound) begin
      c_d.cursor = c_q.una;
      c_d.sent_psn = c_q.una_psn;
      c_d.left_psn = c_q.una_psn;
      c_d.outstanding = '0;
    end
    if (fail) begin
      r.outcome = qp_pkg::OutcomeFailed;
      progress_write = c_q.una != c_q.tail;
      progress_new.status = fail_status;
    end
    progress_place = progress_index - c_q.head[MW-1:0];
    if (progress_write && progress_new.status != qp_pkg::StatusSuccess &&
        {1'b0, progress_place} < c_d.tail - c_q.head && (!c_q.failing || progress_place < fail_place)) begin
      c_d.failing = 1'b1;
      c_d.fail_at = progress_index;
    end
    if (op_q == qp_pkg::SendOpResponse && r.op == qp_pkg::SendOpResponse) begin
      r.psn = response_i.psn;
      r.end_psn = c_d.una_psn;
    end
    // A step takes effect only when its record is accepted.
    if ((state_q == StAct || (state_q == StExecute && op_q == qp_pkg::SendOpAckTimeout)) && emit &&
        !record_ready_i) begin
      c_d = c_q;
      state_d = state_q;
      moved_d = moved_q;
      rnr_set_d = rnr_set_q;
      progress_write = 1'b0;
      message_index = c_q.una[MW-1:0];
      message_read = 1'b1;
    end

    // --- End of the operation: timers, then write back the context.
    if (state_q == StTimer) begin
      if (rnr_set_q || rnr_cancel_q) begin
        if (timer_set_ready_i) begin
          rnr_set_d = 1'b0;
          rnr_cancel_d = 1'b0;
        end
      end else if (ack_timer != TimerKeep) begin
        if (timer_set_ready_i) begin
          c_d.ack_armed = ack_timer == TimerSet;
          state_d = StIdle;
        end
      end else begin
        state_d = StIdle;
      end
    end
    finish = state_q != StIdle && state_d == StIdle;
    context_write = finish;
    wants = finish && c_d.life == Active && c_d.cursor != c_d.tail && !c_d.rnr_waiting &&
        c_d.ahead < qp_pkg::MaxAhead && !blocked;

    control_ready_o = finish && op_q == qp_pkg::SendOpControl;
    event_ready_o = finish && op_q == qp_pkg::SendOpEvent;
    response_ready_o = finish && op_q == qp_pkg::SendOpResponse;
    post_ready_o = finish && op_q == qp_pkg::SendOpPost;
    grant_ready = finish && op_q == qp_pkg::SendOpPacket;
    // Accepted at once, because a timer set by this operation is a new one.
    timer_ready_o = state_q == StContext && (op_q == qp_pkg::SendOpAckTimeout || op_q == qp_pkg::SendOpRnrTimeout);

    record_valid_o = emit;
    record_o = r;
    busy_o = state_q != StIdle || turns_busy;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StIdle;
    end else begin
      state_q <= state_d;
    end
  end

  always_ff @(posedge clk_i) begin
    op_q <= op_d;
    slot_q <= slot_d;
    c_q <= c_d;
    upto_q <= upto_d;
    moved_q <= moved_d;
    restart_q <= restart_d;
    rnr_set_q <= rnr_set_d;
    rnr_cancel_q <= rnr_cancel_d;
    walked_q <= walked_d;
  end

endmodule
