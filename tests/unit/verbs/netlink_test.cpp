// SPDX-License-Identifier: Apache-2.0
// Answers of a host on netlink, without a socket: bytes in, datagrams out.
#include <errno.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/rtnetlink.h>
#include <rapidcheck/gtest.h>
#include <rdma/rdma_netlink.h>
#include <sys/socket.h>

#include <cstring>
#include <string>
#include <vector>

#include "model/abi/host_files.h"
#include "sim/host/kernel/netlink/netlink_answers.h"

namespace rnicsim::clock {
namespace {

using Bytes = std::vector<std::byte>;

abi::NetworkInterface interface(std::uint16_t host, std::uint16_t device, std::uint8_t subnet) {
  abi::NetworkInterface made;
  made.host = host;
  made.device = device;
  const std::uint8_t ipv4[] = {10, subnet, std::uint8_t(host), 1};
  std::copy(std::begin(ipv4), std::end(ipv4), made.ipv4);
  made.ipv4_prefix = 16;
  made.ipv6[0] = 0xfd;
  made.ipv6[1] = subnet;
  made.ipv6[14] = std::uint8_t(host);
  made.ipv6[15] = 1;
  made.ipv6_prefix = 64;
  made.mac[0] = 2;
  made.mac[4] = std::uint8_t(host);
  made.mac[5] = 1;
  return made;
}

std::string_view firmware(const char* path, std::span<char> room) {
  if (std::string_view(path) != "/sys/class/infiniband/rnic0/fw_ver") return {};
  std::strcpy(room.data(), "1.2.3");
  return {room.data(), 5};
}

// A message of a request: header, type's header, attributes.
class Request {
 public:
  Request(std::uint16_t type, std::uint16_t flags) {
    append(nlmsghdr{0, type, std::uint16_t(NLM_F_REQUEST | flags), 7, 0});
  }
  template <class Header>
  Request& with(const Header& header) {
    append(header);
    return *this;
  }
  template <class Value>
  Request& attribute(std::uint16_t type, const Value& value) {
    append(nlattr{std::uint16_t(NLA_HDRLEN + sizeof value), type});
    append(value);
    return *this;
  }
  Bytes bytes() const {
    Bytes whole = bytes_;
    const auto length = std::uint32_t(whole.size());
    std::memcpy(whole.data(), &length, sizeof length);
    return whole;
  }

 private:
  template <class Value>
  void append(const Value& value) {
    const std::size_t before = bytes_.size();
    bytes_.resize(before + NLMSG_ALIGN(sizeof value));
    std::memcpy(bytes_.data() + before, &value, sizeof value);
  }
  Bytes bytes_;
};

// Reads as a program does: dumps continue when their mark is next.
class Host {
 public:
  explicit Host(std::vector<abi::NetworkInterface> all) : all_(std::move(all)) {}

  std::vector<Bytes> ask(const Bytes& request, NetlinkCaller caller = {.port = 1000}) const {
    Queue queue;
    fits_ = answer_netlink(view(), caller, request, queue);
    std::vector<Bytes> read;
    for (std::size_t i = 0; i < queue.datagrams.size(); ++i) {
      if (const auto mark = read_mark(queue.datagrams[i])) {
        fits_ = continue_dump(view(), *mark, queue) && fits_;
      } else {
        read.push_back(queue.datagrams[i]);
      }
    }
    return read;
  }
  std::vector<Bytes> ask(const Request& request, NetlinkCaller caller = {.port = 1000}) const {
    return ask(request.bytes(), caller);
  }
  HostView view() const { return {all_, 0, firmware}; }

 private:
  struct Queue final : NetlinkSink {
    bool put(NetlinkBytes datagram) override {
      datagrams.emplace_back(datagram.begin(), datagram.end());
      return true;
    }
    std::vector<Bytes> datagrams;
  };

