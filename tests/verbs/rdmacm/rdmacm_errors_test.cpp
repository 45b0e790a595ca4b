// SPDX-License-Identifier: Apache-2.0
// Errors of librdmacm over the kernel's connection manager, for calls in the wrong order or with invalid arguments: the
// errno or the event that Linux gives, and the event at the other side.
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "tests/verbs/rdmacm/rdmacm_errors.h"

namespace rnicsim::testing {
namespace {

// --- rdma_resolve_addr, rdma_resolve_route.

TEST_F(RdmacmErrors, NobodyHasTheAddress) {
  run_alone([&](CmProgram& program) {
    rdma_cm_id* id = program.make();
    const Duration start = now();
    EXPECT_EQ(rdma_resolve_addr(id, nullptr, Address(10, 0, 200, 1, kPort), 300), 0);
    EXPECT_ERRNO(rdma_resolve_addr(id, nullptr, peer(), 300), EINVAL);  // one resolution at a time
    const CmEvent failed = program.next();
    EXPECT_EQ(failed.type, RDMA_CM_EVENT_ADDR_ERROR);
    EXPECT_EQ(failed.status, -ETIMEDOUT);
    EXPECT_GE(failed.at, start + 300 * kMillisecond);
    EXPECT_LT(failed.at, start + 301 * kMillisecond);
    // The id may resolve another address.
    EXPECT_EQ(rdma_resolve_addr(id, nullptr, peer(), 300), 0);
    EXPECT_EQ(program.next().type, RDMA_CM_EVENT_ADDR_RESOLVED);
  });
}

TEST_F(RdmacmErrors, NoRouteLeadsThere) {
  run_alone([&](CmProgram& program) {
    rdma_cm_id* id = program.make();
    EXPECT_ERRNO(rdma_resolve_addr(id, nullptr, Address(192, 168, 1, 1, kPort), 300), ENETUNREACH);
    // The id is bound now, to IPv4.
    EXPECT_ERRNO(rdma_resolve_addr(id, nullptr, Address::ipv6(0x20, 0, 1, kPort), 300), EINVAL);
    program.resolve(id, CmProgram::ipv4(1, kPort));
  });
}

TEST_F(RdmacmErrors, ResolvingInTheWrongState) {
  run_alone([&](CmProgram& program) {
    rdma_cm_id* id = program.make();
    EXPECT_ERRNO(rdma_resolve_route(id, 100), EINVAL);
    EXPECT_ERRNO(rdma_resolve_addr(id, peer(), peer(), 100), EADDRNOTAVAIL);  // the source is no address of this host
    EXPECT_ERRNO(rdma_resolve_addr(id, nullptr, nullptr, 100), EINVAL);
    EXPECT_EQ(rdma_resolve_addr(id, own(0), peer(), 100), 0);
    EXPECT_ERRNO(rdma_resolve_route(id, 100), EINVAL);
    EXPECT_EQ(program.next().type, RDMA_CM_EVENT_ADDR_RESOLVED);
    EXPECT_ERRNO(rdma_resolve_addr(id, nullptr, peer(), 100), EINVAL);
    EXPECT_ERRNO(rdma_resolve_route(id, 0), EINVAL);
    EXPECT_EQ(rdma_resolve_route(id, 100), 0);
    EXPECT_EQ(program.next().type, RDMA_CM_EVENT_ROUTE_RESOLVED);
    EXPECT_ERRNO(rdma_resolve_route(id, 100), EINVAL);
    EXPECT_ERRNO(rdma_resolve_route(bound(program, any(0)), 100), EINVAL);
  });
}

// --- rdma_create_qp.

TEST_F(RdmacmErrors, QueuePairs) {
  run_alone([&](CmProgram& program) {
    EXPECT_ERRNO(CmProgram::try_qp(program.make()), EINVAL);  // no device yet
    EXPECT_ERRNO(CmProgram::try_qp(bound(program, any(0))), EINVAL);
    rdma_cm_id* id = bound(program, own(0));
    EXPECT_EQ(CmProgram::try_qp(id), 0);
    EXPECT_ERRNO(CmProgram::try_qp(id), EINVAL);  // one per id
    ibv_qp_init_attr wanted{};
    wanted.qp_type = IBV_QPT_RC;
    wanted.cap = {1 << 24, 1, 1, 1, 0};
    rdma_cm_id* another = bound(program, own(0));
    EXPECT_ERRNO(rdma_create_qp(another, nullptr, &wanted), EINVAL);
    EXPECT_EQ(another->send_cq, nullptr);
    EXPECT_EQ(another->qp, nullptr);
  });
}

// --- rdma_connect, rdma_accept, rdma_reject, rdma_disconnect.

TEST_F(RdmacmErrors, ConnectingInTheWrongState) {
  run_connected(
      [&](CmProgram& program) {
        auto wanted = parameters();
        EXPECT_ERRNO(rdma_connect(program.make(), &wanted), EINVAL);
        EXPECT_ERRNO(rdma_connect(bound(program, own(0)), &wanted), EINVAL);
        EXPECT_ERRNO(rdma_accept(id_, &wanted), EINVAL);
        EXPECT_ERRNO(rdma_reject(id_, nullptr, 0), EINVAL);
        EXPECT_ERRNO(rdma_disconnect(id_), EINVAL);
        EXPECT_ERRNO(rdma_establish(id_), EINVAL);
        EXPECT_ERRNO(rdma_notify(id_, IBV_EVENT_COMM_EST), EINVAL);
        wanted.responder_resources = 17;
        EXPECT_ERRNO(rdma_connect(id_, &wanted), EINVAL);
      },
      [](CmProgram&) {});
}

TEST_F(RdmacmErrors, ConnectingTwice) {
  run_connected(
      [&](CmProgram& program) {
        auto wanted = parameters();
        // The first call fails before it reaches the kernel's state machine.
        const std::vector<std::uint8_t> too_much(57);
        auto longer = parameters(too_much);
        EXPECT_ERRNO(rdma_connect(id_, &longer), EINVAL);
        EXPECT_EQ(rdma_connect(id_, &wanted), 0);
        EXPECT_ERRNO(rdma_connect(id_, &wanted), EINVAL);
        EXPECT_EQ(program.next().type, RDMA_CM_EVENT_ESTABLISHED);
        EXPECT_ERRNO(rdma_connect(id_, &wanted), EINVAL);
        EXPECT_ERRNO(rdma_listen(id_, 0), EINVAL);
        EXPECT_ERRNO(rdma_notify(id_, IBV_EVENT_COMM_EST), EISCONN);
        EXPECT_EQ(rdma_disconnect(id_), 0);
        EXPECT_EQ(program.next().type, RDMA_CM_EVENT_DISCONNECTED);
        EXPECT_ERRNO(rdma_connect(id_, &wanted), EINVAL);
      },
      [](CmProgram& program) {
        const CmEvent request = program.await(RDMA_CM_EVENT_CONNECT_REQUEST);
        program.make_qp(request.id);
        EXPECT_EQ(CmProgram::accept(request.id), 0);
        EXPECT_EQ(program.next().type, RDMA_CM_EVENT_ESTABLISHED);
        EXPECT_ERRNO(CmProgram::accept(request.id), EINVAL);
        EXPECT_ERRNO(rdma_reject(request.id, nullptr, 0), EINVAL);
        EXPECT_EQ(program.next().type, RDMA_CM_EVENT_DISCONNECTED);
        EXPECT_EQ(rdma_disconnect(request.id), 0);
        EXPECT_EQ(rdma_disconnect(request.id), 0);  // no error in Linux
      });
}

TEST_F(RdmacmErrors, AcceptingAPeerThatHasGone) {
  run_connected(
      [&](CmProgram& program) {
        auto wanted = parameters();
        EXPECT_EQ(rdma_connect(id_, &wanted), 0);
        meet(0);
        program.destroy(id_);
        meet(0);
      },
      [&](CmProgram& program) {
        const CmEvent request = program.await(RDMA_CM_EVENT_CONNECT_REQUEST);
        program.make_qp(request.id);
        meet(1);
        meet(1);
        pass(1, kMillisecond);
        EXPECT_ERRNO(CmProgram::accept(request.id), EINVAL);
        EXPECT_ERRNO(rdma_reject(request.id, nullptr, 0), EINVAL);
        EXPECT_FALSE(program.readable());
        program.destroy(request.id);
      });
}

TEST_F(RdmacmErrors, PrivateDataOfAnAcceptance) {
  const std::vector<std::uint8_t> most(196, 7), too_much(197);
  run_connected(
      [&](CmProgram& program) {
        std::vector<std::uint8_t> told;
        program.handler = [&](rdma_cm_event& event) {
          const auto* data = static_cast<const std::uint8_t*>(event.param.conn.private_data);
          told.assign(data, data + event.param.conn.private_data_len);
        };
        const std::vector<std::uint8_t> mine(56, 9);
        auto wanted = parameters(mine);
        EXPECT_EQ(rdma_connect(id_, &wanted), 0);
        EXPECT_EQ(program.next().type, RDMA_CM_EVENT_ESTABLISHED);
        EXPECT_EQ(told, most);
        meet(0);
        // The second connection's server passes too much private data, and so rejects.
        program.handler = nullptr;
        rdma_cm_id* id = program.connect(CmProgram::ipv4(1, kPort));
        const CmEvent refused = program.next();
        EXPECT_EQ(refused.type, RDMA_CM_EVENT_REJECTED);
        EXPECT_EQ(refused.id, id);
        EXPECT_EQ(refused.status, 28);
      },
      [&](CmProgram& program) {
        program.handler = [](rdma_cm_event& event) {
          if (event.event != RDMA_CM_EVENT_CONNECT_REQUEST || event.param.conn.private_data_len == 0) return;
          EXPECT_EQ(event.param.conn.private_data_len, 56);
        };
        CmEvent request = program.await(RDMA_CM_EVENT_CONNECT_REQUEST);
        program.make_qp(request.id);
        auto answer = parameters(most);
        EXPECT_EQ(rdma_accept(request.id, &answer), 0);
        meet(1);
        request = program.await(RDMA_CM_EVENT_CONNECT_REQUEST);
        program.make_qp(request.id);
        answer = parameters(too_much);
        EXPECT_ERRNO(rdma_accept(request.id, &answer), EINVAL);
        EXPECT_ERRNO(rdma_accept(request.id, &answer), EINVAL);
        pass(1, kMillisecond);
      });
}

TEST_F(RdmacmErrors, PrivateDataOfARejection) {
  run_connected(
      [&](CmProgram& program) {
        std::size_t told = 0;
        program.handler = [&](rdma_cm_event& event) { told = event.param.conn.private_data_len; };
        auto wanted = parameters();
        EXPECT_EQ(rdma_connect(id_, &wanted), 0);
        EXPECT_EQ(program.next().status, 28);
        EXPECT_EQ(told, 148u);
      },
      [&](CmProgram& program) {
        const CmEvent request = program.await(RDMA_CM_EVENT_CONNECT_REQUEST);
        const std::vector<std::uint8_t> data(149, 3);
        EXPECT_ERRNO(rdma_reject(request.id, data.data(), 149), EINVAL);
        EXPECT_EQ(rdma_reject(request.id, data.data(), 148), 0);
        EXPECT_ERRNO(rdma_reject(request.id, nullptr, 0), EINVAL);
      });
}

TEST_F(RdmacmErrors, SynchronousCallsFailWithTheEvent) {
  run_both(
      [&](CmProgram&) {
        rdma_cm_id* id = nullptr;
        ASSERT_EQ(rdma_create_id(nullptr, &id, nullptr, RDMA_PS_TCP), 0);
        EXPECT_ERRNO(rdma_resolve_addr(id, nullptr, Address(10, 0, 200, 1, kPort), 100), ETIMEDOUT);
        EXPECT_EQ(rdma_resolve_addr(id, nullptr, peer(), 100), 0);
        EXPECT_EQ(rdma_resolve_route(id, 100), 0);
        EXPECT_EQ(CmProgram::try_qp(id), 0);
        auto wanted = parameters();
        EXPECT_ERRNO(rdma_connect(id, &wanted), ECONNREFUSED);
        rdma_destroy_ep(id);
      },
      [](CmProgram&) {});
}

class RdmacmLostDreqs : public RdmacmErrors {
 protected:
  RdmacmLostDreqs() : RdmacmErrors({"drop,cm=DREQ"}) {}
};

TEST_F(RdmacmLostDreqs, ADisconnectionThatNobodyAnswersTimesOut) {
  run_connected(
      [&](CmProgram& program) {
        auto wanted = parameters();
        EXPECT_EQ(rdma_connect(id_, &wanted), 0);
        EXPECT_EQ(program.next().type, RDMA_CM_EVENT_ESTABLISHED);
        EXPECT_EQ(rdma_disconnect(id_), 0);
        const CmEvent over = program.next();
        EXPECT_EQ(over.type, RDMA_CM_EVENT_DISCONNECTED);
        EXPECT_EQ(over.status, -ETIMEDOUT);
      },
      [](CmProgram& program) {
        const CmEvent request = program.await(RDMA_CM_EVENT_CONNECT_REQUEST);
        program.make_qp(request.id);
        EXPECT_EQ(CmProgram::accept(request.id), 0);
        EXPECT_EQ(program.next().type, RDMA_CM_EVENT_ESTABLISHED);
        program.run_until(200 * kSecond);
        EXPECT_EQ(program.seen.back().type, RDMA_CM_EVENT_ESTABLISHED);
      });
}

class RdmacmLostRtus : public RdmacmErrors {
 protected:
  RdmacmLostRtus() : RdmacmErrors({"drop,cm=RTU"}) {}
};

TEST_F(RdmacmLostRtus, WhoIsNotifiedOfDataIsEstablishedAtOnce) {
  run_connected(
      [&](CmProgram& program) {
        auto wanted = parameters();
        EXPECT_EQ(rdma_connect(id_, &wanted), 0);
        EXPECT_EQ(program.next().type, RDMA_CM_EVENT_ESTABLISHED);
        meet(0);
      },
      [&](CmProgram& program) {
        const CmEvent request = program.await(RDMA_CM_EVENT_CONNECT_REQUEST);
        program.make_qp(request.id);
        EXPECT_EQ(CmProgram::accept(request.id), 0);
        pass(1, kMillisecond);
        EXPECT_FALSE(program.readable());
        EXPECT_EQ(rdma_notify(request.id, IBV_EVENT_COMM_EST), 0);
        EXPECT_TRUE(program.readable());
        EXPECT_EQ(program.next().type, RDMA_CM_EVENT_ESTABLISHED);
        EXPECT_ERRNO(rdma_notify(request.id, IBV_EVENT_COMM_EST), EISCONN);
        meet(1);
      });
}

// --- Backlogs.

TEST_F(RdmacmErrors, AFullBacklogLetsThePeerAskAgain) {
  constexpr int kClients = 3;
  run_both(
      [&](CmProgram& program) {
        meet(0);
        const Duration start = now();
        std::set<rdma_cm_id*> ids;
        for (int i = 0; i < kClients; ++i) ids.insert(program.connect(CmProgram::ipv4(1, kPort)));
        program.run_until(start + 30 * kSecond);
        for (const CmEvent& event : program.seen)
          if (event.type == RDMA_CM_EVENT_ESTABLISHED) ids.erase(event.id);
        EXPECT_TRUE(ids.empty());
        meet(0);
      },
      [&](CmProgram& program) {
        program.listen(kPort, RDMA_PS_TCP, 1);
        meet(1);
        pass(1, kSecond);
        // Only one request was kept.
        const CmEvent first = program.next();
        EXPECT_EQ(first.type, RDMA_CM_EVENT_CONNECT_REQUEST);
        EXPECT_FALSE(program.readable());
        program.handler = [&](rdma_cm_event& event) {
          if (event.event != RDMA_CM_EVENT_CONNECT_REQUEST) return;
          program.make_qp(event.id);
          EXPECT_EQ(CmProgram::accept(event.id), 0);
        };
        program.make_qp(first.id);
        EXPECT_EQ(CmProgram::accept(first.id), 0);
        program.run_until(30 * kSecond);
        meet(1);
      });
}

TEST_F(RdmacmErrors, AFullBacklogRefusesLookups) {
  run_both(
      [&](CmProgram& program) {
        meet(0);
        for (int i = 0; i < 2; ++i) program.connect(CmProgram::ipv4(1, kPort), RDMA_PS_UDP);
        const CmEvent refused = program.next();
        EXPECT_EQ(refused.type, RDMA_CM_EVENT_UNREACHABLE);
        EXPECT_EQ(refused.status, 2);  // SIDR_REP: rejected
        meet(0);
      },
      [&](CmProgram& program) {
        program.listen(kPort, RDMA_PS_UDP, 1);
        meet(1);
        meet(1);
      });
}

// --- Ids that are destroyed with unread events.

TEST_F(RdmacmErrors, UnreadEventsGoWithTheirId) {
  run_connected(
      [&](CmProgram& program) {
        auto wanted = parameters();
        EXPECT_EQ(rdma_connect(id_, &wanted), 0);
        pass(0, kMillisecond);
        EXPECT_TRUE(program.readable());
        program.destroy(id_);
        EXPECT_FALSE(program.readable());
        meet(0);
      },
      [&](CmProgram& program) {
        const CmEvent request = program.await(RDMA_CM_EVENT_CONNECT_REQUEST);
        program.make_qp(request.id);
        EXPECT_EQ(CmProgram::accept(request.id), 0);
        const CmEvent told = program.next();
        EXPECT_EQ(told.type, RDMA_CM_EVENT_REJECTED);  // the peer had the reply, but had not answered it
        EXPECT_EQ(told.status, 28);
        meet(1);
      });
}

TEST_F(RdmacmErrors, UnreadRequestsGoWithTheirListener) {
  run_both(
      [&](CmProgram& program) {
        meet(0);
        program.connect(CmProgram::ipv4(1, kPort));
        const CmEvent refused = program.next();
        EXPECT_EQ(refused.type, RDMA_CM_EVENT_REJECTED);
        EXPECT_EQ(refused.status, 28);
        program.connect(CmProgram::ipv4(1, kPort));
        EXPECT_EQ(program.await(RDMA_CM_EVENT_REJECTED).status, 8);  // there is no listener any more
      },
      [&](CmProgram& program) {
        rdma_cm_id* listener = program.listen(kPort);
        meet(1);
        while (!program.readable()) pass(1, kMillisecond);
        program.destroy(listener);
        EXPECT_FALSE(program.readable());
      });
}

TEST_F(RdmacmErrors, EventsFollowAnIdToAnotherChannel) {
  run_alone([&](CmProgram& program) {
    rdma_cm_id* id = program.make();
    EXPECT_EQ(rdma_resolve_addr(id, nullptr, peer(), 100), 0);
    pass(0, kMillisecond);
    rdma_event_channel* other = rdma_create_event_channel();
    ASSERT_NE(other, nullptr);
    EXPECT_TRUE(program.readable());
    EXPECT_EQ(rdma_migrate_id(id, other), 0);
    EXPECT_FALSE(program.readable());
    rdma_cm_event* event = nullptr;
    EXPECT_EQ(rdma_get_cm_event(other, &event), 0);
    EXPECT_EQ(event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
    EXPECT_EQ(event->id, id);
    EXPECT_EQ(rdma_ack_cm_event(event), 0);
    program.destroy(id);
    rdma_destroy_event_channel(other);
    // A synchronous id cannot become synchronous.
    ASSERT_EQ(rdma_create_id(nullptr, &id, nullptr, RDMA_PS_TCP), 0);
    EXPECT_ERRNO(rdma_migrate_id(id, nullptr), EINVAL);
    EXPECT_EQ(rdma_destroy_id(id), 0);
  });
}

TEST_F(RdmacmErrors, EventsStayWithAnIdThatStays) {
  run_alone([&](CmProgram& program) {
    rdma_cm_id* id = program.make();
    EXPECT_EQ(rdma_resolve_addr(id, nullptr, peer(), 100), 0);
    pass(0, kMillisecond);
    EXPECT_EQ(rdma_migrate_id(id, program.channel()), 0);
    ASSERT_TRUE(program.readable());
    EXPECT_EQ(program.next().type, RDMA_CM_EVENT_ADDR_RESOLVED);
  });
}

TEST_F(RdmacmErrors, UnreadEventsOfGroupsGoWithThem) {
  run_alone([&](CmProgram& program) {
    rdma_cm_id* id = bound(program, own(0), RDMA_PS_UDP);
    EXPECT_EQ(rdma_join_multicast(id, group(), nullptr), 0);
    pass(0, kMillisecond);
    EXPECT_TRUE(program.readable());
    EXPECT_EQ(rdma_leave_multicast(id, group()), 0);
    EXPECT_FALSE(program.readable());
    EXPECT_EQ(rdma_join_multicast(id, group(), nullptr), 0);
    pass(0, kMillisecond);
    rdma_event_channel* other = rdma_create_event_channel();
    EXPECT_EQ(rdma_migrate_id(id, other), 0);
    EXPECT_FALSE(program.readable());
    EXPECT_EQ(rdma_migrate_id(id, program.channel()), 0);
    EXPECT_TRUE(program.readable());
    program.destroy(id);
    EXPECT_FALSE(program.readable());
    rdma_destroy_event_channel(other);
  });
}

// --- rdma_set_option, rdma_join_multicast.

TEST_F(RdmacmErrors, Options) {
  run_alone([&](CmProgram& program) {
    rdma_cm_id* id = program.make();
    std::uint8_t byte = 0x20;
    int word = 1;
    const auto option = [&](int level, int name, auto& value, std::size_t bytes) {
      return rdma_set_option(id, level, name, &value, bytes);
    };
    EXPECT_EQ(option(RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, byte, 1), 0);
    EXPECT_ERRNO(option(RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, word, 4), EINVAL);
    EXPECT_ERRNO(option(RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, byte, 1), EINVAL);
    EXPECT_ERRNO(option(RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, byte, 1), EINVAL);
    EXPECT_ERRNO(option(RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, word, 4), EINVAL);
    EXPECT_EQ(option(RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, byte = 14, 1), 0);
    EXPECT_ERRNO(option(RDMA_OPTION_ID, 77, word, 4), ENOSYS);
    EXPECT_ERRNO(option(77, RDMA_OPTION_ID_TOS, byte, 1), ENOSYS);
    EXPECT_EQ(set(id, RDMA_OPTION_ID_REUSEADDR, 1), 0);
    EXPECT_EQ(rdma_bind_addr(id, own(kPort)), 0);
    EXPECT_ERRNO(set(id, RDMA_OPTION_ID_REUSEADDR, 0), EINVAL);  // the id is bound
    rdma_cm_id* datagrams = program.make(RDMA_PS_UDP);
    EXPECT_ERRNO(rdma_set_option(datagrams, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &byte, 1), EINVAL);
  });
}

TEST_F(RdmacmErrors, Groups) {
  run_alone([&](CmProgram& program) {
    EXPECT_ERRNO(rdma_join_multicast(program.make(RDMA_PS_UDP), group(), nullptr), EINVAL);  // no device
    EXPECT_ERRNO(rdma_join_multicast(bound(program, any(0), RDMA_PS_UDP), group(), nullptr), EINVAL);
    EXPECT_ERRNO(rdma_join_multicast(bound(program, own(0)), group(), nullptr), EINVAL);  // not a datagram id
    rdma_cm_id* id = bound(program, own(0), RDMA_PS_UDP);
    EXPECT_ERRNO(rdma_join_multicast(id, nullptr, nullptr), EINVAL);
    EXPECT_ERRNO(rdma_leave_multicast(id, group()), EADDRNOTAVAIL);
    program.make_qp(id);
    EXPECT_EQ(rdma_join_multicast(id, group(), nullptr), 0);
    EXPECT_EQ(program.next().type, RDMA_CM_EVENT_MULTICAST_JOIN);
    EXPECT_EQ(rdma_leave_multicast(id, group()), 0);
    EXPECT_ERRNO(rdma_leave_multicast(id, group()), EADDRNOTAVAIL);
    EXPECT_EQ(rdma_listen(bound(program, own(0), RDMA_PS_UDP), 0), 0);
  });
}

// --- rdma_create_ep, rdma_get_request.

TEST_F(RdmacmErrors, Endpoints) {
  run_alone([&](CmProgram& program) {
    bound(program, own(kPort));
    Address here = own(kPort), nowhere(10, 0, 200, 1, kPort), away(192, 168, 1, 1, kPort);
    rdma_addrinfo info{};
    info.ai_qp_type = IBV_QPT_RC;
    info.ai_port_space = RDMA_PS_TCP;
    rdma_cm_id* id = nullptr;
    info.ai_flags = RAI_PASSIVE;
    info.ai_src_addr = here;
    info.ai_src_len = sizeof(sockaddr_in);
    EXPECT_ERRNO(rdma_create_ep(&id, &info, nullptr, nullptr), EADDRINUSE);
    info.ai_flags = 0;
    info.ai_src_addr = nullptr;
    info.ai_src_len = 0;
    info.ai_dst_addr = nowhere;
    info.ai_dst_len = sizeof(sockaddr_in);
    EXPECT_ERRNO(rdma_create_ep(&id, &info, nullptr, nullptr), ETIMEDOUT);
    info.ai_dst_addr = away;
    EXPECT_ERRNO(rdma_create_ep(&id, &info, nullptr, nullptr), ENETUNREACH);
    EXPECT_EQ(id, nullptr);
    rdma_cm_id* listener = program.listen(kPort + 1);
    EXPECT_ERRNO(rdma_get_request(listener, &id), EINVAL);  // the listener is asynchronous
  });
}

}  // namespace
}  // namespace rnicsim::testing
