// SPDX-License-Identifier: Apache-2.0
// Fixture for tests of verbs: two connected RC endpoints, or one host alone.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "model/base/kernel.h"
#include "model/host/software_process.h"
#include "model/nic/nic.h"
#include "model/nic/nic_counters.h"
#include "sim/adapter.h"
#include "tests/support/endpoint.h"
#include "tests/support/two_hosts.h"

namespace rnicsim::testing {

class RcPair : public TwoHosts {
 protected:
  using TwoHosts::TwoHosts;
  using Body = std::function<void(Endpoint&)>;

  // Runs both bodies, each with a connected endpoint.
  void run_connected(Body on_h0, Body on_h1, const EndpointOptions& h0 = {}, const EndpointOptions& h1 = {},
                     Duration most = {1'000'000'000'000}) {
    Exchange<EndpointAddress> addresses;
    const auto body = [&](std::size_t me, const Body& action, const EndpointOptions& options) {
      Endpoint endpoint(options);
      endpoint.connect(addresses.swap(me, endpoint.address()));
      meet(me);
      action(endpoint);
      meet(me);
    };
    run([&] { body(0, on_h0, h0); }, [&] { body(1, on_h1, h1); }, most);
  }

  // Runs `action` with one endpoint in RESET; the other host is idle.
  void run_alone(Body action, const EndpointOptions& options = {}) {
    run(
        [&] {
          Endpoint endpoint(options);
          action(endpoint);
        },
        [] {});
  }

  // Runs `body` in `count` additional threads of the caller's process, and waits for their end.
  void run_threads(std::size_t count, const std::function<void(std::size_t)>& body, std::size_t me = 0) {
    std::size_t running = count;
    sc_core::sc_event ended("ended");
    for (std::size_t i = 0; i < count; ++i)
      process(me).spawn("thread" + std::to_string(me) + std::to_string(i), [&, i] {
        body(i);
        settle(me);
        if (--running == 0) wake(ended);
      });
    while (running != 0) sleep_on(ended);
  }

  // Lets simulated time pass, after the thread's charged CPU time.
  void pass(std::size_t me, Duration time) {
    settle(me);
    sleep_until(now() + time);
  }

  // Polls up to `looks` times, about a microsecond each. The default is longer than any wait of these tests.
  static std::optional<ibv_wc> completion_soon(ibv_cq* cq, int looks = 100) {
    ibv_wc wc{};
    for (int look = 0; look < looks; ++look)
      if (ibv_poll_cq(cq, 1, &wc) == 1) return wc;
    return std::nullopt;
  }
  // Expects `count` completions with one status, whose wr_id count up from `first`.
  static void expect_completions(ibv_cq* cq, ibv_wc_status status, std::uint64_t first, std::uint64_t count) {
    for (std::uint64_t id = first; id < first + count; ++id) {
      const auto wc = completion_soon(cq);
      ASSERT_TRUE(wc) << "none for wr_id " << id;
      EXPECT_EQ(wc->status, status);
      EXPECT_EQ(wc->wr_id, id);
    }
  }

  static int move(ibv_qp* qp, ibv_qp_state state) {
    ibv_qp_attr attributes{};
    attributes.qp_state = state;
    return ibv_modify_qp(qp, &attributes, IBV_QP_STATE);
  }
  static ibv_qp_attr query(ibv_qp* qp) {
    ibv_qp_attr attributes;
    ibv_qp_init_attr initial;
    EXPECT_EQ(ibv_query_qp(qp, &attributes, IBV_QP_STATE, &initial), 0);
    return attributes;
  }

  // Fills the buffer with 1, 2, 3 ... modulo 256; filled(): a range holds the bytes that fill() writes at `source`.
  static void fill(Endpoint& end) { std::iota(end.buffer.begin(), end.buffer.end(), std::uint8_t{1}); }
  static bool filled(const Endpoint& end, std::size_t at, std::size_t length, std::size_t source = 0) {
    for (std::size_t i = 0; i < length; ++i)
      if (end.buffer[at + i] != std::uint8_t(source + i + 1)) return false;
    return true;
  }
  static void complete(Endpoint& end, const ibv_send_wr& request, ibv_wc_status status = IBV_WC_SUCCESS) {
    ASSERT_EQ(end.post(request), 0);
    EXPECT_EQ(end.completion().status, status);
  }
  static void send(Endpoint& end, std::uint32_t length, ibv_wc_status status = IBV_WC_SUCCESS) {
    complete(end, end.request(IBV_WR_SEND, 0, length), status);
  }
  nic::EngineCounters counters(std::size_t index) { return host(index).nic().counters().engine; }
  // Longer than any operation in progress takes.
  static constexpr Duration kSettled{20'000'000};

  static constexpr int kManyEvents = 9000;  // a pipe of Linux holds 8192 records at most

  static void never_wait(int fd) { ASSERT_EQ(fcntl(fd, F_SETFL, O_NONBLOCK), 0); }
  // Takes and acknowledges pending events; returns their number.
  static int take_cq_events(ibv_comp_channel* channel) {
    ibv_cq* cq = nullptr;
    void* owner = nullptr;
    int count = 0;
    for (; ibv_get_cq_event(channel, &cq, &owner) == 0; ++count) ibv_ack_cq_events(cq, 1);
    EXPECT_EQ(errno, EAGAIN);
    return count;
  }
  static std::vector<ibv_event_type> take_async_events(ibv_context* context) {
    std::vector<ibv_event_type> types;
    ibv_async_event event;
    while (ibv_get_async_event(context, &event) == 0) {
      types.push_back(event.event_type);
      ibv_ack_async_event(&event);
    }
    EXPECT_EQ(errno, EAGAIN);
    return types;
  }
};

}  // namespace rnicsim::testing
