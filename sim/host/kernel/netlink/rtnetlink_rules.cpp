// SPDX-License-Identifier: Apache-2.0
// Rules for the lookup of routes: those with which Linux starts.

#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include "sim/host/kernel/netlink/rtnetlink.h"

namespace rnicsim::clock {
namespace {

struct Rule {
  std::uint8_t family;
  std::uint32_t priority;
  std::uint32_t table;
};
constexpr Rule kRules[] = {
    {AF_INET, 0, RT_TABLE_LOCAL},  {AF_INET, 32766, RT_TABLE_MAIN},  {AF_INET, 32767, RT_TABLE_DEFAULT},
    {AF_INET6, 0, RT_TABLE_LOCAL}, {AF_INET6, 32766, RT_TABLE_MAIN},
};

void put_rule(const Rule& rule, NetlinkDatagram& message) {
  fib_rule_hdr header{};
  header.family = rule.family;
  header.table = std::uint8_t(rule.table);
  header.action = FR_ACT_TO_TBL;
  message.put_header(header);
  message.put(FRA_TABLE, rule.table);
  message.put(FRA_SUPPRESS_PREFIXLEN, ~std::uint32_t{0});
  message.put(FRA_PROTOCOL, std::uint8_t{RTPROT_KERNEL});
  if (rule.priority != 0) message.put(FRA_PRIORITY, rule.priority);
}

}  // namespace

void dump_rules(Dump& dump) {
  for (const Rule& rule : kRules)
    if (wants_family(dump.filter(), rule.family))
      dump.item(RTM_NEWRULE, [&](NetlinkDatagram& message) { put_rule(rule, message); });
}

}  // namespace rnicsim::clock
