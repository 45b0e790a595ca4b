// SPDX-License-Identifier: Apache-2.0
// Next request packet of a queue pair: whether the packet may be sent, its record, and the context after the packet.
// Combinational.
module request_packet (
    input qp_pkg::send_context_t c_i,
    input qp_pkg::message_t      m_i,         // message at the cursor
    input logic [127:0]          operands_i,  // of an atomic: swap or add value, compare value

    output logic                  blocked_o,  // not yet
    output logic                  skip_o,     // the message has no packets
    output qp_pkg::send_record_t  record_o,
    output qp_pkg::send_context_t c_o
);

  localparam int unsigned MW = qp_pkg::MessageWidth;

  logic [12:0] mtu;
  logic [23:0] index, message_end, needed, in_flight;
  logic [MW-1:0] cursor_place, fail_place;  // positions in the window, relative to head
  logic begins, ends, rd_atomic, stops, may_start, psns_allow;

  // --- Operands.
  always_comb begin
    mtu = 13'd1 << c_i.mtu_shift;
    message_end = m_i.first + m_i.packets;
    index = c_i.sent_psn - m_i.first;
    begins = index == '0;
    ends = index + 24'd1 == m_i.packets;
    rd_atomic = qp_pkg::is_rd_atomic(m_i.operation);
    needed = m_i.operation == qp_pkg::MessageRead ? message_end - c_i.sent_psn : 24'd1;
    in_flight = c_i.sent_psn - c_i.una_psn;
    cursor_place = c_i.cursor[MW-1:0] - c_i.head[MW-1:0];
    fail_place = c_i.fail_at - c_i.head[MW-1:0];
  end

  // --- Decision.
  always_comb begin
    stops = c_i.life != qp_pkg::LifeActive || c_i.rnr_waiting || c_i.cursor == c_i.tail ||
        c_i.ahead >= qp_pkg::MaxAhead || (c_i.failing && cursor_place >= fail_place);
    may_start = !(c_i.draining && !roce_pkg::precedes(c_i.sent_psn, c_i.unsent_psn)) &&
        !(m_i.fence && (c_i.outstanding != '0 || c_i.placing != '0)) &&
        !(rd_atomic && c_i.outstanding >= c_i.max_rd_atomic);
    psns_allow = in_flight == '0 || {1'b0, in_flight} + {1'b0, needed} < {1'b0, qp_pkg::MaxPsns};
    skip_o = !stops && m_i.packets == '0;
    blocked_o = stops || (!skip_o && (((begins || rd_atomic) && !may_start) || !psns_allow));
  end

  // --- The packet.
  always_comb begin
    record_o = '0;
    record_o.message = c_i.cursor[MW-1:0];
    record_o.destination = c_i.remote_qpn;
    record_o.psn = c_i.sent_psn;
    record_o.end_psn = c_o.sent_psn;
    record_o.offset = {8'd0, index} << c_i.mtu_shift;
    record_o.address = m_i.remote_address;
    record_o.rkey = m_i.rkey;
    record_o.length = m_i.length;
    record_o.ack_request = 1'b1;
    record_o.immediate = m_i.immediate;
    record_o.swap_add = operands_i[127:64];
    record_o.compare = operands_i[63:0];
    unique case (m_i.operation)
      qp_pkg::MessageRead: begin
        // One READ request asks for all missing packets of the response.
        record_o.opcode = roce_pkg::OpReadRequest;
        record_o.address = m_i.remote_address + {32'd0, record_o.offset};
        record_o.length = m_i.length - record_o.offset;
      end
      qp_pkg::MessageFetchAdd: record_o.opcode = roce_pkg::OpFetchAdd;
      qp_pkg::MessageCompareSwap: record_o.opcode = roce_pkg::OpCompareSwap;
      default: begin
        record_o.bytes = ends ? m_i.length[12:0] - record_o.offset[12:0] : mtu;
        // A long message requests an ACK every 256 packets, and at its end.
        record_o.ack_request = ends || index[7:0] == 8'hff;
        record_o.solicited = ends && m_i.solicited && (m_i.operation == qp_pkg::MessageSend || m_i.has_immediate);
        record_o.opcode = m_i.operation == qp_pkg::MessageSend ? roce_pkg::OpSendMiddle : roce_pkg::OpWriteMiddle;
        if (begins && !ends) record_o.opcode = record_o.opcode - 8'd1;
        if (!begins && ends) record_o.opcode = record_o.opcode + 8'd1 + {7'd0, m_i.has_immediate};
        if (begins && ends) record_o.opcode = record_o.opcode + 8'd3 + {7'd0, m_i.has_immediate};
      end
    endcase
  end

  // --- The context after the packet.
  always_comb begin
    c_o = c_i;
    c_o.sent_psn = m_i.operation == qp_pkg::MessageRead ? message_end : c_i.sent_psn + 24'd1;
    if (rd_atomic || ends) c_o.cursor = c_i.cursor + 1'b1;
    if (rd_atomic) begin
      c_o.outstanding = c_i.outstanding + 5'd1;
      if (c_i.cursor == c_i.una) c_o.asked_psn = c_i.sent_psn;
    end
    if (roce_pkg::precedes(c_i.unsent_psn, c_o.sent_psn)) c_o.unsent_psn = c_o.sent_psn;
    c_o.ahead = c_i.ahead + 6'd1;
  end

endmodule
