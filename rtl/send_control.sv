// SPDX-License-Identifier: Apache-2.0
// Effects of a command on a queue pair's send side. Combinational.
module send_control (
    input qp_pkg::send_step_t    stay_i,
    input qp_pkg::send_record_t  stay_record_i,
    input qp_pkg::send_control_t control_i,
    input logic                  drained_i,

    output qp_pkg::send_step_t   step_o,
    output qp_pkg::send_record_t record_o
);

  always_comb begin
    step_o = stay_i;
    record_o = stay_record_i;
    step_o.emit = 1'b1;
    record_o.psn = stay_i.c.una_psn;
    record_o.end_psn = stay_i.c.unsent_psn;
    record_o.retries = stay_i.c.retries;
    record_o.rnr_retries = stay_i.c.rnr_retries;
    record_o.drained = drained_i;
    step_o.state = qp_pkg::SendStTimer;
    unique case (control_i.kind)
      qp_pkg::ControlReset: begin
        step_o.c = '0;
        step_o.c.ack_armed = stay_i.c.ack_armed;
        step_o.rnr_cancel = 1'b1;
      end
      qp_pkg::ControlStart, qp_pkg::ControlUpdate: begin
        step_o.c.remote_qpn = control_i.remote_qpn;
        step_o.c.mtu_shift = {1'b0, control_i.mtu} + 4'd7;
        step_o.c.max_rd_atomic = control_i.max_rd_atomic;
        step_o.c.retry_count = control_i.retry_count;
        step_o.c.rnr_retry = control_i.rnr_retry;
        step_o.c.timeout = control_i.timeout;
        step_o.c.draining = control_i.draining;
        if (!control_i.draining) step_o.c.drain_told = 1'b0;
        // New values take effect at once, also for packets in flight.
        if (control_i.retry_count != stay_i.c.retry_count) step_o.c.retries = control_i.retry_count;
        if (control_i.rnr_retry != stay_i.c.rnr_retry) step_o.c.rnr_retries = control_i.rnr_retry;
        step_o.restart = control_i.timeout != stay_i.c.timeout;
        step_o.state = qp_pkg::SendStSettle;
        if (control_i.kind == qp_pkg::ControlStart) begin
          step_o.c.life = qp_pkg::LifeActive;
          step_o.c.next_psn = control_i.psn;
          step_o.c.unsent_psn = control_i.psn;
          step_o.c.una_psn = control_i.psn;
          step_o.c.sent_psn = control_i.psn;
          step_o.c.asked_psn = control_i.psn;
          step_o.c.left_psn = control_i.psn;
          step_o.c.retries = control_i.retry_count;
          step_o.c.rnr_retries = control_i.rnr_retry;
        end
      end
      qp_pkg::ControlError: begin
        step_o.c.life = qp_pkg::LifeFailed;
        step_o.state = qp_pkg::SendStFlush;
      end
      default: ;  // query
    endcase
  end

endmodule