  std::vector<abi::NetworkInterface> all_;
  mutable bool fits_ = true;
};

struct Answer {
  nlmsghdr header;
  Bytes whole;
  NetlinkMessage view() const { return {header, whole}; }
  NetlinkBytes payload() const { return NetlinkBytes(whole).subspan(NLMSG_HDRLEN); }
  NetlinkAttributes attributes_behind(std::size_t header_bytes) const { return view().attributes_behind(header_bytes); }
};

// Messages of all datagrams; each must be complete and well-formed.
std::vector<Answer> messages(const std::vector<Bytes>& datagrams) {
  std::vector<Answer> all;
  for (const Bytes& datagram : datagrams) {
    EXPECT_LE(datagram.size(), NetlinkDatagram::kMostBytes);
    NetlinkBytes rest = datagram;
    while (const auto message = take_message(rest))
      all.push_back({message->header, Bytes(message->whole.begin(), message->whole.end())});
    EXPECT_TRUE(rest.empty());
  }
  return all;
}

// Error code of an acknowledgement.
int error_of(const std::vector<Bytes>& datagrams) {
  const auto all = messages(datagrams);
  EXPECT_EQ(all.size(), 1u);
  if (all.empty() || all[0].header.nlmsg_type != NLMSG_ERROR) return -1;
  return -read_value<nlmsgerr>(all[0].payload())->error;
}

std::string text(const Answer& message, std::size_t header_bytes, unsigned type) {
  const auto found = message.attributes_behind(header_bytes).find(type);
  return found ? std::string(reinterpret_cast<const char*>(found->data())) : "";
}

Host two_hosts() { return Host({interface(0, 0, 0), interface(1, 0, 0)}); }
// h0 has two devices; h1 is in the first device's subnet, h2 in none of the two subnets.
Host three_subnets() { return Host({interface(0, 0, 0), interface(1, 0, 0), interface(2, 0, 9), interface(0, 1, 5)}); }

Request route_to(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d) {
  return Request(RTM_GETROUTE, 0)
      .with(rtmsg{.rtm_family = AF_INET, .rtm_dst_len = 32})
      .attribute(RTA_DST, std::array<std::uint8_t, 4>{a, b, c, d});
}

TEST(Netlink, DumpsEndAndAreMarked) {
  const auto all = messages(two_hosts().ask(Request(RTM_GETLINK, NLM_F_DUMP | NLM_F_ACK).with(ifinfomsg{})));
  ASSERT_EQ(all.size(), 3u);
  for (const auto& message : all) {
    EXPECT_EQ(message.header.nlmsg_flags, NLM_F_MULTI);
    EXPECT_EQ(message.header.nlmsg_seq, 7u);
    EXPECT_EQ(message.header.nlmsg_pid, 1000u);
  }
  EXPECT_EQ(text(all[0], sizeof(ifinfomsg), IFLA_IFNAME), "lo");
  EXPECT_EQ(text(all[1], sizeof(ifinfomsg), IFLA_IFNAME), "eth0");
  EXPECT_EQ(text(all[1], sizeof(ifinfomsg), IFLA_PARENT_DEV_NAME), "0001:01:00.0");
  EXPECT_EQ(all[1].attributes_behind(sizeof(ifinfomsg)).get<std::uint32_t>(IFLA_MTU), abi::kNetDeviceMtu);
  EXPECT_EQ(all[2].header.nlmsg_type, NLMSG_DONE);
}

TEST(Netlink, OneLinkByIndexOrName) {
  const Host host = three_subnets();
  const auto by_index = messages(host.ask(Request(RTM_GETLINK, NLM_F_ACK).with(ifinfomsg{.ifi_index = 3})));
  ASSERT_EQ(by_index.size(), 2u);
  EXPECT_EQ(text(by_index[0], sizeof(ifinfomsg), IFLA_IFNAME), "eth1");
  EXPECT_EQ(by_index[1].header.nlmsg_type, NLMSG_ERROR);
  EXPECT_EQ(read_value<nlmsgerr>(by_index[1].payload())->error, 0);
  const auto named = [&](const char(&name)[5]) {
    return host.ask(Request(RTM_GETLINK, 0).with(ifinfomsg{}).attribute(IFLA_IFNAME, name));
  };
  const auto by_name = named("eth0");
  EXPECT_EQ(read_value<ifinfomsg>(messages(by_name)[0].payload())->ifi_index, 2);
  EXPECT_EQ(error_of(named("eth7")), ENODEV);
  EXPECT_EQ(error_of(host.ask(Request(RTM_GETLINK, 0).with(ifinfomsg{}))), EINVAL);
}

TEST(Netlink, AddressesByFamilyAndDevice) {
  const Host host = two_hosts();
  const auto count = [&](std::uint8_t family, std::uint32_t index, bool strict) {
    const Request request = Request(RTM_GETADDR, NLM_F_DUMP).with(ifaddrmsg{.ifa_family = family, .ifa_index = index});
    return messages(host.ask(request, {.strict = strict})).size() - 1;
  };
  EXPECT_EQ(count(AF_UNSPEC, 0, false), 5u);
  EXPECT_EQ(count(AF_INET, 0, false), 2u);
  EXPECT_EQ(count(AF_INET6, 0, false), 3u);
  EXPECT_EQ(count(AF_INET6, 2, true), 2u);
  EXPECT_EQ(count(AF_INET6, 2, false), 3u);
}

TEST(Netlink, RoutesLeadToEverySubnet) {
  const Host host = three_subnets();
  const auto leaves_by = [&](const Request& request) {
    const auto datagrams = host.ask(request);
    return messages(datagrams)[0].attributes_behind(sizeof(rtmsg)).get<std::uint32_t>(RTA_OIF).value_or(0);
  };
  EXPECT_EQ(leaves_by(route_to(10, 0, 1, 1)), 2u);
  EXPECT_EQ(leaves_by(route_to(10, 5, 3, 3)), 3u);
  EXPECT_EQ(leaves_by(route_to(10, 9, 2, 1)), 2u);
  EXPECT_EQ(leaves_by(route_to(10, 5, 0, 1)), 1u);  // h0's own address
  EXPECT_EQ(error_of(host.ask(route_to(8, 8, 8, 8))), ENETUNREACH);
  EXPECT_EQ(error_of(host.ask(route_to(10, 5, 3, 3).attribute(RTA_OIF, 2))), ENETUNREACH);
  EXPECT_EQ(error_of(host.ask(route_to(10, 5, 3, 3).attribute(RTA_OIF, 9))), ENODEV);
}

TEST(Netlink, RoutesOfATable) {
  const auto dump = [](std::uint8_t table) {
    return three_subnets().ask(Request(RTM_GETROUTE, NLM_F_DUMP).with(rtmsg{.rtm_family = AF_INET, .rtm_table = table}),
                               {.strict = true});
  };
  EXPECT_EQ(messages(dump(RT_TABLE_MAIN)).size(), 3u + 1);
  const auto none = dump(100);
  const auto all = messages(none);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].header.nlmsg_type, NLMSG_DONE);
  EXPECT_EQ(read_value<int>(all[0].payload()), -ENOENT);
}

