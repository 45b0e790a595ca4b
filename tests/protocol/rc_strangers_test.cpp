// SPDX-License-Identifier: Apache-2.0
// A connected queue pair accepts packets only from its peer, and only at its own address, whatever QPN, PSN and keys a
// packet has.
#include <algorithm>

#include "tests/protocol/rc_wire.h"

namespace rnicsim::testing::rc_strangers_test {
namespace {

struct Stranger {
  const char* name;
  std::uint8_t gid_index;  // GID index of the connection: 0 link-local, 1 IPv4, 2 global IPv6
  bool from_another;       // wrong source address; otherwise wrong destination address of the host
};
void PrintTo(const Stranger& stranger, std::ostream* out) { *out << stranger.name; }

class Strangers : public RcWire, public ::testing::WithParamInterface<Stranger> {
 protected:
  static roce::Gid gid_of(Endpoint& end, int index) {
    ibv_gid gid;
    EXPECT_EQ(ibv_query_gid(end.context, 1, index, &gid), 0);
    return std::to_array(gid.raw);
  }
  // Addresses of a packet from the peer to host `to`, with one address changed. `end` is on host `to`.
  roce::FrameAddresses strange_addresses(std::uint32_t to, Endpoint& end) {
    auto addresses = addresses_to(to);
    if (GetParam().from_another) {
      ++addresses.source.back();
    } else {
      addresses.destination = gid_of(end, (GetParam().gid_index + 1) % 3);
    }
    return addresses;
  }
  static EndpointOptions options() {
    EndpointOptions options;
    options.gid_index = GetParam().gid_index;
    return options;
  }
};

TEST_P(Strangers, RequestsAreDroppedAndCounted) {
  run_connected(
      [&](Endpoint& end) {
        complete(end, end.request(IBV_WR_RDMA_WRITE, 0, 64));
        meet(0);
        meet(0);
        // The next request uses the PSN of the forged packet.
        fill(end);
        complete(end, end.request(IBV_WR_RDMA_WRITE, 0, 64, 4096));
      },
      [&](Endpoint& end) {
        meet(1);
        auto headers = requests().front().headers;
        headers.bth.psn = headers.bth.psn + 1;
        headers.reth = roce::Reth{end.address().buffer, {end.address().rkey}, 64};
        const auto answered = answers().size();
        const auto before = end.buffer;
        forge(1, strange_addresses(1, end), headers, 64);
        pass(1, kSettled);
        EXPECT_EQ(counters(1).wrong_path, 1u);
        EXPECT_EQ(end.buffer, before);
        EXPECT_EQ(answers().size(), answered);
        // A forged packet with the peer's addresses is accepted.
        forge(1, headers, 64);
        pass(1, kSettled);
        EXPECT_EQ(counters(1).wrong_path, 1u);
        EXPECT_EQ(std::ranges::count(end.buffer, 0xf0), 64);
        meet(1);
      },
      options(), options());
}

// The NAK would end the queue pair.
TEST_P(Strangers, AnswersAreDroppedAndCounted) {
  run_connected(
      [&](Endpoint& end) {
        complete(end, end.request(IBV_WR_RDMA_WRITE, 0, 64));
        ASSERT_EQ(end.post(end.request(IBV_WR_SEND, 0, 64)), 0);
        pass(0, kSettled);
        // Wait until no RNR NAK is on the cable: the forged packet must come behind it.
        while (taken().back().from != 1) pass(0, Duration{100'000});
        const auto nak = answer_headers(roce::Opcode::acknowledge, end.qp->qp_num, end.options.psn + 1,
                                        roce::Aeth::kRemoteAccessError);
        forge(0, strange_addresses(0, end), nak, 0);
        pass(0, kSettled);
        EXPECT_EQ(counters(0).wrong_path, 1u);
        EXPECT_EQ(end.state(), IBV_QPS_RTS);
        meet(0);
        EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
      },
      [&](Endpoint& end) {
        meet(1);
        ASSERT_EQ(end.receive(0, 64), 0);
        EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
      },
      options(), options());
}
INSTANTIATE_TEST_SUITE_P(Of, Strangers,
                         ::testing::Values(Stranger{"link_local_source", 0, true}, Stranger{"ipv4_source", 1, true},
                                           Stranger{"ipv6_source", 2, true},
                                           Stranger{"link_local_destination", 0, false},
                                           Stranger{"ipv4_destination", 1, false},
                                           Stranger{"ipv6_destination", 2, false}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace rnicsim::testing::rc_strangers_test
