// SPDX-License-Identifier: Apache-2.0
// Addresses and ports: rdma_create_id, rdma_bind_addr, rdma_listen, and shared ports.
#include "tests/verbs/rdmacm/rdmacm_errors.h"

namespace rnicsim::testing {
namespace {

class RdmacmPorts : public RdmacmErrors {};

TEST_F(RdmacmPorts, PortSpaces) {
  run_alone([&](CmProgram& program) {
    rdma_cm_id* id = nullptr;
    EXPECT_ERRNO(rdma_create_id(program.channel(), &id, nullptr, rdma_port_space(0x1234)), EINVAL);
    for (const auto space : {RDMA_PS_TCP, RDMA_PS_UDP, RDMA_PS_IPOIB, RDMA_PS_IB}) program.make(space);
  });
}

TEST_F(RdmacmPorts, AddressesThatAreNotOurs) {
  run_alone([&](CmProgram& program) {
    rdma_cm_id* id = program.make();
    EXPECT_ERRNO(rdma_bind_addr(id, peer()), EADDRNOTAVAIL);
    EXPECT_ERRNO(rdma_bind_addr(id, Address(192, 168, 1, 1, 0)), EADDRNOTAVAIL);
    EXPECT_ERRNO(rdma_bind_addr(id, Address::ipv6(0xfd, 1, 1, 0)), EADDRNOTAVAIL);
    EXPECT_ERRNO(rdma_bind_addr(id, Address::ipv6(0xfe, 0, 1, 0)), EINVAL);  // link-local without a scope
    sockaddr_storage strange{};
    strange.ss_family = AF_UNIX;
    EXPECT_ERRNO(rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&strange)), EINVAL);
    EXPECT_EQ(rdma_bind_addr(id, own(kPort)), 0);
    EXPECT_ERRNO(rdma_bind_addr(id, own(kPort + 1)), EINVAL);
    EXPECT_EQ(rdma_bind_addr(program.make(), Address::ipv6(0xfd, 0, 1, kPort)), 0);
  });
}

TEST_F(RdmacmPorts, PortsInUse) {
  run_alone([&](CmProgram& program) {
    rdma_cm_id* first = bound(program, own(kPort));
    EXPECT_ERRNO(rdma_bind_addr(program.make(), own(kPort)), EADDRINUSE);
    EXPECT_ERRNO(rdma_bind_addr(program.make(), any(kPort)), EADDRNOTAVAIL);
    EXPECT_EQ(rdma_bind_addr(program.make(RDMA_PS_UDP), own(kPort)), 0);  // another port space
    EXPECT_EQ(rdma_bind_addr(program.make(), own(kPort + 1)), 0);
    rdma_cm_id* wildcard = bound(program, any(kPort + 2));
    EXPECT_ERRNO(rdma_bind_addr(program.make(), own(kPort + 2)), EADDRNOTAVAIL);
    EXPECT_ERRNO(rdma_bind_addr(program.make(), any(kPort + 2)), EADDRNOTAVAIL);
    program.destroy(first);
    program.destroy(wildcard);
    EXPECT_EQ(rdma_bind_addr(program.make(), any(kPort)), 0);
    EXPECT_EQ(rdma_bind_addr(program.make(), own(kPort + 2)), 0);
  });
}

TEST_F(RdmacmPorts, PortsThatAreShared) {
  run_alone([&](CmProgram& program) {
    rdma_cm_id* ids[] = {program.make(), program.make(), program.make()};
    for (rdma_cm_id* id : {ids[0], ids[1]}) {
      EXPECT_EQ(set(id, RDMA_OPTION_ID_REUSEADDR, 1), 0);
      EXPECT_EQ(rdma_bind_addr(id, own(kPort)), 0);
    }
    EXPECT_ERRNO(rdma_bind_addr(ids[2], own(kPort)), EADDRINUSE);  // this id does not share
    EXPECT_ERRNO(rdma_listen(ids[0], 0), EADDRINUSE);              // a listening id does not share, either
    program.destroy(ids[1]);
    EXPECT_EQ(rdma_listen(ids[0], 0), 0);
    EXPECT_EQ(set(ids[2], RDMA_OPTION_ID_REUSEADDR, 1), 0);
    EXPECT_ERRNO(rdma_bind_addr(ids[2], own(kPort)), EADDRINUSE);
    EXPECT_ERRNO(set(ids[0], RDMA_OPTION_ID_REUSEADDR, 1), EINVAL);
  });
}

