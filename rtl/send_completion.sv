// SPDX-License-Identifier: Apache-2.0
// Completion of messages in order, at the end of an operation: in the states Settle, Retire, Flush and Drained.
// Combinational.
module send_completion (
    input qp_pkg::send_step_t   stay_i,  // state and context
    input qp_pkg::send_record_t stay_record_i,
    input qp_pkg::message_t     m_i,     // message at the head, in the state Retire
    input qp_pkg::progress_t    p_i,

    output logic                 drained_o,  // no packet is unanswered, and no response is incomplete
    output qp_pkg::send_step_t   step_o,
    output qp_pkg::send_record_t record_o
);

  localparam int unsigned MW = qp_pkg::MessageWidth;

  qp_pkg::send_context_t c;
  logic begun, starved;

  always_comb begin
    c = stay_i.c;
    drained_o = !(roce_pkg::precedes(c.una_psn, c.unsent_psn) || c.partial) && c.placing == '0;
    begun = c.head != c.una || c.partial || roce_pkg::precedes(c.una_psn, c.unsent_psn);
    // A READ or atomic with max_rd_atomic 0 could never be sent.
    starved = c.head == c.una && qp_pkg::is_rd_atomic(m_i.operation) && c.max_rd_atomic == '0 &&
        c.outstanding == '0;
  end

  always_comb begin
    step_o = stay_i;
    record_o = stay_record_i;
    record_o.op = qp_pkg::SendOpComplete;
    record_o.message = c.head[MW-1:0];
    step_o.message_index = c.head[MW-1:0];
    unique case (stay_i.state)
      qp_pkg::SendStSettle: begin
        step_o.message_read = 1'b1;
        step_o.state = qp_pkg::SendStRetire;
      end
      qp_pkg::SendStRetire: begin
        if (c.life == qp_pkg::LifeActive && c.head != c.tail && p_i.placing == '0 &&
            (!c.draining || begun) &&
            (p_i.status != qp_pkg::StatusSuccess || c.head != c.una || m_i.packets == '0 || starved)) begin
          step_o.emit = 1'b1;
          record_o.status = p_i.status;
          if (p_i.status == qp_pkg::StatusSuccess && starved)
            record_o.status = qp_pkg::StatusLocalQpOperationError;
          step_o.c.head = c.head + 1'b1;
          if (c.una == c.head) step_o.c.una = step_o.c.head;
          if (c.cursor == c.head) step_o.c.cursor = step_o.c.head;
          if (record_o.status != qp_pkg::StatusSuccess) begin
            step_o.c.life = qp_pkg::LifeFailed;
            step_o.state = qp_pkg::SendStFlush;
          end else begin
            step_o.message_read = 1'b1;
            step_o.message_index = step_o.c.head[MW-1:0];
          end
        end else begin
          step_o.state = c.life == qp_pkg::LifeActive && c.draining && !c.drain_told ?
              qp_pkg::SendStDrained : qp_pkg::SendStTimer;
        end
      end
      qp_pkg::SendStFlush: begin
        if (c.head == c.tail) begin
          step_o.c.una = c.tail;
          step_o.c.cursor = c.tail;
          step_o.c.una_psn = c.next_psn;
          step_o.c.partial = 1'b0;
          step_o.c.placing = '0;
          step_o.c.rnr_waiting = 1'b0;
          step_o.rnr_cancel = 1'b1;
          step_o.state = qp_pkg::SendStTimer;
        end else begin
          step_o.emit = 1'b1;
          record_o.status = qp_pkg::StatusFlushedError;
          step_o.c.head = c.head + 1'b1;
        end
      end
      default: begin  // qp_pkg::SendStDrained
        record_o.op = qp_pkg::SendOpDrained;
        record_o.message = c.una[MW-1:0];
        step_o.emit = drained_o;
        if (drained_o) step_o.c.drain_told = 1'b1;
        step_o.state = qp_pkg::SendStTimer;
      end
    endcase
  end

endmodule
