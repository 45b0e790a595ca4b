// SPDX-License-Identifier: Apache-2.0
// Counters of the queue pair engine.
#pragma once

#include "model/base/stats.h"

namespace rnicsim::nic {

struct EngineCounters {
  Counter out_of_sequence = 0;
  Counter duplicate_request = 0;
  Counter packet_seq_err = 0;
  Counter implied_nak_seq_err = 0;
  Counter rnr_nak_retry_err = 0;
  Counter out_of_buffer = 0;
  Counter bad_qkey = 0;
  Counter silently_dropped = 0;
  Counter absent_rnr = 0;
  Counter absent_dropped = 0;
  Counter local_ack_timeout_err = 0;
  Counter roce_adp_retrans = 0;
  Counter selective_retransmits = 0;
  Counter rp_cnp_handled = 0;
  Counter rp_cnp_ignored = 0;
  Counter roce_slow_restart_cnps = 0;
  Counter rx_write_requests = 0;
  Counter rx_read_requests = 0;
  Counter rx_atomic_requests = 0;
  Counter req_cqe_error = 0;
  Counter req_cqe_flush_error = 0;
  Counter req_transport_retries_exceeded = 0;
  Counter req_rnr_retries_exceeded = 0;
  Counter resp_cqe_error = 0;
  Counter resp_cqe_flush_error = 0;
  Counter resp_local_length_error = 0;
  Counter req_remote_access_errors = 0;
  Counter req_remote_invalid_request = 0;
  Counter resp_remote_access_errors = 0;
  Counter resp_invalid_request = 0;
  Counter unknown_qp = 0;
  Counter wrong_state = 0;
  Counter wrong_path = 0;
  Counter doorbell_invalid = 0;
  Counter doorbell_wrong_state = 0;

  void describe(CounterVisitor& visit) const;
};

}  // namespace rnicsim::nic