TEST(Netlink, ChangesAreRefused) {
  const Host host = two_hosts();
  EXPECT_EQ(error_of(host.ask(Request(RTM_NEWLINK, 0).with(ifinfomsg{.ifi_index = 2}))), EPERM);
  EXPECT_EQ(error_of(host.ask(Request(RTM_DELADDR, NLM_F_ACK).with(ifaddrmsg{}))), EPERM);
  EXPECT_EQ(error_of(host.ask(Request(RTM_SETLINK, NLM_F_DUMP).with(ifinfomsg{}))), EPERM);
  EXPECT_EQ(error_of(host.ask(Request(RTM_GETSTATS, NLM_F_DUMP).with(rtgenmsg{}))), EOPNOTSUPP);
}

TEST(Netlink, AnErrorBringsTheRequestBack) {
  const Bytes request = Request(RTM_NEWLINK, 0).with(ifinfomsg{.ifi_index = 2}).bytes();
  const auto whole = two_hosts().ask(request), capped = two_hosts().ask(request, {.caps_acks = true});
  ASSERT_EQ(whole.size(), 1u);
  EXPECT_TRUE(std::equal(request.begin(), request.end(), whole[0].begin() + NLMSG_HDRLEN + sizeof(int)));
  EXPECT_EQ(capped[0].size(), NLMSG_HDRLEN + sizeof(nlmsgerr));
}

TEST(Netlink, ManyNeighboursTakeManyDatagrams) {
  std::vector<abi::NetworkInterface> all;
  for (std::uint16_t host = 0; host < 1500; ++host) {
    all.push_back(interface(host, 0, 0));
    all.back().ipv4[2] = std::uint8_t(host >> 8);
    all.back().ipv4[3] = std::uint8_t(host);
  }
  const auto datagrams = Host(all).ask(Request(RTM_GETNEIGH, NLM_F_DUMP).with(ndmsg{.ndm_family = AF_INET}));
  EXPECT_GT(datagrams.size(), 10u);
  const auto listed = messages(datagrams);
  ASSERT_EQ(listed.size(), 1499u + 1);
  for (std::size_t i = 0; i < 1499; ++i) {
    const auto address = listed[i].attributes_behind(sizeof(ndmsg)).get<std::array<std::uint8_t, 4>>(NDA_DST);
    EXPECT_EQ((*address)[2] << 8 | (*address)[3], int(i + 1));
  }
}

