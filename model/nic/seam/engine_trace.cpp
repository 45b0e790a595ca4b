// SPDX-License-Identifier: Apache-2.0
#include "model/nic/seam/engine_trace.h"

namespace rnicsim::nic {

void EngineCounters::describe(CounterVisitor& visit) const {
  visit.counter("out_of_sequence", out_of_sequence, "packets", "requests ahead of the expected PSN");
  visit.counter("duplicate_request", duplicate_request, "packets", "requests behind the expected PSN");
  visit.counter("packet_seq_err", packet_seq_err, "NAKs", "sequence error NAKs received");
  visit.counter("implied_nak_seq_err", implied_nak_seq_err, "gaps", "answers to READs or atomics found missing");
  visit.counter("selective_retransmits", selective_retransmits, "packets",
                "requests sent again alone (nic.transport.recovery = selective)");
  visit.counter("rnr_nak_retry_err", rnr_nak_retry_err, "NAKs", "RNR NAKs received");
  visit.counter("out_of_buffer", out_of_buffer, "packets", "requests that found no receive WQE");
  visit.counter("bad_qkey", bad_qkey, "packets", "datagrams dropped: the Q_Key differs from the QP's");
  visit.counter("silently_dropped", silently_dropped, "packets",
                "messages of UC and UD dropped: too long for the receive or path, or access not granted");
  visit.counter("absent_rnr", absent_rnr, "requests",
                "requests answered by an RNR NAK: a page on demand was not present");
  visit.counter("absent_dropped", absent_dropped, "packets",
                "messages of UC dropped: a page on demand was not present");
  visit.counter("local_ack_timeout_err", local_ack_timeout_err, "timeouts", "local ACK timeouts");
  visit.counter("rp_cnp_handled", rp_cnp_handled, "packets",
                "CNPs received for the congestion control of a queue pair");
  visit.counter("rp_cnp_ignored", rp_cnp_ignored, "packets",
                "CNPs for a queue pair without congestion control, or not from its peer");
  visit.counter("roce_slow_restart_cnps", roce_slow_restart_cnps, "packets",
                "CNPs that a retransmission counted for (congestion.cnp_on_retransmit)");
  visit.counter("roce_adp_retrans", roce_adp_retrans, "timeouts",
                "timeouts by nic.adaptive_timeout or nic.transport.rto_*, before the queue pair's own timeout");
  visit.counter("rx_write_requests", rx_write_requests, "messages", "RDMA WRITEs that the responder accepted");
  visit.counter("rx_read_requests", rx_read_requests, "messages", "RDMA READs that the responder accepted");
  visit.counter("rx_atomic_requests", rx_atomic_requests, "messages", "atomics that the responder accepted");
  visit.counter("req_cqe_error", req_cqe_error, "entries", "send completions with an error");
  visit.counter("req_cqe_flush_error", req_cqe_flush_error, "entries", "completions with an error that were flushed");
  visit.counter("req_transport_retries_exceeded", req_transport_retries_exceeded, "messages",
                "sends that ended because the peer did not answer");
  visit.counter("req_rnr_retries_exceeded", req_rnr_retries_exceeded, "messages",
                "sends that ended because the peer had no receive");
  visit.counter("resp_cqe_error", resp_cqe_error, "entries", "receive completions with an error");
  visit.counter("resp_cqe_flush_error", resp_cqe_flush_error, "entries", "completions with an error that were flushed");
  visit.counter("resp_local_length_error", resp_local_length_error, "entries",
                "receive completions with an error because the message was longer than the receive");
  visit.counter("req_remote_access_errors", req_remote_access_errors, "messages",
                "requests refused by the peer: access");
  visit.counter("req_remote_invalid_request", req_remote_invalid_request, "messages",
                "requests refused by the peer: invalid");
  visit.counter("resp_remote_access_errors", resp_remote_access_errors, "requests",
                "requests refused by this NIC: access");
  visit.counter("resp_invalid_request", resp_invalid_request, "requests", "requests refused by this NIC: invalid");
  visit.counter("unknown_qp", unknown_qp, "packets", "packets dropped: the QP does not exist");
  visit.counter("wrong_state", wrong_state, "packets", "packets dropped: the QP does not receive in its state");
  visit.counter(
      "wrong_path", wrong_path, "packets",
      "packets of RC and UC dropped: the source is not the peer's address, or the destination is not the QP's address");
  visit.counter("doorbell_invalid", doorbell_invalid, "doorbells", "doorbells ignored: more blocks than the ring has");
  visit.counter("doorbell_wrong_state", doorbell_wrong_state, "doorbells",
                "doorbells ignored: the QP is in RESET or has no send queue");
}

}  // namespace rnicsim::nic
