// SPDX-License-Identifier: Apache-2.0
// RC engine for 256 queue pairs: a requester and a responder, each with its own contexts, and timers.
//
// Streams use valid/ready, each through a register; offered data stays stable until it is accepted. The clock may stop
// while busy_o is low, no stream offers data, and now_i has not reached wake_o.
module qp_engine (
    input logic clk_i,
    input logic rst_ni,

    // Time in ticks of 1.024 us; advances while the clock is stopped.
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

    // Outputs for the clock gate.
    output logic                         busy_o,
    output logic                         armed_o,
    output logic [qp_pkg::TickWidth-1:0] wake_o
);

  logic set_valid, set_ready, set_cancel, expired_valid, expired_ready;
  logic [qp_pkg::SlotWidth:0] set_number, expired_number;
  logic [qp_pkg::TickWidth-1:0] set_after;
  logic requester_busy, responder_busy, timers_busy;

  // --- Registers at all stream inputs and outputs.
  logic [qp_pkg::TickWidth-1:0] now_q;
  always_ff @(posedge clk_i) now_q <= now_i;

  logic send_control_valid, send_control_ready;
  qp_pkg::send_control_t send_control;
  stream_register #(
      .Width($bits(send_control))
  ) send_control_register (
      .clk_i,
      .rst_ni,
      .in_valid_i(send_control_valid_i),
      .in_ready_o(send_control_ready_o),
      .in_data_i(send_control_i),
      .out_valid_o(send_control_valid),
      .out_ready_i(send_control_ready),
      .out_data_o(send_control)
  );
  logic post_valid, post_ready;
  qp_pkg::post_t post;
  stream_register #(
      .Width($bits(post))
  ) post_register (
      .clk_i,
      .rst_ni,
      .in_valid_i(post_valid_i),
      .in_ready_o(post_ready_o),
      .in_data_i(post_i),
      .out_valid_o(post_valid),
      .out_ready_i(post_ready),
      .out_data_o(post)
  );
  logic response_valid, response_ready;
  qp_pkg::response_t response;
  stream_register #(
      .Width($bits(response))
  ) response_register (
      .clk_i,
      .rst_ni,
      .in_valid_i(response_valid_i),
      .in_ready_o(response_ready_o),
      .in_data_i(response_i),
      .out_valid_o(response_valid),
      .out_ready_i(response_ready),
      .out_data_o(response)
  );
  logic send_event_valid, send_event_ready;
  qp_pkg::send_event_t send_event;
  stream_register #(
      .Width($bits(send_event))
  ) send_event_register (
      .clk_i,
      .rst_ni,
      .in_valid_i(send_event_valid_i),
      .in_ready_o(send_event_ready_o),
      .in_data_i(send_event_i),
      .out_valid_o(send_event_valid),
      .out_ready_i(send_event_ready),
      .out_data_o(send_event)
  );
  logic answer_control_valid, answer_control_ready;
  qp_pkg::answer_control_t answer_control;
  stream_register #(
      .Width($bits(answer_control))
  ) answer_control_register (
      .clk_i,
      .rst_ni,
      .in_valid_i(answer_control_valid_i),
      .in_ready_o(answer_control_ready_o),
      .in_data_i(answer_control_i),
      .out_valid_o(answer_control_valid),
      .out_ready_i(answer_control_ready),
      .out_data_o(answer_control)
  );
  logic request_valid, request_ready;
  qp_pkg::request_t request;
  stream_register #(
      .Width($bits(request))
  ) request_register (
      .clk_i,
      .rst_ni,
      .in_valid_i(request_valid_i),
      .in_ready_o(request_ready_o),
      .in_data_i(request_i),
      .out_valid_o(request_valid),
      .out_ready_i(request_ready),
      .out_data_o(request)
  );
  logic answer_event_valid, answer_event_ready;
  qp_pkg::answer_event_t answer_event;
  stream_register #(
      .Width($bits(answer_event))
  ) answer_event_register (
      .clk_i,
      .rst_ni,
      .in_valid_i(answer_event_valid_i),
      .in_ready_o(answer_event_ready_o),
      .in_data_i(answer_event_i),
      .out_valid_o(answer_event_valid),
      .out_ready_i(answer_event_ready),
      .out_data_o(answer_event)
  );
  logic send_record_valid, send_record_ready;
  qp_pkg::send_record_t send_record;
  stream_register #(
      .Width($bits(send_record)),
      .TakesAsItGives(1'b0)
  ) send_record_register (
      .clk_i,
      .rst_ni,
      .in_valid_i(send_record_valid),
      .in_ready_o(send_record_ready),
      .in_data_i(send_record),
      .out_valid_o(send_record_valid_o),
      .out_ready_i(send_record_ready_i),
      .out_data_o(send_record_o)
  );
  logic answer_record_valid, answer_record_ready;
  qp_pkg::answer_record_t answer_record;
  stream_register #(
      .Width($bits(answer_record)),
      .TakesAsItGives(1'b0)
  ) answer_record_register (
      .clk_i,
      .rst_ni,
      .in_valid_i(answer_record_valid),
      .in_ready_o(answer_record_ready),
      .in_data_i(answer_record),
      .out_valid_o(answer_record_valid_o),
      .out_ready_i(answer_record_ready_i),
      .out_data_o(answer_record_o)
  );

  requester sends (
      .clk_i,
      .rst_ni,
      .control_valid_i(send_control_valid),
      .control_ready_o(send_control_ready),
      .control_i(send_control),
      .post_valid_i(post_valid),
      .post_ready_o(post_ready),
      .post_i(post),
      .response_valid_i(response_valid),
      .response_ready_o(response_ready),
      .response_i(response),
      .event_valid_i(send_event_valid),
      .event_ready_o(send_event_ready),
      .event_i(send_event),
      .timer_set_valid_o(set_valid),
      .timer_set_ready_i(set_ready),
      .timer_set_number_o(set_number),
      .timer_set_cancel_o(set_cancel),
      .timer_set_after_o(set_after),
      .timer_valid_i(expired_valid),
      .timer_ready_o(expired_ready),
      .timer_number_i(expired_number),
      .record_valid_o(send_record_valid),
      .record_ready_i(send_record_ready),
      .record_o(send_record),
      .busy_o(requester_busy)
  );

  responder answers (
      .clk_i,
      .rst_ni,
      .control_valid_i(answer_control_valid),
      .control_ready_o(answer_control_ready),
      .control_i(answer_control),
      .request_valid_i(request_valid),
      .request_ready_o(request_ready),
      .request_i(request),
      .event_valid_i(answer_event_valid),
      .event_ready_o(answer_event_ready),
      .event_i(answer_event),
      .record_valid_o(answer_record_valid),
      .record_ready_i(answer_record_ready),
      .record_o(answer_record),
      .busy_o(responder_busy)
  );

  timer_wheel timers (
      .clk_i,
      .rst_ni,
      .now_i(now_q),
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

  assign busy_o = requester_busy || responder_busy || timers_busy || expired_valid || send_control_valid ||
      post_valid || response_valid || send_event_valid || send_record_valid_o || answer_control_valid ||
      request_valid || answer_event_valid || answer_record_valid_o;

endmodule