TEST_F(RdmacmPorts, FamiliesOfAPort) {
  run_alone([&](CmProgram& program) {
    rdma_cm_id* both = bound(program, Address::ipv6(0, 0, 0, kPort));
    EXPECT_ERRNO(rdma_bind_addr(program.make(), any(kPort)), EADDRNOTAVAIL);
    EXPECT_ERRNO(rdma_bind_addr(program.make(), own(kPort)), EADDRNOTAVAIL);
    rdma_cm_id* six = program.make();
    EXPECT_EQ(set(six, RDMA_OPTION_ID_AFONLY, 1), 0);
    EXPECT_EQ(rdma_bind_addr(six, Address::ipv6(0, 0, 0, kPort + 1)), 0);
    EXPECT_EQ(rdma_bind_addr(program.make(), any(kPort + 1)), 0);
    EXPECT_EQ(rdma_listen(six, 0), 0);
    EXPECT_ERRNO(set(six, RDMA_OPTION_ID_AFONLY, 0), EINVAL);
    EXPECT_EQ(rdma_listen(both, 0), 0);
  });
}

// As in Linux, both ids need AFONLY, and 127.0.0.1 counts as a wildcard.
TEST_F(RdmacmPorts, WildcardsMeetTheOtherFamily) {
  run_alone([&](CmProgram& program) {
    bound(program, Address::ipv6(0xfd, 0, 1, kPort));
    EXPECT_ERRNO(rdma_bind_addr(program.make(), any(kPort)), EADDRNOTAVAIL);
    EXPECT_EQ(rdma_bind_addr(program.make(), own(kPort)), 0);
    bound(program, Address(127, 0, 0, 1, kPort + 1));
    EXPECT_ERRNO(rdma_bind_addr(program.make(), own(kPort + 1)), EADDRNOTAVAIL);
    rdma_cm_id* four = program.make();
    EXPECT_EQ(set(four, RDMA_OPTION_ID_AFONLY, 0), 0);
    EXPECT_EQ(rdma_bind_addr(four, any(kPort + 2)), 0);
    rdma_cm_id* six = program.make();
    EXPECT_EQ(set(six, RDMA_OPTION_ID_AFONLY, 1), 0);
    EXPECT_ERRNO(rdma_bind_addr(six, Address::ipv6(0, 0, 0, kPort + 2)), EADDRNOTAVAIL);
    // An option that is set on a bound id takes effect at once.
    EXPECT_EQ(set(four, RDMA_OPTION_ID_AFONLY, 1), 0);
    EXPECT_EQ(rdma_bind_addr(six, Address::ipv6(0, 0, 0, kPort + 2)), 0);
  });
}

TEST_F(RdmacmPorts, SharingAPortCanBeginLater) {
  run_alone([&](CmProgram& program) {
    rdma_cm_id* first = bound(program, own(kPort));
    rdma_cm_id* second = program.make();
    EXPECT_EQ(set(second, RDMA_OPTION_ID_REUSEADDR, 1), 0);
    EXPECT_ERRNO(rdma_bind_addr(second, own(kPort)), EADDRINUSE);
    EXPECT_EQ(set(first, RDMA_OPTION_ID_REUSEADDR, 1), 0);
    EXPECT_EQ(rdma_bind_addr(second, own(kPort)), 0);
  });
}

TEST_F(RdmacmPorts, AChosenSourceStays) {
  run_alone([&](CmProgram& program) {
    rdma_cm_id* id = bound(program, own(kPort));
    program.resolve(id, CmProgram::ipv4(0, kPort));
    rdma_cm_id* to_wildcard = bound(program, own(kPort + 1));
    EXPECT_EQ(rdma_resolve_addr(to_wildcard, nullptr, Address(127, 0, 0, 1, kPort), 100), 0);
    EXPECT_EQ(program.next().type, RDMA_CM_EVENT_ADDR_RESOLVED);
    for (rdma_cm_id* one : {id, to_wildcard})
      EXPECT_EQ(reinterpret_cast<sockaddr_in*>(rdma_get_local_addr(one))->sin_addr.s_addr, htonl(0x0a000001));
  });
}

TEST_F(RdmacmPorts, AResolvedAddressIsNoWildcardAnyMore) {
  run_alone([&](CmProgram& program) {
    rdma_cm_id* id = bound(program, any(kPort));
    EXPECT_ERRNO(rdma_bind_addr(program.make(), Address::ipv6(0xfd, 0, 1, kPort)), EADDRNOTAVAIL);
    program.resolve(id, CmProgram::ipv4(1, kPort));
    EXPECT_EQ(rdma_bind_addr(program.make(), Address::ipv6(0xfd, 0, 1, kPort)), 0);
  });
}

TEST_F(RdmacmPorts, ListeningInTheWrongState) {
  run_alone([&](CmProgram& program) {
    rdma_cm_id* unbound = program.make();
    EXPECT_EQ(rdma_listen(unbound, 0), 0);  // at any address and any port
    EXPECT_NE(rdma_get_src_port(unbound), 0);
    EXPECT_ERRNO(rdma_listen(unbound, 0), EINVAL);
    rdma_cm_id* resolved = program.make();
    program.resolve(resolved, CmProgram::ipv4(1, kPort));
    EXPECT_ERRNO(rdma_listen(resolved, 0), EINVAL);
  });
}

}  // namespace
}  // namespace rnicsim::testing