TEST(Netlink, RdmaDevicesAndPorts) {
  const Host host = three_subnets();
  const NetlinkCaller caller{.protocol = NETLINK_RDMA};
  const auto type = [](int command) { return std::uint16_t(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command)); };
  const auto dumped = host.ask(Request(type(RDMA_NLDEV_CMD_GET), NLM_F_DUMP), caller);
  const auto devices = messages(dumped);
  ASSERT_EQ(devices.size(), 3u);
  EXPECT_EQ(text(devices[0], 0, RDMA_NLDEV_ATTR_DEV_NAME), "rnic0");
  EXPECT_EQ(text(devices[0], 0, RDMA_NLDEV_ATTR_FW_VERSION), "1.2.3");
  EXPECT_EQ(text(devices[1], 0, RDMA_NLDEV_ATTR_FW_VERSION), "");
  const auto port = [&](std::uint32_t device, std::uint16_t flags) {
    return host.ask(Request(type(RDMA_NLDEV_CMD_PORT_GET), flags).attribute(RDMA_NLDEV_ATTR_DEV_INDEX, device), caller);
  };
  const auto second = port(1, NLM_F_DUMP);
  EXPECT_EQ(text(messages(second)[0], 0, RDMA_NLDEV_ATTR_NDEV_NAME), "eth1");
  EXPECT_EQ(error_of(port(8, NLM_F_DUMP)), EINVAL);
  EXPECT_EQ(error_of(port(1, 0)), EINVAL);
  EXPECT_EQ(error_of(host.ask(Request(type(RDMA_NLDEV_CMD_RES_GET), NLM_F_DUMP), caller)), EOPNOTSUPP);
  EXPECT_EQ(error_of(host.ask(Request(type(RDMA_NLDEV_CMD_NEWLINK), 0), caller)), EPERM);
}

TEST(Netlink, WhatIsNoMessageIsDropped) {
  const Host host = two_hosts();
  Bytes request = Request(RTM_GETLINK, NLM_F_DUMP).with(ifinfomsg{}).bytes();
  EXPECT_TRUE(host.ask(Bytes(request.begin(), request.begin() + NLMSG_HDRLEN - 1)).empty());
  EXPECT_TRUE(host.ask(Bytes(request.begin(), request.end() - 1)).empty());
  for (const std::uint32_t length : {0u, 15u, 0xffff'ffffu}) {
    std::memcpy(request.data(), &length, sizeof length);
    EXPECT_TRUE(host.ask(request).empty());
  }
}

// Whatever is sent, answers are well-formed, and no more than was requested.
void check_answers(const Bytes& sent, int protocol) {
  const Host host = three_subnets();
  const NetlinkCaller caller{.protocol = protocol, .port = 1000, .strict = sent.size() % 2 == 0};
  std::size_t requests = 0;
  for (NetlinkBytes rest = sent; take_message(rest);) ++requests;
  const auto answered = host.ask(sent, caller);
  std::size_t ends = 0;
  for (const auto& message : messages(answered)) {
    RC_ASSERT(message.header.nlmsg_pid == caller.port);
    ends += message.header.nlmsg_type == NLMSG_DONE || message.header.nlmsg_type == NLMSG_ERROR;
  }
  RC_ASSERT(ends <= requests);
  RC_ASSERT(answered == host.ask(sent, caller));
}

RC_GTEST_PROP(NetlinkProperty, AnyBytesAreAnswered, (std::vector<std::uint8_t> bytes, bool rdma)) {
  const auto* from = reinterpret_cast<const std::byte*>(bytes.data());
  check_answers(Bytes(from, from + bytes.size()), rdma ? NETLINK_RDMA : NETLINK_ROUTE);
}

// Messages of known types with random lengths, headers and attributes.
RC_GTEST_PROP(NetlinkProperty, AnyMessagesAreAnswered, (bool rdma)) {
  Bytes sent;
  const int count = *rc::gen::inRange(1, 5);
  for (int i = 0; i < count; ++i) {
    const auto body = *rc::gen::container<std::vector<std::uint8_t>>(
        rc::gen::element<std::uint8_t>(0, 1, 2, 3, 4, 5, 8, 10, 12, 16, 20, 64, 128, 254, 255));
    nlmsghdr header{};
    header.nlmsg_len = std::uint32_t(int(NLMSG_HDRLEN + body.size()) + *rc::gen::element(0, 0, 0, 0, 1, -1, -20, 100));
    header.nlmsg_type = std::uint16_t(rdma ? RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, *rc::gen::inRange(0, 32))
                                           : *rc::gen::inRange(0, int(RTM_MAX) + 3));
    header.nlmsg_flags = std::uint16_t(*rc::gen::element(0, 1, 1, 1) | *rc::gen::element(0, 4, 0x300, 0x304));
    const auto append = [&](const void* bytes, std::size_t size) {
      const auto* from = static_cast<const std::byte*>(bytes);
      sent.insert(sent.end(), from, from + size);
    };
    append(&header, sizeof header);
    append(body.data(), body.size());
    sent.resize(NLMSG_ALIGN(sent.size()));
  }
  check_answers(sent, rdma ? NETLINK_RDMA : NETLINK_ROUTE);
}

}  // namespace
}  // namespace rnicsim::clock
