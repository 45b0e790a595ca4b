// SPDX-License-Identifier: Apache-2.0
#include "model/nic/engine/transport_params.h"

namespace rnicsim::nic {

roce::LossRecovery TransportParams::loss_recovery() const {
  auto mode = roce::Recovery::go_back_n;
  if (recovery == kRecoveryWords[1]) mode = roce::Recovery::go_back_0;
  if (recovery == kRecoveryWords[2]) mode = roce::Recovery::selective;
  const bool tells_few = rto_high != Duration{} && rto_low_packets != 0;
  return {.mode = mode,
          .reorder_window = reorder_window,
          .nak_gap = nak_gap,
          .most_in_flight = most_in_flight,
          .few_in_flight = tells_few ? rto_low_packets - 1 : 0,
          .place_early = place_early,
          .reth_in_each = reth == kRethWords[1]};
}

void TransportParams::describe(ParamVisitor& visit) {
  visit.param("recovery", recovery,
              "packets that are sent again after a loss: all packets from the lost packet on, all packets from the "
              "first packet of the interrupted message on, or only the lost packets (IRN)",
              kRecoveryWords);
  visit.param("reorder_window", reorder_window,
              "packets, counted from the first missing one, among which those that come are kept until their turn; the "
              "payload of WRITEs and READ responses is placed at once; 0: a packet that comes before others is lost",
              {0, 65536});
  visit.param("reorder_buffer", reorder_buffer,
              "bytes of the receive buffer for kept packets whose payload cannot be placed yet, sum of all queue "
              "pairs; a packet beyond this limit is lost",
              {0, 1e12});
  visit.param("place_early", place_early,
              "payload of kept WRITEs is placed before their turn, if its place is known; two WRITEs to one address "
              "may then end in the other order");
  visit.param(
      "nak_gap", nak_gap,
      "a packet counts as a sign of a loss if it is more than this number of packets ahead of the first missing packet",
      {0, 65536});
  visit.param("most_in_flight", most_in_flight,
              "packets of a queue pair that may be sent and not acknowledged (BDP-FC of IRN); 0: no limit",
              {0, 1 << 22});
  visit.param("read_acks", read_acks,
              "READ responses ask for acknowledgements, so that most_in_flight and windows of congestion controls hold "
              "them back, and controls hear of round trips, marks and telemetry of them (IRN's read acknowledgements)");
  visit.param("reth", reth,
              "packets of a WRITE that have a RETH: the first packet; or each packet, which is then a separate WRITE "
              "and can be placed in any order (as ConnectX for adaptive routing); not with an immediate",
              kRethWords);
  visit.param("rto_low", rto_low,
              "time after which unanswered packets are sent again if fewer than rto_low_packets packets are in flight; "
              "no retry is counted",
              {0, 1e12});
  visit.param("rto_high", rto_high,
              "time after which unanswered packets are sent again with more packets in flight; 0: only "
              "nic.adaptive_timeout and the queue pair's own timeout count",
              {0, 1e12});
  visit.param("rto_low_packets", rto_low_packets, "packets in flight from which on rto_high applies", {0, 65536});
  visit.refuse(recovery == kRecoveryWords[2] && reorder_window == 0, "reorder_window",
               "is 0: with recovery = \"selective\" the receiver has to keep packets that come before lost ones");
  visit.refuse(recovery == kRecoveryWords[1] && reorder_window != 0, "reorder_window",
               "is not 0: with recovery = \"go_back_0\" the receiver discards an interrupted message");
  visit.refuse(recovery == kRecoveryWords[1] && most_in_flight != 0, "most_in_flight",
               "is not 0: with recovery = \"go_back_0\" only whole messages are acknowledged");
  visit.refuse(nak_gap > reorder_window, "nak_gap", "is more than", "reorder_window");
  visit.refuse(rto_low > rto_high, "rto_low", "is more than", "rto_high");
  visit.idle(reorder_window == 0, {"reorder_buffer", "place_early"}, "reorder_window");
  visit.idle(rto_high == Duration{}, {"rto_low_packets"}, "rto_high");
  visit.idle(rto_low_packets == 0, {"rto_low"}, "rto_low_packets");
}

}  // namespace rnicsim::nic
