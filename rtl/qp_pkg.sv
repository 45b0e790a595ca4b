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

  // True if a is before b, modulo 2^24 (IBTA vol 1, 9.7.1).
  function automatic logic precedes(input logic [23:0] a, input logic [23:0] b);
    logic [23:0] ahead;
    ahead = b - a;
    precedes = !ahead[23] && ahead != '0;
  endfunction

  // RNR timer codes of IBTA vol 1, table 45, in ticks, rounded up.
  function automatic logic [TickWidth-1:0] rnr_ticks(input logic [4:0] code);
    case (code)
      5'd0: rnr_ticks = 36'd640000;
      5'd1: rnr_ticks = 36'd10;
      5'd2: rnr_ticks = 36'd20;
      5'd3: rnr_ticks = 36'd30;
      5'd4: rnr_ticks = 36'd40;
      5'd5: rnr_ticks = 36'd59;
      5'd6: rnr_ticks = 36'd79;
      5'd7: rnr_ticks = 36'd118;
      5'd8: rnr_ticks = 36'd157;
      5'd9: rnr_ticks = 36'd235;
      5'd10: rnr_ticks = 36'd313;
      5'd11: rnr_ticks = 36'd469;
      5'd12: rnr_ticks = 36'd625;
      5'd13: rnr_ticks = 36'd938;
      5'd14: rnr_ticks = 36'd1250;
      5'd15: rnr_ticks = 36'd1875;
      5'd16: rnr_ticks = 36'd2500;
      5'd17: rnr_ticks = 36'd3750;
      5'd18: rnr_ticks = 36'd5000;
      5'd19: rnr_ticks = 36'd7500;
      5'd20: rnr_ticks = 36'd10000;
      5'd21: rnr_ticks = 36'd15000;
      5'd22: rnr_ticks = 36'd20000;
      5'd23: rnr_ticks = 36'd30000;
      5'd24: rnr_ticks = 36'd40000;
      5'd25: rnr_ticks = 36'd60000;
      5'd26: rnr_ticks = 36'd80000;
      5'd27: rnr_ticks = 36'd120000;
      5'd28: rnr_ticks = 36'd160000;
      5'd29: rnr_ticks = 36'd240000;
      5'd30: rnr_ticks = 36'd320000;
      default: rnr_ticks = 36'd480000;
    endcase
  endfunction

endpackage
