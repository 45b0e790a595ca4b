// SPDX-License-Identifier: Apache-2.0
// Fixture for tests of XRC: a sender on h0, and receivers on h1 in one process or two.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "model/host/software_process.h"
#include "model/nic/capability_params.h"
#include "model/nic/personality/commands.h"
#include "tests/verbs/rc_pair.h"
#include "tests/verbs/shared_receive.h"

namespace rnicsim::testing {

inline ibv_xrcd* open_domain(ibv_context* context, int fd = -1, int flags = O_CREAT) {
  ibv_xrcd_init_attr wanted{};
  wanted.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  wanted.fd = fd;
  wanted.oflags = flags;
  errno = 0;
  return ibv_open_xrcd(context, &wanted);
}

inline ibv_srq* make_xrc_srq(ibv_pd* pd, ibv_xrcd* xrcd, ibv_cq* cq, std::uint32_t max_wr = 15) {
  ibv_srq_init_attr_ex wanted{};
  wanted.attr = {max_wr, 2, 0};
  wanted.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
  wanted.srq_type = IBV_SRQT_XRC;
  wanted.pd = pd;
  wanted.xrcd = xrcd;
  wanted.cq = cq;
  errno = 0;
  return ibv_create_srq_ex(pd->context, &wanted);
}

inline std::uint32_t number_of(ibv_srq* srq) {
  std::uint32_t number = ~0u;
  EXPECT_EQ(ibv_get_srq_num(srq, &number), 0);
  return number;
}

inline ibv_qp* make_receiver(ibv_context* context, ibv_xrcd* xrcd) {
  ibv_qp_init_attr_ex wanted{};
  wanted.qp_type = IBV_QPT_XRC_RECV;
  wanted.comp_mask = IBV_QP_INIT_ATTR_XRCD;
  wanted.xrcd = xrcd;
  errno = 0;
  return ibv_create_qp_ex(context, &wanted);
}

inline ibv_qp* open_receiver(ibv_context* context, ibv_xrcd* xrcd, std::uint32_t number) {
  ibv_qp_open_attr wanted{};
  wanted.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
  wanted.qp_num = number;
  wanted.xrcd = xrcd;
  wanted.qp_type = IBV_QPT_XRC_RECV;
  errno = 0;
  return ibv_open_qp(context, &wanted);
}

// A process's part of a domain: an SRQ, and optionally a receive QP of the domain.
struct Receiver : Endpoint {
  explicit Receiver(int fd = -1, bool makes_qp = true, const EndpointOptions& wanted = {}) : Endpoint(wanted) {
    EXPECT_EQ(ibv_destroy_qp(std::exchange(qp, nullptr)), 0);
    never_wait(context->async_fd);
    xrcd = open_domain(context, fd);
    EXPECT_NE(xrcd, nullptr);
    srq = make_xrc_srq(pd, xrcd, cq);
    EXPECT_NE(srq, nullptr);
    if (makes_qp) qp = make_receiver(context, xrcd);
  }
  static void never_wait(int fd) { ASSERT_EQ(fcntl(fd, F_SETFL, O_NONBLOCK), 0); }

  ibv_xrcd* xrcd = nullptr;
};

// Destination of a sender: the receive QP and the SRQ numbers.
struct XrcAddress {
  EndpointAddress end;
  std::uint32_t srqn = 0;
  std::uint32_t other_srqn = 0;
  std::uint64_t other_buffer = 0;
  std::uint32_t other_rkey = 0;
};

// One thread waits for it, and another thread gives it.
class Baton {
 public:
  void give(host::SoftwareProcess& by) {
    by.port().settle();
    given_ = true;
    wake(event_);
  }
  void await(host::SoftwareProcess& by) {
    by.port().settle();
    while (!given_) sleep_on(event_);
  }

 private:
  bool given_ = false;
  sc_core::sc_event event_{sc_core::sc_gen_unique_name("baton")};
};

class XrcDomain : public RcPair {
 protected:
  using RcPair::RcPair;
  void SetUp() override {
    if (!capabilities().features().xrc) GTEST_SKIP() << "nic.capabilities.xrc";
  }

  static EndpointOptions sender() { return {.type = IBV_QPT_XRC_SEND, .rnr_retry = 0}; }
  static ibv_send_wr to(std::uint32_t srqn, ibv_send_wr wr) {
    wr.qp_type.xrc.remote_srqn = srqn;
    return wr;
  }
  static void complete_to(Endpoint& end, std::uint32_t srqn, const ibv_send_wr& wr,
                          ibv_wc_status status = IBV_WC_SUCCESS) {
    complete(end, to(srqn, wr), status);
  }

  using Sends = std::function<void(Endpoint&, const XrcAddress&)>;
  using Receives = std::function<void(Receiver&)>;
  // Connects a sender and a receiver and runs both bodies. `prepare` adds to the receiver's address.
  void run_xrc(const Sends& on_h0, const Receives& on_h1, const EndpointOptions& h0 = sender(),
               const EndpointOptions& h1 = {}, const std::function<void(Receiver&, XrcAddress&)>& prepare = {}) {
    Exchange<XrcAddress> addresses;
    run(
        [&] {
          Endpoint end(h0);
          const auto peer = addresses.swap(0, {.end = end.address()});
          end.connect(peer.end);
          meet(0);
          on_h0(end, peer);
          meet(0);
        },
        [&] {
          Receiver end(-1, true, h1);
          XrcAddress mine{.end = end.address(), .srqn = number_of(end.srq)};
          if (prepare) prepare(end, mine);
          end.connect(addresses.swap(1, mine).end);
          meet(1);
          on_h1(end);
          meet(1);
        });
  }
};

}  // namespace rnicsim::testing
