// SPDX-License-Identifier: Apache-2.0
// Parameters of the notification point of congestion control (NP; ecn/roce_np in sysfs).
#pragma once

#include <cstdint>
#include <string>

#include "model/base/params.h"

namespace rnicsim::nic {

struct NotificationParams {
  static constexpr const char* kModerationWords[] = {"ip", "port", "qp"};
  static constexpr const char* kEchoWords[] = {"auto", "on", "off"};

  std::uint32_t enable = 255;
  Duration min_time_between_cnps{4'000'000};
  std::string moderation = "port";
  std::uint32_t cnp_dscp = 48;
  std::uint32_t cnp_802p_prio = 6;
  Duration delay{};
  bool cnp_on_loss = false;
  std::string ecn_echo{kEchoWords[0]};

  void describe(ParamVisitor& visit) {
    visit.param("enable", enable, "priorities, a bit each, whose marked packets (CE) are answered by a CNP", {0, 255});
    visit.param("min_time_between_cnps", min_time_between_cnps, "time between two CNPs; 0: one for each marked packet",
                {0, 1e12});
    visit.param("moderation", moderation,
                "scope of this time, with at most one CNP: the port, a peer's address, or a queue pair",
                kModerationWords);
    visit.param("cnp_dscp", cnp_dscp, "DSCP of CNPs, which gives their priority", {0, 63});
    visit.param("cnp_802p_prio", cnp_802p_prio, "PCP of CNPs that have a VLAN tag", {0, 7});
    visit.param("delay", delay, "delay from the marked packet to its CNP in the transmit pipeline", {0, 1e12});
    visit.param("ecn_echo", ecn_echo,
                "acknowledgements report marked requests (BECN); auto: if this NIC's own control uses marks",
                kEchoWords);
    visit.param("cnp_on_loss", cnp_on_loss, "a packet after a gap of PSNs is answered by a CNP, like a marked packet");
    visit.idle(enable == 0,
               {"min_time_between_cnps", "moderation", "cnp_dscp", "cnp_802p_prio", "delay", "cnp_on_loss"}, "enable");
    visit.idle(min_time_between_cnps == Duration{}, {"moderation"}, "min_time_between_cnps");
  }
};

}  // namespace rnicsim::nic
