// SPDX-License-Identifier: Apache-2.0
#include "model/nic/nic_params.h"

#include "model/nic/packets/packet.h"

namespace rnicsim::nic {

IcrcRule NicParams::icrc_rule() const { return {.headers_only = timing_only, .always = icrc == kIcrcWords[1]}; }

void NicParams::describe(ParamVisitor& visit) {
  visit.group("capabilities", capabilities);
  visit.group("device", pcie);
  visit.group("pcie", dma);
  visit.group("contexts", contexts);
  visit.group("device_memory", device_memory);
  visit.group("translation", translation);
  visit.group("atc", atc);
  visit.group("atomics", atomics);
  visit.group("units", units);
  visit.group("send_wqes", send_wqes);
  visit.group("receive_wqes", receive_wqes);
  visit.group("tx", tx);
  visit.group("rx", rx);
  visit.group("receive_buffer", receive_buffer);
  visit.group("raw", raw);
  visit.group("port", port);
  visit.group("loopback", loopback);
  visit.group("jitter", jitter);
  visit.param("adaptive_timeout", adaptive_timeout,
              "time after which unanswered packets are sent again, then after four times this time, without counting a "
              "retry, until the queue pair's own timeout is shorter; 0: only the queue pair's own timeout",
              {0, 1e9});
  visit.group("adaptive_retransmission", adaptive_retransmission);
  visit.refuse(adaptive_timeout != Duration{} && adaptive_retransmission.time_base != Duration{}, "adaptive_timeout",
               "is not 0, though there is", "adaptive_retransmission.time_base");
  visit.group("transport", transport);
  visit.group("congestion", congestion);
  // If kept packets alone could hold the pause, the missing packets would be paused for ever.
  const auto& room = receive_buffer.pfc != 0 ? receive_buffer.xon : receive_buffer.size;
  visit.refuse(transport.reorder_window != 0 && transport.reorder_buffer >= room, "transport.reorder_buffer",
               "is not less than", receive_buffer.pfc != 0 ? "receive_buffer.xon" : "receive_buffer.size");
  visit.idle(transport.rto_high != Duration{}, {"adaptive_timeout"}, "transport.rto_high");
  visit.idle(!transport.read_acks && !congestion.inputs(port.rate).acknowledgements, {"congestion.ack_every"},
             "congestion.control");
  visit.param("icrc", icrc,
              "lazy: bytes and ICRC of a packet are built when a reader needs them; always: bytes and ICRC are built, "
              "parsed and checked; only the simulator's speed differs",
              kIcrcWords);
  visit.param("timing_only", timing_only,
              "payload is not read, not written and not covered by the ICRC; packets and DMA take the same time");
}

}  // namespace rnicsim::nic
