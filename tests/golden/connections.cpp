// SPDX-License-Identifier: Apache-2.0
// Behaviours of the connection manager: two librdmacm programs that connect.
#include "model/nic/capability_params.h"
#include "tests/golden/behaviours.h"

namespace rnicsim::testing {
namespace {

constexpr std::uint16_t kPort = 7471;
constexpr Capability kDatagrams{"nic.capabilities.ud", &nic::CapabilityParams::ud};

// Accepts every request, and disconnects when the peer does.
void accept_all(CmProgram& program) {
  program.handler = [&program](rdma_cm_event& event) {
    if (event.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
      program.make_qp(event.id);
      EXPECT_EQ(CmProgram::accept(event.id), 0);
    } else if (event.event == RDMA_CM_EVENT_DISCONNECTED) {
      EXPECT_EQ(rdma_disconnect(event.id), 0);
    }
  };
}

void be_accepted(CmProgram& program) {
  program.connect(CmProgram::ipv4(1, kPort));
  program.await(RDMA_CM_EVENT_ESTABLISHED);
}

void accept_one(CmProgram& program) {
  accept_all(program);
  program.listen(kPort);
  program.await(RDMA_CM_EVENT_ESTABLISHED);
}

}  // namespace

std::vector<Behaviour> connections() {
  std::vector<Behaviour> all{
      {.name = "cm_connect",
       .title = "rdma_connect and rdma_accept: REQ, REP, RTU, and both QPs go to RTS",
       .connects = be_accepted,
       .listens = accept_one},
      {.name = "cm_reject",
       .title = "rdma_connect is rejected by the program that listens",
       .connects =
           [](CmProgram& program) {
             program.connect(CmProgram::ipv4(1, kPort));
             EXPECT_EQ(program.await(RDMA_CM_EVENT_REJECTED).status, 28);
           },
       .listens =
           [](CmProgram& program) {
             program.handler = [](rdma_cm_event& event) { EXPECT_EQ(rdma_reject(event.id, nullptr, 0), 0); };
             program.listen(kPort);
             program.await(RDMA_CM_EVENT_CONNECT_REQUEST);
           }},
      {.name = "cm_disconnect",
       .title = "rdma_disconnect of both sides: DREQ, DREP, timewait and its end",
       .connects =
           [](CmProgram& program) {
             rdma_cm_id* id = program.connect(CmProgram::ipv4(1, kPort));
             program.await(RDMA_CM_EVENT_ESTABLISHED);
             EXPECT_EQ(rdma_disconnect(id), 0);
             program.await(RDMA_CM_EVENT_TIMEWAIT_EXIT);
           },
       .listens =
           [](CmProgram& program) {
             accept_one(program);
             program.await(RDMA_CM_EVENT_TIMEWAIT_EXIT);
           }},
      {.name = "cm_lost_reply",
       .title = "the first REP is lost: it is sent again when its time is over",
       .faults = {"drop,cm=REP,count=1"},
       .connects = be_accepted,
       .listens = accept_one},
      {.name = "cm_lookup",
       .title = "a UD service is looked up: SIDR_REQ, SIDR_REP",
       .connects =
           [](CmProgram& program) {
             program.connect(CmProgram::ipv4(1, kPort), RDMA_PS_UDP);
             program.await(RDMA_CM_EVENT_ESTABLISHED);
           },
       .listens =
           [](CmProgram& program) {
             accept_all(program);
             program.listen(kPort, RDMA_PS_UDP);
             program.await(RDMA_CM_EVENT_CONNECT_REQUEST);
           }},
  };
  for (Behaviour& behaviour : all) behaviour.needs = kDatagrams;
  return all;
}

}  // namespace rnicsim::testing
