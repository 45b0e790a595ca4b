// SPDX-License-Identifier: Apache-2.0
// Sockets that become rsockets.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <sstream>

#include "verbs/rsockets/preload/rules.h"

namespace rnicsim::rsockets {
namespace {

TEST(RsocketPreload, RulesOfTheConfiguration) {
  std::istringstream file(
      "# a comment\n"
      "* INET6 * *\n"
      "server AF_INET STREAM TCP\n"
      "server INET RAW *\n"  // no such type
      "short *\n");
  const auto rules = preload::parse_rules(file);
  ASSERT_EQ(rules.size(), 2u);
  const auto becomes = [&](const char* program, int domain, int type, int protocol) {
    return preload::becomes_rsocket(rules, program, domain, type, protocol);
  };
  EXPECT_TRUE(becomes("any", AF_INET6, SOCK_DGRAM, 0));
  EXPECT_TRUE(becomes("server", AF_INET, SOCK_STREAM, 0));
  EXPECT_TRUE(becomes("Server2", AF_INET, SOCK_STREAM, IPPROTO_TCP));
  EXPECT_FALSE(becomes("serve", AF_INET, SOCK_STREAM, 0));
  EXPECT_FALSE(becomes("server", AF_INET, SOCK_DGRAM, 0));
  EXPECT_TRUE(preload::becomes_rsocket({}, "any", AF_INET, SOCK_STREAM, 0));
}

}  // namespace
}  // namespace rnicsim::rsockets
