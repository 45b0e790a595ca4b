// An RC queue pair engine for 256 queue pairs: a requester and a responder, each with its own contexts, and timers.
//
// Streams are valid/ready; what is offered stays until it is taken. The clock may stand still while busy_o is low, no
// stream offers anything, and now_i has not come to wake_o.
module qp_engine (
    input logic clk_i,
    input logic rst_ni,

    // Time, in ticks of 1.024 us: runs on when the clock stands still.
    input logic [qp_pkg::TickWidth-1:0] now_i,

    input  logic                send_control_valid_i,
    output logic                send_control_ready_o,
    input  qp_pkg::send_control_t send_control_i,
    input  logic                post_valid_i,
    output logic                post_ready_o,
    input  qp_pkg::post_t       post_i,
    input  logic                response_valid_i,
    output logic                response_ready_o,
    input  qp_pkg::response_t   response_i,
    input  logic                send_event_valid_i,
    output logic                send_event_ready_o,
    input  qp_pkg::send_event_t send_event_i,

    output logic                 send_record_valid_o,
    input  logic                 send_record_ready_i,
    output qp_pkg::send_record_t send_record_o,

    input  logic                  answer_control_valid_i,
    output logic                  answer_control_ready_o,
    input  qp_pkg::answer_control_t answer_control_i,
    input  logic                  request_valid_i,
    output logic                  request_ready_o,
    input  qp_pkg::request_t      request_i,
    input  logic                  answer_event_valid_i,
    output logic                  answer_event_ready_o,
    input  qp_pkg::answer_event_t answer_event_i,

    output logic                   answer_record_valid_o,
    input  logic                   answer_record_ready_i,
    output qp_pkg::answer_record_t answer_record_o,

    // For the clock's gate.
    output logic                         busy_o,
    output logic                         armed_o,
    output logic [qp_pkg::TickWidth-1:0] wake_o
);

  logic set_valid, set_ready, set_cancel, expired_valid, expired_ready;
  logic [qp_pkg::SlotWidth:0] set_number, expired_number;
  logic [qp_pkg::TickWidth-1:0] set_after;
  logic requester_busy, responder_busy, timers_busy;

  requester sends (
      .clk_i,
      .rst_ni,
      .control_valid_i(send_control_valid_i),
      .control_ready_o(send_control_ready_o),
      .control_i(send_control_i),
      .post_valid_i,
      .post_ready_o,
      .post_i,
      .response_valid_i,
      .response_ready_o,
      .response_i,
      .event_valid_i(send_event_valid_i),
      .event_ready_o(send_event_ready_o),
      .event_i(send_event_i),
      .timer_set_valid_o(set_valid),
      .timer_set_ready_i(set_ready),
      .timer_set_number_o(set_number),
      .timer_set_cancel_o(set_cancel),
      .timer_set_after_o(set_after),
      .timer_valid_i(expired_valid),
      .timer_ready_o(expired_ready),
      .timer_number_i(expired_number),
      .record_valid_o(send_record_valid_o),
      .record_ready_i(send_record_ready_i),
      .record_o(send_record_o),
      .busy_o(requester_busy)
  );

  responder answers (
      .clk_i,
      .rst_ni,
      .control_valid_i(answer_control_valid_i),
      .control_ready_o(answer_control_ready_o),
      .control_i(answer_control_i),
      .request_valid_i,
      .request_ready_o,
      .request_i,
      .event_valid_i(answer_event_valid_i),
      .event_ready_o(answer_event_ready_o),
      .event_i(answer_event_i),
      .record_valid_o(answer_record_valid_o),
      .record_ready_i(answer_record_ready_i),
      .record_o(answer_record_o),
      .busy_o(responder_busy)
  );

  timer_wheel timers (
      .clk_i,
      .rst_ni,
      .now_i,
      .set_valid_i(set_valid),
      .set_ready_o(set_ready),
      .set_timer_i(set_number),
      .set_cancel_i(set_cancel),
      .set_after_i(set_after),
      .expired_valid_o(expired_valid),
      .expired_ready_i(expired_ready),
      .expired_timer_o(expired_number),
      .busy_o(timers_busy),
      .armed_o,
      .wake_o
  );

  assign busy_o = requester_busy || responder_busy || timers_busy || expired_valid;

endmodule
