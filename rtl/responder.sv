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

  typedef struct packed {
    logic        alive;
    logic        dropping;         // a fatal NAK was decided: later requests are dropped
    logic [23:0] remote_qpn;
    logic [3:0]  mtu_shift;
    logic        allow_write;
    logic        allow_read;
    logic        allow_atomic;
    logic [4:0]  max_dest_rd_atomic;
    logic [4:0]  min_rnr_timer;
    logic [31:0] max_message;
    logic [23:0] expected_psn;
    logic [23:0] msn;
    logic        nak_sent;     // one NAK for each gap
    // Message being received.
    logic        in_message;
    logic        is_send;
    logic        has_receive;
    logic [63:0] address;
    logic [31:0] rkey;
    logic [31:0] length;
    logic [31:0] received;
    // Pending answers. A pointer has one bit more than an index, to distinguish full from empty.
    logic [OW:0] head;
    logic [OW:0] tail;
    logic        head_ready;   // the answer at the head may be sent
    logic [23:0] next_packet;  // index of the next packet of the READ at the head
    logic        ack_waits;
    logic [23:0] ack_psn;
    logic [23:0] ack_msn;
    logic [23:0] answered_psn; // one past the last answered PSN, not counting duplicates
    logic [5:0]  ahead;        // packets that have not left the port
    logic [4:0]  rd_pending;   // READs and atomics accepted and not fully answered
    logic [5:0]  writes;       // payloads not yet placed in memory
    logic [4:0]  atomics;      // accepted and not executed
    // Answers to be repeated, and kept results.
    logic [SW:0] replay_head;
    logic [SW:0] replay_tail;
    logic [23:0] replay_psn;   // next PSN to repeat
    logic [23:0] replay_end;   // one past the last PSN to repeat
    logic [23:0] replay_packet;
    logic [SW-1:0] saved_next;
    logic [4:0]  saved_count;
  } context_t;

  typedef enum logic [2:0] {
    PendingSilent,
    PendingAcknowledge,
    PendingNak,
    PendingRead,
    PendingAtomic
  } pending_e;

  typedef struct packed {
    pending_e       kind;
    logic [23:0] psn;
    logic [23:0] msn;
    logic [7:0]  syndrome;
    logic        fatal;
    logic        to_receive;
    logic        has_cqe;
    logic [63:0] address;
    logic [31:0] rkey;
    logic [31:0] length;
  } pending_t;

  typedef struct packed {
    logic        placed;
    logic [1:0]  result;    // qp_pkg::result_e
    logic [63:0] original;  // value in memory before the atomic
  } done_t;

  typedef struct packed {
    logic        is_atomic;
    logic [23:0] psn;
    logic [63:0] address;  // for an atomic: the original value
    logic [31:0] rkey;
    logic [31:0] length;
  } replay_t;

  typedef struct packed {
    logic        done;
    logic [63:0] original;
  } result_t;

  typedef enum logic [2:0] {
    StIdle,
    StContext,
    StExecute,
    StSearch,  // search the saved atomics for a duplicate
    StSettle,  // read the oldest pending answer
    StAnswer     // report or send it, if ready
  } state_e;

  state_e state_q, state_d;
  qp_pkg::answer_op_e op_q, op_d;
  logic [qp_pkg::SlotWidth-1:0] slot_q, slot_d;
  context_t c_q, c_d;
  logic [SW:0] searched_q, searched_d;
  logic forward_q, forward_d;  // the head's result arrived with this event

  // --- Memories.
  logic context_read, context_write, pending_read, pending_write, done_write, replay_read, replay_write;
  logic saved_read, saved_write, result_write;
  logic [qp_pkg::SlotWidth-1:0] context_index;
  logic [OW-1:0] pending_index, pending_write_index, done_index;
  logic [SW-1:0] saved_index, result_index;
  context_t context_data;
  pending_t pending, pending_new;
  done_t done, done_new;
  replay_t replay, replay_new;
  logic [23:0] saved_psn;
  result_t result, result_new;

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
      .Width($bits(pending_new)),
      .Depth(2 ** (qp_pkg::SlotWidth + OW))
  ) pending_answers (
      .clk_i,
      .read_i(pending_read),
      .read_index_i({slot_q, pending_index}),
      .read_data_o(pending),
      .write_i(pending_write),
      .write_index_i({slot_q, pending_write_index}),
      .write_data_i(pending_new)
  );
  ram_1r1w #(
      .Width($bits(done_new)),
      .Depth(2 ** (qp_pkg::SlotWidth + OW))
  ) placements (
      .clk_i,
      .read_i(pending_read),
      .read_index_i({slot_q, pending_index}),
      .read_data_o(done),
      .write_i(done_write),
      .write_index_i({slot_q, done_index}),
      .write_data_i(done_new)
  );
  ram_1r1w #(
      .Width($bits(replay_new)),
      .Depth(2 ** (qp_pkg::SlotWidth + SW))
  ) replays (
      .clk_i,
      .read_i(replay_read),
      .read_index_i({slot_q, c_d.replay_head[SW-1:0]}),
      .read_data_o(replay),
      .write_i(replay_write),
      .write_index_i({slot_q, c_d.replay_tail[SW-1:0] - 1'b1}),
      .write_data_i(replay_new)
  );
  // Atomics whose results are kept: PSNs and original values.
  ram_1r1w #(
      .Width(24),
      .Depth(2 ** (qp_pkg::SlotWidth + SW))
  ) saved_psns (
      .clk_i,
      .read_i(saved_read),
      .read_index_i({slot_q, saved_index}),
      .read_data_o(saved_psn),
      .write_i(saved_write),
      .write_index_i({slot_q, c_q.saved_next}),
      .write_data_i(request_i.psn)
  );
  ram_1r1w #(
      .Width($bits(result_new)),
      .Depth(2 ** (qp_pkg::SlotWidth + SW))
  ) saved_results (
      .clk_i,
      .read_i(saved_read),
      .read_index_i({slot_q, saved_index}),
      .read_data_o(result),
      .write_i(result_write),
      .write_index_i({slot_q, result_index}),
      .write_data_i(result_new)
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

  logic known;
  roce_pkg::operation_e operation;
  roce_pkg::position_e position;
  roce_pkg::payload_e payload;
  logic [roce_pkg::HeaderWidth-1:0] headers;
  opcode_decoder decoder (
      .opcode_i(request_i.opcode),
      .known_o(known),
      .operation_o(operation),
      .position_o(position),
      .payload_o(payload),
      .headers_o(headers)
  );

  // Number of packets of a READ response, minus one.
  function automatic logic [23:0] further_packets(input logic [31:0] length, input logic [3:0] mtu_shift);
    logic [31:0] further;
    further = (length - 32'd1) >> mtu_shift;
    further_packets = length == '0 ? '0 : further[23:0];
  endfunction

  logic [12:0] mtu;
  logic begins, ends, is_send, is_write, is_read, is_atomic, has_reth, has_immediate, response, takes_receive;
  logic granted, misfit, full, wrong_sequence, over_long;
  logic [31:0] before_bytes, named_length;
  logic [32:0] total;
  logic [23:0] ahead_by, behind, further, replay_further;
  logic accept, push, invalid, replay_ends, read_ends, repeated;
  logic [1:0] head_result;
  logic emit;
  qp_pkg::answer_record_t r;

  always_comb begin
    // --- Derived from the request.
    mtu = 13'd1 << c_q.mtu_shift;
    begins = position == roce_pkg::PositionFirst || position == roce_pkg::PositionOnly;
    ends = position == roce_pkg::PositionLast || position == roce_pkg::PositionOnly;
    is_send = operation == roce_pkg::OperationSend;
    is_write = operation == roce_pkg::OperationWrite;
    is_read = operation == roce_pkg::OperationRead;
    is_atomic = operation == roce_pkg::OperationAtomic;
    response = !is_send && !is_write && !is_read && !is_atomic;
    has_reth = (headers & roce_pkg::HeaderReth) != '0;
    has_immediate = (headers & roce_pkg::HeaderImmediate) != '0;
    takes_receive = is_send ? begins : is_write && has_immediate;
    granted = is_write ? c_q.allow_write : is_read ? c_q.allow_read : !is_atomic || c_q.allow_atomic;
    wrong_sequence = begins ? c_q.in_message : !c_q.in_message || c_q.is_send != is_send;
    misfit = !roce_pkg::payload_fits(payload, request_i.bytes, {3'd0, mtu});
    before_bytes = begins ? '0 : c_q.received;
    total = {1'b0, before_bytes} + {17'd0, request_i.bytes};
    named_length = has_reth ? request_i.length : c_q.length;
    over_long = total > {1'b0, c_q.max_message};
    ahead_by = request_i.psn - c_q.expected_psn;  // at least 2^23: a duplicate
    behind = c_q.expected_psn - request_i.psn;
    further = further_packets(request_i.length, c_q.mtu_shift);
    full = c_q.head[OW-1:0] == c_q.tail[OW-1:0] && c_q.head[OW] != c_q.tail[OW];

    // --- Derived from the answer whose turn it is.
    read_ends = c_q.next_packet == further_packets(pending.length, c_q.mtu_shift);
    head_result = forward_q ? event_i.result : done.result;
    replay_further = further_packets(replay.length, c_q.mtu_shift);
    replay_ends = replay.is_atomic || c_q.replay_packet == replay_further;

    // --- Defaults of the record.
    r = '0;
    r.slot = slot_q;
    r.op = op_q;
    r.verdict = qp_pkg::VerdictDrop;
    r.destination = c_q.remote_qpn;
    r.msn = c_q.msn;
    r.pending = c_q.tail[OW-1:0];
    r.saved = c_q.saved_next;
    if (op_q == qp_pkg::AnswerOpRequest) begin
      r.opcode = request_i.opcode;
      r.psn = request_i.psn;
      r.address = request_i.address;
      r.rkey = request_i.rkey;
      r.length = is_atomic ? 32'd8 : request_i.length;
    end
    emit = 1'b0;

    state_d = state_q;
    op_d = op_q;
    slot_d = slot_q;
    c_d = c_q;
    searched_d = searched_q;
    forward_d = forward_q;
    context_read = 1'b0;
    context_index = slot_d;
    pending_read = 1'b0;
    pending_index = c_q.head[OW-1:0];
    pending_write = 1'b0;
    pending_write_index = c_q.tail[OW-1:0];
    pending_new = '0;
    pending_new.kind = PendingSilent;
    pending_new.psn = request_i.psn;
    pending_new.syndrome = qp_pkg::SyndromeAck;
    pending_new.address = request_i.address;
    pending_new.rkey = request_i.rkey;
    pending_new.length = request_i.length;
    done_write = 1'b0;
    done_index = c_q.tail[OW-1:0];
    done_new = '0;
    done_new.placed = 1'b1;
    replay_read = 1'b0;
    replay_write = 1'b0;
    replay_new = '0;
    replay_new.is_atomic = is_atomic;
    replay_new.psn = request_i.psn;
    replay_new.address = request_i.address;
    replay_new.rkey = request_i.rkey;
    replay_new.length = request_i.length;
    saved_read = 1'b0;
    saved_index = c_q.saved_next - 1'b1 - searched_q[SW-1:0];
    saved_write = 1'b0;
    result_write = 1'b0;
    result_index = event_i.saved;
    result_new = '0;
    accept = 1'b0;
    push = 1'b0;
    invalid = 1'b0;
    repeated = 1'b0;

    case (state_q)
      StIdle: begin
        searched_d = '0;
        forward_d = 1'b0;
        context_read = 1'b1;
        state_d = StContext;
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
          context_read = 1'b0;
          state_d = StIdle;
        end
        context_index = slot_d;
      end

      StContext: begin
        c_d = context_data;
        pending_read = 1'b1;
        pending_index = context_data.head[OW-1:0];
        replay_read = 1'b1;
        state_d = StExecute;
      end

      StExecute: begin
        case (op_q)
          qp_pkg::AnswerOpControl: begin
            emit = 1'b1;
            r.psn = c_q.expected_psn;
            r.idle = c_q.head == c_q.tail && !c_q.ack_waits && c_q.replay_head == c_q.replay_tail && c_q.ahead == '0;
            state_d = StIdle;
            case (control_i.kind)
              qp_pkg::ControlReset: c_d = '0;
              qp_pkg::ControlStart, qp_pkg::ControlUpdate: begin
                c_d.remote_qpn = control_i.remote_qpn;
                c_d.mtu_shift = {1'b0, control_i.mtu} + 4'd7;
                c_d.allow_write = control_i.allow_write;
                c_d.allow_read = control_i.allow_read;
                c_d.allow_atomic = control_i.allow_atomic;
                c_d.max_dest_rd_atomic = control_i.max_dest_rd_atomic;
                // Results beyond the old limit were not kept.
                if (c_q.saved_count > c_q.max_dest_rd_atomic) c_d.saved_count = c_q.max_dest_rd_atomic;
                c_d.min_rnr_timer = control_i.min_rnr_timer;
                c_d.max_message = control_i.max_message;
                if (control_i.kind == qp_pkg::ControlStart) begin
                  c_d.alive = 1'b1;
                  c_d.expected_psn = control_i.psn;
                  c_d.answered_psn = control_i.psn;
                end
              end
              qp_pkg::ControlError: begin
                c_d.alive = 1'b0;
                c_d.head = '0;
                c_d.tail = '0;
                c_d.head_ready = 1'b0;
                c_d.ack_waits = 1'b0;
                c_d.replay_head = '0;
                c_d.replay_tail = '0;
              end
              default: ;  // query
            endcase
          end

          qp_pkg::AnswerOpEvent: begin
            emit = 1'b1;
            r.pending = event_i.pending;
            state_d = StIdle;
            case (event_i.kind)
              qp_pkg::AnswerLeft: c_d.ahead = c_q.ahead - event_i.count;
              qp_pkg::AnswerFailed: begin
                // Sends a NAK of its own, instead of the packet whose data could not be read.
                r.op = qp_pkg::AnswerOpPacket;
                r.opcode = roce_pkg::OpAcknowledge;
                r.psn = event_i.psn;
                r.syndrome = event_i.result == qp_pkg::ResultOperation ? qp_pkg::SyndromeRemoteOperationError :
                    qp_pkg::SyndromeRemoteAccessError;
                r.fatal = 1'b1;
                r.in_place = 1'b1;
                c_d.ahead = c_q.ahead + 6'd1;
                c_d.dropping = 1'b1;
              end
              default: begin
                done_write = 1'b1;
                done_index = event_i.pending;
                done_new.result = event_i.result;
                done_new.original = event_i.original;
                if (event_i.kind == qp_pkg::AnswerPlaced) begin
                  c_d.writes = c_q.writes - 6'd1;
                end else begin
                  c_d.atomics = c_q.atomics - 5'd1;
                  result_write = event_i.result == qp_pkg::ResultOk;
                  result_new.done = 1'b1;
                  result_new.original = event_i.original;
                end
                // The event is mostly for the head, whose entry is already read.
                forward_d = event_i.pending == c_q.head[OW-1:0];
                state_d = forward_d ? StAnswer : StSettle;
              end
            endcase
          end

          qp_pkg::AnswerOpRequest: begin
            emit = 1'b1;
            state_d = StIdle;
            if (!c_q.alive || c_q.dropping) begin
              // Dropped: the queue pair is in error.
            end else if (ahead_by[23]) begin
              // --- A duplicate.
              r.duplicate = 1'b1;
              if (!known || response) begin
                // Dropped.
              end else if (full) begin
                r.verdict = qp_pkg::VerdictBusy;
              end else if (is_read) begin
                // Repeat only a READ whose PSNs were all accepted before, and that is not pending anyway.
                if (behind > further && !behind[23] && further < 24'h7fffff && c_q.allow_read &&
                    qp_pkg::precedes(request_i.psn, c_q.answered_psn)) begin
                  if (request_i.length != '0 && !request_i.access_known) r.verdict = qp_pkg::VerdictWantAccess;
                  else if (request_i.length == '0 || request_i.access_granted) repeated = 1'b1;
                end
                if (repeated) r.verdict = qp_pkg::VerdictRead;
              end else if (is_atomic) begin
                emit = 1'b0;
                saved_read = 1'b1;
                state_d = StSearch;
              end else begin
                r.verdict = qp_pkg::VerdictAcknowledge;
                push = 1'b1;
                pending_new.kind = PendingAcknowledge;
                pending_new.psn = c_q.expected_psn - 24'd1;
              end
            end else if (ahead_by != '0) begin
              // --- PSN ahead: a packet was lost.
              if (!c_q.nak_sent) begin
                if (full) begin
                  r.verdict = qp_pkg::VerdictBusy;
                end else begin
                  r.verdict = qp_pkg::VerdictReject;
                  r.syndrome = qp_pkg::SyndromeSequenceError;
                  r.psn = c_q.expected_psn;
                  c_d.nak_sent = 1'b1;
                end
              end
            end else if (known && response) begin
              // Dropped.
            end else if (full) begin
              r.verdict = qp_pkg::VerdictBusy;
            end else if (!known || wrong_sequence) begin
              invalid = 1'b1;
            end else if (begins && !granted) begin
              r.verdict = qp_pkg::VerdictReject;
              r.syndrome = qp_pkg::SyndromeRemoteAccessError;
              r.fatal = 1'b1;
              r.access_event = 1'b1;
            end else if ((is_read || is_atomic) && c_q.rd_pending >= c_q.max_dest_rd_atomic) begin
              invalid = 1'b1;
            end else if (takes_receive && !request_i.receive_known) begin
              r.verdict = qp_pkg::VerdictWantReceive;
            end else if (takes_receive && !request_i.receive_available) begin
              r.verdict = qp_pkg::VerdictReject;
              r.syndrome = {1'b0, qp_pkg::ClassRnrNak, c_q.min_rnr_timer};
              c_d.nak_sent = 1'b1;  // what follows in flight is dropped silently
            end else if (misfit || over_long) begin
              invalid = 1'b1;
            end else if (is_atomic && request_i.address[2:0] != '0) begin
              invalid = 1'b1;
            end else if (is_send && total > request_i.receive_bytes) begin
              invalid = 1'b1;
              r.receive_status = qp_pkg::StatusLocalLengthError;
              r.begins_receive = takes_receive;
            end else if ((is_write || is_read) && named_length > c_q.max_message) begin
              invalid = 1'b1;
            end else if (is_write && (ends ? total != {1'b0, named_length} : total >= {1'b0, named_length})) begin
              invalid = 1'b1;
            end else if ((is_atomic || (has_reth && request_i.length != '0)) && !request_i.access_known) begin
              r.verdict = qp_pkg::VerdictWantAccess;
            end else if ((is_atomic || (has_reth && request_i.length != '0)) && !request_i.access_granted) begin
              r.verdict = qp_pkg::VerdictReject;
              r.syndrome = qp_pkg::SyndromeRemoteAccessError;
              r.fatal = 1'b1;
              // For a WRITE with immediate, the completion of its receive WQE reports the error.
              r.access_event = !takes_receive;
              r.begins_receive = takes_receive;
              if (takes_receive) r.receive_status = qp_pkg::StatusLocalAccessError;
            end else if (is_atomic ? c_q.writes != '0 : c_q.atomics != '0 && request_i.bytes != '0) begin
              // An atomic waits for earlier writes, and later requests with payload wait for the atomic.
              r.verdict = qp_pkg::VerdictBusy;
            end else begin
              accept = 1'b1;
            end
            if (invalid) begin
              r.verdict = qp_pkg::VerdictReject;
              r.syndrome = qp_pkg::SyndromeInvalidRequest;
              r.fatal = 1'b1;
              r.request_event = r.receive_status == qp_pkg::StatusSuccess;
            end
            if (r.verdict == qp_pkg::VerdictReject) begin
              push = 1'b1;
              pending_new.kind = PendingNak;
              pending_new.psn = r.psn;
              pending_new.syndrome = r.syndrome;
              pending_new.fatal = r.fatal;
              pending_new.has_cqe = r.receive_status != qp_pkg::StatusSuccess;
              c_d.dropping = r.fatal;
            end
            if (accept) begin
              push = 1'b1;
              c_d.nak_sent = 1'b0;
              c_d.expected_psn = c_q.expected_psn + 24'd1;
              if (is_read) begin
                r.verdict = qp_pkg::VerdictRead;
                pending_new.kind = PendingRead;
                c_d.expected_psn = c_q.expected_psn + further + 24'd1;
                c_d.rd_pending = c_q.rd_pending + 5'd1;
              end else if (is_atomic) begin
                r.verdict = qp_pkg::VerdictAtomic;
                pending_new.kind = PendingAtomic;
                done_new.placed = 1'b0;
                saved_write = 1'b1;
                result_write = 1'b1;
                result_index = c_q.saved_next;
                c_d.saved_next = c_q.saved_next + 1'b1;
                if (!c_q.saved_count[SW]) c_d.saved_count = c_q.saved_count + 5'd1;
                c_d.rd_pending = c_q.rd_pending + 5'd1;
                c_d.atomics = c_q.atomics + 5'd1;
              end else begin
                r.verdict = qp_pkg::VerdictPlace;
                r.to_receive = is_send;
                r.begins_receive = takes_receive;
                r.completes = ends;
                r.completes_receive = ends && (takes_receive || (!begins && c_q.has_receive));
                r.offset = before_bytes;
                r.message_bytes = total[31:0];
                if (!begins) begin
                  r.address = c_q.address;
                  r.rkey = c_q.rkey;
                end
                r.address = r.address + {32'd0, before_bytes};
                r.length = {16'd0, request_i.bytes};
                if (request_i.ack_request) pending_new.kind = PendingAcknowledge;
                pending_new.to_receive = is_send;
                pending_new.has_cqe = r.completes_receive;
                done_new.placed = request_i.bytes == '0;
                if (request_i.bytes != '0) c_d.writes = c_q.writes + 6'd1;
                c_d.in_message = !ends;
                c_d.received = total[31:0];
                if (begins) begin
                  c_d.is_send = is_send;
                  c_d.has_receive = takes_receive;
                  c_d.address = request_i.address;
                  c_d.rkey = request_i.rkey;
                  c_d.length = request_i.length;
                end
              end
              if (ends) c_d.msn = c_q.msn + 24'd1;
              r.msn = c_d.msn;
            end
          end

          default: begin  // send an answer, if one may be sent
            state_d = StIdle;
            r.syndrome = qp_pkg::SyndromeAck;
            r.opcode = roce_pkg::OpAcknowledge;
            if (c_q.ahead >= qp_pkg::MaxAhead) begin
              // Tried again when packets have left.
            end else if (c_q.replay_head != c_q.replay_tail) begin
              emit = 1'b1;
              r.duplicate = 1'b1;
              r.psn = replay.psn + c_q.replay_packet;
              r.original = replay.address;
              r.address = replay.address + ({40'd0, c_q.replay_packet} << c_q.mtu_shift);
              r.rkey = replay.rkey;
              r.length = replay_ends ? replay.length - ({8'd0, c_q.replay_packet} << c_q.mtu_shift) : {19'd0, mtu};
              if (replay.is_atomic) r.opcode = roce_pkg::OpAtomicAcknowledge;
              else r.opcode = roce_pkg::read_response(c_q.replay_packet == '0, replay_ends);
              c_d.replay_packet = replay_ends ? '0 : c_q.replay_packet + 24'd1;
              if (replay_ends) c_d.replay_head = c_q.replay_head + 1'b1;
              c_d.replay_psn = r.psn + 24'd1;
            end else if (c_q.ack_waits) begin
              emit = 1'b1;
              r.psn = c_q.ack_psn;
              r.msn = c_q.ack_msn;
              c_d.ack_waits = 1'b0;
              c_d.answered_psn = r.psn + 24'd1;
            end else if (c_q.head_ready) begin
              emit = 1'b1;
              r.psn = pending.psn + c_q.next_packet;
              r.msn = pending.msn;
              r.syndrome = pending.syndrome;
              r.fatal = pending.fatal;
              r.original = done.original;
              r.address = pending.address + ({40'd0, c_q.next_packet} << c_q.mtu_shift);
              r.rkey = pending.rkey;
              r.length = read_ends ? pending.length - ({8'd0, c_q.next_packet} << c_q.mtu_shift) : {19'd0, mtu};
              c_d.answered_psn = r.psn + 24'd1;
              if (pending.kind == PendingNak) c_d.answered_psn = pending.psn;
              if (pending.kind == PendingRead) r.opcode = roce_pkg::read_response(c_q.next_packet == '0, read_ends);
              if (pending.kind == PendingAtomic) r.opcode = roce_pkg::OpAtomicAcknowledge;
              if (pending.kind == PendingRead && !read_ends) begin
                c_d.next_packet = c_q.next_packet + 24'd1;
              end else begin
                c_d.next_packet = '0;
                c_d.head = c_q.head + 1'b1;
                c_d.head_ready = 1'b0;
                if (pending.kind != PendingNak) c_d.rd_pending = c_q.rd_pending - 5'd1;
                state_d = StSettle;
              end
            end
            if (emit) c_d.ahead = c_q.ahead + 6'd1;
          end
        endcase
      end

      StSearch: begin
        // The result of the saved atomic searched_q places back is valid, except in the first cycle.
        saved_read = 1'b1;
        searched_d = searched_q + 1'b1;
        saved_index = c_q.saved_next - 1'b1 - searched_d[SW-1:0];
        r.duplicate = 1'b1;
        replay_new.address = result.original;
        if (searched_q >= c_q.saved_count || searched_q >= c_q.max_dest_rd_atomic) begin
          emit = 1'b1;
          state_d = StIdle;
        end else if (saved_psn == request_i.psn) begin
          emit = 1'b1;
          state_d = StIdle;
          if (result.done && qp_pkg::precedes(request_i.psn, c_q.answered_psn)) begin
            repeated = 1'b1;
            r.verdict = qp_pkg::VerdictReplay;
          end
        end
      end

      StSettle: begin
        pending_read = 1'b1;
        state_d = StAnswer;
      end

      StAnswer: begin
        state_d = StIdle;
        forward_d = 1'b0;
        if (c_q.head != c_q.tail && (done.placed || forward_q) && !c_q.head_ready) begin
          if (head_result != qp_pkg::ResultOk) begin
            // The head's answer becomes a NAK.
            emit = 1'b1;
            r.op = qp_pkg::AnswerOpFailed;
            r.pending = c_q.head[OW-1:0];
            r.to_receive = pending.to_receive;
            r.had_cqe = pending.has_cqe;
            r.fatal = 1'b1;
            r.access_event = !pending.to_receive && head_result == qp_pkg::ResultAccess;
            r.psn = pending.psn;
            pending_write = 1'b1;
            pending_write_index = c_q.head[OW-1:0];
            pending_new = pending;
            pending_new.kind = PendingNak;
            pending_new.has_cqe = 1'b0;
            pending_new.fatal = 1'b1;
            pending_new.syndrome = r.access_event ? qp_pkg::SyndromeRemoteAccessError :
                qp_pkg::SyndromeRemoteOperationError;
            c_d.dropping = 1'b1;
            c_d.head_ready = 1'b1;
          end else begin
            if (pending.has_cqe) begin
              emit = 1'b1;
              r.op = qp_pkg::AnswerOpComplete;
              r.pending = c_q.head[OW-1:0];
              r.psn = pending.psn;
            end
            if (pending.kind == PendingSilent || pending.kind == PendingAcknowledge) begin
              c_d.head = c_q.head + 1'b1;
              if (pending.kind == PendingAcknowledge) begin
                c_d.ack_waits = 1'b1;
                c_d.ack_psn = pending.psn;
                c_d.ack_msn = pending.msn;
              end
              pending_read = 1'b1;
              pending_index = c_d.head[OW-1:0];
              if (c_d.head != c_q.tail) state_d = StAnswer;
            end else begin
              c_d.head_ready = 1'b1;
            end
          end
        end
      end

      default: state_d = StIdle;
    endcase

    if (push) begin
      pending_new.msn = c_d.msn;
      pending_write = 1'b1;
      done_write = 1'b1;
      c_d.tail = c_q.tail + 1'b1;
      if (done_new.placed) state_d = StSettle;
    end
    // Queue a repetition, to be sent before all new answers. A PSN before the queued ones means that the requester
    // retransmits from further back, and will ask again for the rest.
    if (repeated) begin
      if (c_q.replay_head == c_q.replay_tail || qp_pkg::precedes(request_i.psn, c_q.replay_psn)) begin
        c_d.replay_head = c_q.replay_tail;
        c_d.replay_psn = request_i.psn;
        c_d.replay_packet = '0;
      end else if (qp_pkg::precedes(request_i.psn, c_q.replay_end) ||
                   c_q.replay_tail - c_q.replay_head >= c_q.max_dest_rd_atomic) begin
        repeated = 1'b0;  // already queued, or more than max_dest_rd_atomic allows
        r.verdict = qp_pkg::VerdictDrop;
      end
    end
    if (repeated) begin
      replay_write = 1'b1;
      c_d.replay_tail = c_q.replay_tail + 1'b1;
      c_d.replay_end = request_i.psn + (is_atomic ? '0 : further) + 24'd1;
    end
    // No answers after a fatal NAK: an ACK would acknowledge the refused request.
    if (emit && r.op == qp_pkg::AnswerOpPacket && r.fatal) begin
      c_d.head = c_q.tail;
      c_d.head_ready = 1'b0;
      c_d.next_packet = '0;
      c_d.ack_waits = 1'b0;
      c_d.replay_head = c_q.replay_tail;
    end
    // A step takes effect only when its record is accepted.
    if (emit && !record_ready_i) begin
      c_d = c_q;
      state_d = state_q;
      searched_d = searched_q;
      forward_d = forward_q;
      pending_read = 1'b0;
      pending_write = 1'b0;
      done_write = 1'b0;
      replay_write = 1'b0;
      saved_read = 1'b0;
      saved_write = 1'b0;
      result_write = 1'b0;
    end

    context_write = state_q != StIdle && state_d == StIdle;
    wants = context_write && c_d.ahead < qp_pkg::MaxAhead &&
        (c_d.replay_head != c_d.replay_tail || c_d.ack_waits || c_d.head_ready);
    control_ready_o = context_write && op_q == qp_pkg::AnswerOpControl;
    event_ready_o = context_write && op_q == qp_pkg::AnswerOpEvent;
    request_ready_o = context_write && op_q == qp_pkg::AnswerOpRequest;
    grant_ready = context_write && op_q == qp_pkg::AnswerOpPacket;
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
    searched_q <= searched_d;
    forward_q <= forward_d;
  end

endmodule
