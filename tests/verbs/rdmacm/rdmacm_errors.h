// SPDX-License-Identifier: Apache-2.0
// Fixture for tests of wrong use of librdmacm: a program on each of two hosts.
#pragma once

#include <gtest/gtest.h>
#include <rdma/rdma_verbs.h>

#include <cerrno>
#include <functional>
#include <string>
#include <vector>

#include "model/base/kernel.h"
#include "model/host/host_kernel.h"
#include "sim/adapter.h"
#include "tests/support/cm_program.h"
#include "tests/support/expect_errno.h"
#include "tests/support/two_hosts.h"

namespace rnicsim::testing {

inline constexpr std::uint16_t kPort = 7471;
inline constexpr Duration kMillisecond{1'000'000'000};
inline constexpr Duration kSecond{1'000'000'000'000};

// An IPv4 or IPv6 address for calls of librdmacm.
class Address {
 public:
  Address(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d, std::uint16_t port) {
    auto& ipv4 = reinterpret_cast<sockaddr_in&>(storage_);
    ipv4.sin_family = AF_INET;
    ipv4.sin_port = htons(port);
    ipv4.sin_addr.s_addr = htonl(std::uint32_t(a) << 24 | std::uint32_t(b) << 16 | std::uint32_t(c) << 8 | d);
  }
  // IPv6 address from byte 0 (`first`), byte 13 (`host`) and byte 15 (`last`); the other bytes are 0. Addresses of
  // hosts begin with fd, link-local ones with fe80.
  static Address ipv6(std::uint8_t first, std::uint8_t host, std::uint8_t last, std::uint16_t port) {
    Address made(0, 0, 0, 0, port);
    auto& ipv6 = reinterpret_cast<sockaddr_in6&>(made.storage_);
    ipv6 = {};
    ipv6.sin6_family = AF_INET6;
    ipv6.sin6_port = htons(port);
    ipv6.sin6_addr.s6_addr[0] = first;
    if (first == 0xfe) ipv6.sin6_addr.s6_addr[1] = 0x80;
    ipv6.sin6_addr.s6_addr[13] = host;
    ipv6.sin6_addr.s6_addr[15] = last;
    return made;
  }
  operator sockaddr*() { return reinterpret_cast<sockaddr*>(&storage_); }

 private:
  sockaddr_storage storage_{};
};

inline Address any(std::uint16_t port) { return {0, 0, 0, 0, port}; }
inline Address own(std::uint16_t port) { return {10, 0, 0, 1, port}; }
inline Address peer(std::uint16_t port = kPort) { return {10, 0, 1, 1, port}; }
inline Address group() { return {239, 1, 2, 3, 0}; }

inline rdma_conn_param parameters(const std::vector<std::uint8_t>& data = {}) {
  rdma_conn_param wanted{};
  wanted.private_data = data.data();
  wanted.private_data_len = std::uint8_t(data.size());
  return wanted;
}

class RdmacmErrors : public TwoHosts {
 protected:
  using Body = std::function<void(CmProgram& program)>;

  explicit RdmacmErrors(const std::vector<std::string>& faults = {}) : TwoHosts({}, faults) {}
  // Runs a program on each host; their remaining objects are destroyed at the end.
  void run_both(const Body& on_h0, const Body& on_h1) {
    run([&] { begin(0, on_h0); }, [&] { begin(1, on_h1); }, 400 * kSecond);
    for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(host(i).kernel().connection_ids(), 0u);
  }
  void run_alone(const Body& body) {
    run_both(body, [](CmProgram&) {});
  }
  // Runs `client` with an id whose route is resolved, against a listener on h1 for which `server` decides.
  void run_connected(const Body& client, const Body& server) {
    run_both(
        [&](CmProgram& program) {
          rdma_cm_id* id = program.make();
          program.resolve(id, CmProgram::ipv4(1, kPort));
          program.make_qp(id);
          id_ = id;
          meet(0);
          client(program);
        },
        [&](CmProgram& program) {
          program.listen(kPort);
          meet(1);
          server(program);
        });
  }
  rdma_cm_id* bound(CmProgram& program, Address address, rdma_port_space space = RDMA_PS_TCP) {
    rdma_cm_id* id = program.make(space);
    EXPECT_EQ(rdma_bind_addr(id, address), 0);
    return id;
  }
  static int set(rdma_cm_id* id, int name, int value) {
    return rdma_set_option(id, RDMA_OPTION_ID, name, &value, sizeof value);
  }
  void pass(std::size_t me, Duration time) {
    settle(me);
    sleep_until(now() + time);
  }

  rdma_cm_id* id_ = nullptr;  // id of the client; its route is resolved

 private:
  void begin(std::size_t me, const Body& body) {
    CmProgram program(process(me));
    body(program);
  }
};

}  // namespace rnicsim::testing
