// SPDX-License-Identifier: Apache-2.0
// Netlink messages of a program to its host's kernel. Answers must be well-formed, dumps must end, and the same bytes
// must get the same answer.
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <rdma/rdma_netlink.h>
#include <sys/socket.h>

#include "sim/host/kernel/netlink/netlink_answers.h"
#include "tests/soak/fuzz/fuzz.h"

namespace rnicsim::fuzz {
namespace {

struct Queue final : clock::NetlinkSink {
  bool put(clock::NetlinkBytes datagram) override {
    datagrams.emplace_back(datagram.begin(), datagram.end());
    return true;
  }
  std::vector<std::vector<std::byte>> datagrams;
};

std::vector<abi::NetworkInterface> hosts() {
  std::vector<abi::NetworkInterface> all(100);
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].host = std::uint16_t(i);
    all[i].ipv4[0] = 10;
    all[i].ipv4[2] = std::uint8_t(i);
    all[i].ipv4_prefix = i % 10 == 0 ? 24 : 16;
    all[i].ipv6[0] = 0xfd;
    all[i].ipv6[15] = std::uint8_t(i);
    all[i].ipv6_prefix = 64;
  }
  return all;
}

std::vector<std::vector<std::byte>> answers(const clock::HostView& view, const clock::NetlinkCaller& caller,
                                            clock::NetlinkBytes sent) {
  Queue queue;
  require(clock::answer_netlink(view, caller, sent, queue), "an answer without room");
  for (std::size_t i = 0; i < queue.datagrams.size(); ++i)
    if (const auto mark = clock::read_mark(queue.datagrams[i]))
      require(clock::continue_dump(view, *mark, queue), "a dump without room");
  return queue.datagrams;
}

void check(const std::vector<std::byte>& datagram) {
  if (clock::read_mark(datagram)) return;
  require(datagram.size() <= clock::NetlinkDatagram::kMostBytes, "a datagram is too long");
  clock::NetlinkBytes rest = datagram;
  while (clock::take_message(rest)) continue;
  require(rest.empty(), "a datagram that is not of messages");
}

Bytes request(std::uint8_t protocol, std::uint16_t type, std::uint16_t flags) {
  const nlmsghdr header{NLMSG_HDRLEN + 28, type, flags, 1, 0};
  const std::uint8_t family[12] = {AF_INET};
  const nlattr attribute{16, RTA_DST};
  const std::uint8_t address[12] = {10, 0, 3, 0};
  Script script;
  return script.step(protocol, header, family, attribute, address);
}

}  // namespace

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  for (const std::uint16_t flags : {NLM_F_REQUEST, NLM_F_REQUEST | NLM_F_DUMP, NLM_F_REQUEST | NLM_F_ACK}) {
    for (const std::uint16_t type : {RTM_GETLINK, RTM_GETADDR, RTM_GETROUTE, RTM_GETNEIGH, RTM_GETRULE, RTM_NEWLINK})
      all.push_back(request(NETLINK_ROUTE, type, flags));
    for (const int command : {RDMA_NLDEV_CMD_GET, RDMA_NLDEV_CMD_PORT_GET, RDMA_NLDEV_CMD_SYS_GET})
      all.push_back(request(NETLINK_RDMA, std::uint16_t(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command)), flags));
  }
  return all;
}

}  // namespace rnicsim::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rnicsim;
  using namespace rnicsim::fuzz;
  static const auto all = hosts();
  const clock::HostView view{all, 0};
  Input input(data, size);
  for (int steps = 0; !input.empty() && steps < 8; ++steps) {
    const auto step = input.take_step();
    const clock::NetlinkCaller caller{.protocol = step.kind % 32, .port = 1000, .strict = step.kind >= 128};
    const auto sent = std::as_bytes(step.body);
    const auto answered = answers(view, caller, sent);
    for (const auto& datagram : answered) check(datagram);
    require(answered == answers(view, caller, sent), "the same bytes are answered otherwise");
  }
  return 0;
}
