// SPDX-License-Identifier: Apache-2.0
// State, inputs and outputs of the QP engine. Headers and handles only: payload never enters the engine.
package qp_pkg;

  localparam int unsigned SlotWidth = 8;     // index of a queue pair in the engine
  localparam int unsigned MessageWidth = 5;  // index of a message in the send window
  localparam int unsigned AnswerWidth = 5;     // index of a pending answer of the responder
  localparam int unsigned SavedWidth = 4;    // index of an atomic whose result is kept
  localparam int unsigned TickWidth = 36;    // ticks of 1.024 us
  localparam logic [5:0] MaxAhead = 6'd32;   // limit of packets that have not left the port, for each direction of a QP
  localparam logic [23:0] MaxPsns = 24'h800000;  // limit in flight (IBTA vol 1, 9.7.2)

  // Work completion statuses (enum ibv_wc_status).
  localparam logic [3:0] StatusSuccess = 4'd0;
  localparam logic [3:0] StatusLocalLengthError = 4'd1;
  localparam logic [3:0] StatusLocalQpOperationError = 4'd2;
  localparam logic [3:0] StatusFlushedError = 4'd5;
  localparam logic [3:0] StatusBadResponseError = 4'd7;
  localparam logic [3:0] StatusLocalAccessError = 4'd8;
  localparam logic [3:0] StatusRemoteInvalidRequestError = 4'd9;
  localparam logic [3:0] StatusRemoteAccessError = 4'd10;
  localparam logic [3:0] StatusRemoteOperationError = 4'd11;
  localparam logic [3:0] StatusTransportRetryExceeded = 4'd12;
  localparam logic [3:0] StatusRnrRetryExceeded = 4'd13;

  // AETH syndromes (IBTA vol 1, 9.7.5.2): the class in bits 6:5.
  localparam logic [1:0] ClassAck = 2'b00;
  localparam logic [1:0] ClassRnrNak = 2'b01;
  localparam logic [1:0] ClassNak = 2'b11;
  localparam logic [7:0] SyndromeAck = 8'h1f;  // no credit count
  localparam logic [7:0] SyndromeSequenceError = 8'h60;
  localparam logic [7:0] SyndromeInvalidRequest = 8'h61;
  localparam logic [7:0] SyndromeRemoteAccessError = 8'h62;
  localparam logic [7:0] SyndromeRemoteOperationError = 8'h63;

  typedef enum logic [2:0] {
    MessageNop,
    MessageSend,
    MessageWrite,
    MessageRead,
    MessageFetchAdd,
    MessageCompareSwap
  } message_e;

  // --- Commands to the send or receive side of a queue pair.
  typedef enum logic [2:0] {
    ControlReset,   // new QP: clears the whole state
    ControlStart,   // starts with PSN `psn`
    ControlUpdate,  // changes attributes
    ControlError,   // error state: flushes all messages
    ControlQuery
  } control_e;

  typedef struct packed {
    logic [SlotWidth-1:0] slot;
    control_e             kind;
    logic [23:0]          psn;
    logic [2:0]           mtu;  // enum ibv_mtu
    logic [23:0]          remote_qpn;
    logic [4:0]           max_rd_atomic;
    logic [2:0]           retry_count;
    logic [2:0]           rnr_retry;
    logic [4:0]           timeout;
    logic                 draining;
  } send_control_t;

  typedef struct packed {
    logic [SlotWidth-1:0] slot;
    control_e             kind;
    logic [23:0]          psn;
    logic [2:0]           mtu;
    logic [23:0]          remote_qpn;
    logic                 allow_write;
    logic                 allow_read;
    logic                 allow_atomic;
    logic [4:0]           max_dest_rd_atomic;
    logic [4:0]           min_rnr_timer;
    logic [31:0]          max_message;
  } answer_control_t;

  // --- Requester, inputs.
  typedef struct packed {
    logic [SlotWidth-1:0] slot;
    message_e             operation;
    logic [31:0]          length;
    logic [63:0]          remote_address;
    logic [31:0]          rkey;
    logic [63:0]          swap_add;
    logic [63:0]          compare;
    logic                 has_immediate;
    logic [31:0]          immediate;
    logic                 solicited;
    logic                 fence;
    logic [3:0]           refused;  // error status of a malformed request, for its completion; 0: well-formed
  } post_t;

  typedef struct packed {
    logic [SlotWidth-1:0] slot;
    logic [7:0]           opcode;
    logic [23:0]          psn;
    logic [7:0]           syndrome;
    logic [15:0]          bytes;  // payload length
  } response_t;

  typedef enum logic [1:0] {
    SendLeft,    // `count` packets have left the port, or were dropped
    SendFailed,  // a message's data could not be read
    SendPlaced   // a response's payload is in memory, or could not be written
  } send_event_e;

  typedef struct packed {
    logic [SlotWidth-1:0]    slot;
    send_event_e             kind;
    logic [MessageWidth-1:0] message;
    logic [3:0]              status;
    logic [5:0]              count;
    logic                    has_psn;
    logic [23:0]             psn;  // one past the PSN of the last packet that left
  } send_event_t;

  // --- Requester, outputs: one record for each action, in order. Each operation starts with a record; completions and
  // the end of a drain follow the operation that caused them.
  typedef enum logic [3:0] {
    SendOpControl,
    SendOpAckTimeout,
    SendOpRnrTimeout,
    SendOpEvent,
    SendOpResponse,
    SendOpPost,
    SendOpPacket,
    SendOpComplete,  // the oldest message completes
    SendOpDrained
  } send_op_e;

  typedef enum logic [2:0] {
    OutcomeDropped,
    OutcomeDuplicate,
    OutcomeProgress,
    OutcomeSequenceError,
    OutcomeImpliedSequenceError,
    OutcomeRnr,
    OutcomeFailed
  } outcome_e;

  typedef struct packed {
    logic [SlotWidth-1:0]    slot;
    send_op_e                op;
    logic [MessageWidth-1:0] message;
    // For responses and timeouts.
    outcome_e                outcome;
    logic                    rewound;  // packets that the shell still holds are invalid
    logic                    place;    // the response's payload belongs at `offset` of the message
    // For completions.
    logic [3:0]              status;
    // For packets; `offset` also for placements. Posts: the message's PSNs. Responses: end_psn is the oldest PSN that
    // is still unanswered.
    logic [7:0]              opcode;
    logic [23:0]             destination;
    logic [23:0]             psn;
    logic [23:0]             end_psn;
    logic                    ack_request;
    logic                    solicited;
    logic [31:0]             offset;
    logic [12:0]             bytes;
    logic [63:0]             address;
    logic [31:0]             rkey;
    logic [31:0]             length;
    logic [31:0]             immediate;
    logic [63:0]             swap_add;
    logic [63:0]             compare;
    // For an answer to a query: `psn` is the oldest unanswered PSN, `end_psn` one past the last PSN ever sent.
    logic [2:0]              retries;
    logic [2:0]              rnr_retries;
    logic                    drained;
  } send_record_t;

  // --- Responder, inputs.
  typedef struct packed {
    logic [SlotWidth-1:0] slot;
    logic [7:0]           opcode;
    logic [23:0]          psn;
    logic                 ack_request;
    logic [15:0]          bytes;          // payload length
    logic [63:0]          address;        // from RETH or AtomicETH
    logic [31:0]          rkey;
    logic [31:0]          length;
    // Resources, as far as they are known.
    logic                 receive_known;
    logic                 receive_available;
    logic [32:0]          receive_bytes;  // size of the receive WQE
    logic                 access_known;
    logic                 access_granted;
  } request_t;

  typedef enum logic [1:0] {
    AnswerLeft,    // `count` packets have left the port, or were dropped
    AnswerFailed,  // data of a READ could not be read: send a NAK instead of packet `psn`
    AnswerPlaced,  // a request's payload is in memory, or could not be written
    AnswerAtomic   // an atomic was executed, or failed
  } answer_event_e;

  typedef enum logic [1:0] {
    ResultOk,
    ResultAccess,    // the key does not grant the access
    ResultOperation  // the host's memory could not be reached
  } result_e;

  typedef struct packed {
    logic [SlotWidth-1:0]  slot;
    answer_event_e         kind;
    logic [AnswerWidth-1:0]  pending;
    logic [SavedWidth-1:0] saved;
    result_e               result;
    logic [63:0]           original;
    logic [5:0]            count;
    logic [23:0]           psn;
  } answer_event_t;

  // --- Responder, outputs: records as for the requester.
  typedef enum logic [2:0] {
    AnswerOpControl,
    AnswerOpEvent,
    AnswerOpRequest,
    AnswerOpPacket,
    AnswerOpComplete,  // the oldest message that takes a receive WQE is complete and in memory
    AnswerOpFailed     // the oldest answer became a NAK, because its payload could not be written
  } answer_op_e;

  typedef enum logic [3:0] {
    VerdictDrop,
    VerdictBusy,         // no room, or ordering forbids it now: offer again after the QP's next event
    VerdictWantReceive,
    VerdictWantAccess,
    VerdictAcknowledge,  // a duplicate
    VerdictReject,
    VerdictPlace,
    VerdictRead,
    VerdictAtomic,
    VerdictReplay
  } verdict_e;

  typedef struct packed {
    logic [SlotWidth-1:0]  slot;
    answer_op_e            op;
    // For requests.
    verdict_e              verdict;
    logic                  duplicate;
    logic                  to_receive;
    logic                  begins_receive;
    logic                  completes;
    logic                  completes_receive;
    logic [31:0]           offset;
    logic [31:0]           message_bytes;
    logic [3:0]            receive_status;
    logic                  access_event;
    logic                  request_event;
    logic [AnswerWidth-1:0]  pending;
    logic [SavedWidth-1:0] saved;
    // For a payload that could not be placed.
    logic                  had_cqe;
    // For an answer to a query: 1 if no answer is pending. `psn` is the expected PSN.
    logic                  idle;
    // For a packet: replaces a packet whose data could not be read.
    logic                  in_place;
    // For requests and packets.
    logic                  fatal;
    logic [7:0]            opcode;
    logic [23:0]           destination;
    logic [23:0]           psn;
    logic [7:0]            syndrome;
    logic [23:0]           msn;
    logic [63:0]           address;
    logic [31:0]           rkey;
    logic [31:0]           length;
    logic [63:0]           original;
  } answer_record_t;

  // --- Requester: the state of a queue pair's send side, and the effects of one step of an operation.

  typedef enum logic [1:0] {
    LifeOff,
    LifeActive,
    LifeFailed
  } life_e;

  typedef struct packed {
    life_e                   life;
    // Attributes.
    logic [23:0]             remote_qpn;
    logic [3:0]              mtu_shift;
    logic [4:0]              max_rd_atomic;
    logic [2:0]              retry_count;
    logic [2:0]              rnr_retry;
    logic [4:0]              timeout;
    logic                    draining;
    logic                    drain_told;
    // Window. A pointer has one bit more than an index, to distinguish full from empty.
    logic [MessageWidth:0]   head;
    logic [MessageWidth:0]   una;
    logic [MessageWidth:0]   cursor;
    logic [MessageWidth:0]   tail;
    logic [23:0]             next_psn;     // first PSN of the next posted message
    logic [23:0]             unsent_psn;   // one past the last PSN ever sent
    logic [23:0]             una_psn;      // oldest unanswered PSN
    logic                    partial;      // the message `una` is answered in part
    logic [23:0]             sent_psn;     // next PSN to send
    logic [23:0]             asked_psn;    // first PSN of the last request for the READ `una`
    logic [23:0]             left_psn;     // one past the last PSN that left the port since the last rewind
    logic [5:0]              ahead;        // packets that have not left the port
    logic [4:0]              outstanding;  // READs and atomics sent and not answered
    logic [11:0]             placing;      // response packets not yet placed in memory
    logic [2:0]              retries;
    logic [2:0]              rnr_retries;
    logic                    rnr_waiting;
    logic                    gap_known;    // a lost answer was requested again: later packets in flight are from before
    logic                    ack_armed;
    logic                    failing;      // a message will fail: neither this message nor later ones are sent
    logic [MessageWidth-1:0] fail_at;      // the oldest message that will fail
  } send_context_t;

  typedef struct packed {
    logic [2:0]  operation;  // message_e
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
    SendStIdle,
    SendStContext,  // context read; choose the message
    SendStExecute,  // message read
    SendStWalk,     // mark messages before PSN `upto` as answered, one after another
    SendStAct,      // handle the rest of the answer
    SendStSettle,   // read the head message
    SendStRetire,   // complete the head message
    SendStFlush,    // complete all messages in error
    SendStDrained,
    SendStTimer     // set or cancel a timer
  } send_state_e;

  // Effects of one step of an operation. A step takes a clock cycle; a step with a record takes effect when the record
  // is accepted.
  typedef struct packed {
    send_state_e             state;
    send_context_t           c;
    logic                    emit;      // the step has a record
    // Memories: the message for the next step, the posted message, and the progress of a message.
    logic                    message_read;
    logic [MessageWidth-1:0] message_index;
    logic                    message_write;
    logic                    progress_write;
    logic [MessageWidth-1:0] progress_index;
    progress_t               progress;
    // Changes of the window.
    logic                    advance;   // PSNs were newly answered
    logic                    answered;  // the message `una` is answered completely
    logic                    go_back;   // retransmit, and count a retry
    logic                    rnr_wait;  // retransmit after the RNR timer
    logic                    fail;      // the message `una` fails
    logic [3:0]              fail_status;
    // State of the operation.
    logic [23:0]             upto;      // mark messages before this PSN as answered
    logic                    moved;     // at least one PSN was newly answered
    logic                    walked;    // the messages before the answered READ or atomic are marked
    logic                    blocked;   // the packet whose turn it was may not be sent yet
    logic                    restart;   // restart the ACK timer
    logic                    rnr_set;
    logic                    rnr_cancel;
  } send_step_t;

  // Reaction to an answer, for the oldest unanswered message.
  typedef struct packed {
    logic       accepted;  // a packet of a READ response or an atomic's result, in order
    logic       lost;      // an answer before this one was lost
    logic       go_back;   // retransmit, and count a retry
    logic       rnr_wait;  // retransmit after the RNR timer
    logic       fail;
    logic [3:0] status;    // status of the failed message
  } reaction_t;

  function automatic logic is_rd_atomic(input logic [2:0] message);
    is_rd_atomic = message == qp_pkg::MessageRead || message == qp_pkg::MessageFetchAdd ||
        message == qp_pkg::MessageCompareSwap;
  endfunction

  // --- Responder: the state of a queue pair's receive side, and the effects of one step of an operation.

  typedef struct packed {
    logic                  alive;
    logic                  dropping;      // a fatal NAK was decided: later requests are dropped
    logic [23:0]           remote_qpn;
    logic [3:0]            mtu_shift;
    logic                  allow_write;
    logic                  allow_read;
    logic                  allow_atomic;
    logic [4:0]            max_dest_rd_atomic;
    logic [4:0]            min_rnr_timer;
    logic [31:0]           max_message;
    logic [23:0]           expected_psn;
    logic [23:0]           msn;
    logic                  nak_sent;      // one NAK for each gap
    // Message being received.
    logic                  in_message;
    logic                  is_send;
    logic                  has_receive;
    logic [63:0]           address;
    logic [31:0]           rkey;
    logic [31:0]           length;
    logic [31:0]           received;
    // Pending answers. A pointer has one bit more than an index, to distinguish full from empty.
    logic [AnswerWidth:0]  head;
    logic [AnswerWidth:0]  tail;
    logic                  head_ready;    // the answer at the head may be sent
    logic [23:0]           next_packet;   // index of the next packet of the READ at the head
    logic                  ack_waits;
    logic [23:0]           ack_psn;
    logic [23:0]           ack_msn;
    logic [23:0]           answered_psn;  // one past the last answered PSN, not counting duplicates
    logic [5:0]            ahead;         // packets that have not left the port
    logic [4:0]            rd_pending;    // READs and atomics accepted and not fully answered
    logic [5:0]            writes;        // payloads not yet placed in memory
    logic [4:0]            atomics;       // accepted and not executed
    // Answers to be repeated, and kept results.
    logic [SavedWidth:0]   replay_head;
    logic [SavedWidth:0]   replay_tail;
    logic [23:0]           replay_psn;    // next PSN to repeat
    logic [23:0]           replay_end;    // one past the last PSN to repeat
    logic [23:0]           replay_packet;
    logic [SavedWidth-1:0] saved_next;
    logic [4:0]            saved_count;
  } answer_context_t;

  typedef enum logic [2:0] {
    PendingSilent,
    PendingAcknowledge,
    PendingNak,
    PendingRead,
    PendingAtomic
  } pending_e;

  typedef struct packed {
    pending_e    kind;
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
    logic [1:0]  result;    // result_e
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
    AnswerStIdle,
    AnswerStContext,
    AnswerStExecute,
    AnswerStSearch,  // search the saved atomics for a duplicate
    AnswerStSettle,  // read the oldest pending answer
    AnswerStAnswer   // report it, or make it ready to be sent
  } answer_state_e;

  // Effects of one step of an operation. A step takes a clock cycle; a step with a record takes effect when the record
  // is accepted.
  typedef struct packed {
    answer_state_e          state;
    answer_context_t        c;
    logic                   emit;      // the step has a record
    // Memories: pending answers, with what is done for them; answers to be repeated; saved results of atomics.
    logic                   pending_read;
    logic [AnswerWidth-1:0] pending_index;
    logic                   pending_write;
    logic [AnswerWidth-1:0] pending_write_index;
    pending_t               pending;
    logic                   done_write;
    logic [AnswerWidth-1:0] done_index;
    done_t                  done;
    logic                   replay_write;
    replay_t                replay;
    logic                   saved_read;
    logic [SavedWidth-1:0]  saved_index;
    logic                   saved_write;
    logic                   result_write;
    logic [SavedWidth-1:0]  result_index;
    result_t                result;
    // State of the operation.
    logic                   push;      // a new pending answer
    logic                   repeats;   // repeat the answer to a duplicate
    logic [SavedWidth:0]    searched;  // saved atomics that were searched
    logic                   forward;   // the head's result arrived with this event
  } answer_step_t;

  // Request with the fields of its opcode, relative to the message being received.
  typedef struct packed {
    logic        is_send;
    logic        is_write;
    logic        is_read;
    logic        is_atomic;
    logic        begins;
    logic        ends;
    logic        takes_receive;
    logic [31:0] earlier;  // bytes of the message before this packet
    logic [32:0] total;    // with this packet
    logic [23:0] further;  // packets of a READ response, minus one
  } parsed_t;

  // Result of the checks of a request.
  typedef struct packed {
    logic       duplicate;
    logic       accepted;
    logic       repeats;         // a duplicate READ
    logic       searches;        // a duplicate atomic: search its saved result
    logic       sequence_error;
    logic       not_ready;       // RNR NAK
    // Fields of a NAK.
    logic [7:0] syndrome;
    logic       fatal;
    logic       access_event;
    logic       request_event;
    logic       begins_receive;  // the request's receive WQE completes with receive_status
    logic [3:0] receive_status;
  } check_t;

  // Number of packets of a READ response, minus one.
  function automatic logic [23:0] further_packets(input logic [31:0] length, input logic [3:0] mtu_shift);
    logic [31:0] further;
    further = (length - 32'd1) >> mtu_shift;
    further_packets = length == '0 ? '0 : further[23:0];
  endfunction

endpackage
