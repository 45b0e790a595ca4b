// SPDX-License-Identifier: Apache-2.0
// Atomics change memory as ibv_post_send(3) says, with concurrent accesses of others.
#include <array>
#include <cstring>
#include <vector>

#include "model/nic/nic.h"
#include "model/nic/nic_counters.h"
#include "sim/adapter.h"
#include "tests/verbs/rc_pair.h"

namespace rnicsim::testing {
namespace {

class Atomics : public RcPair {
 protected:
  using RcPair::RcPair;

  static std::uint64_t word(const Endpoint& end, std::size_t offset) {
    std::uint64_t value;
    std::memcpy(&value, end.buffer.data() + offset, sizeof value);
    return value;
  }
  static void set(Endpoint& end, std::size_t offset, std::uint64_t value) {
    std::memcpy(end.buffer.data() + offset, &value, sizeof value);
  }
  static void expect_success(Endpoint& end, ibv_wc_opcode opcode, std::uint64_t wr_id = 0) {
    const auto wc = end.completion();
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.opcode, opcode);
    EXPECT_EQ(wc.wr_id, wr_id);
  }
  // The other side waits; its memory is prepared.
  static void nothing(Endpoint&) {}
};

TEST_F(Atomics, TheDeviceSaysThatItHasThem) {
  run_alone([](Endpoint& end) {
    ibv_device_attr attributes{};
    ASSERT_EQ(ibv_query_device(end.context, &attributes), 0);
    EXPECT_EQ(attributes.atomic_cap, IBV_ATOMIC_HCA);
  });
}

TEST_F(Atomics, FetchAndAdd) {
  run_connected(
      [&](Endpoint& end) {
        ASSERT_EQ(end.post(end.fetch_add(8, 5, 16)), 0);
        expect_success(end, IBV_WC_FETCH_ADD);
        EXPECT_EQ(word(end, 8), 0u);
        ASSERT_EQ(end.post(end.fetch_add(8, ~0ull, 16)), 0);
        expect_success(end, IBV_WC_FETCH_ADD);
        EXPECT_EQ(word(end, 8), 5u);
        ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_READ, 0, 8, 16)), 0);
        expect_success(end, IBV_WC_RDMA_READ);
        EXPECT_EQ(word(end, 0), 4u);
      },
      nothing);
}

TEST_F(Atomics, CompareAndSwap) {
  run_connected(
      [&](Endpoint& end) {
        ASSERT_EQ(end.post(end.compare_swap(8, 0, 0x1122334455667788)), 0);
        expect_success(end, IBV_WC_COMP_SWAP);
        EXPECT_EQ(word(end, 8), 0u);
        ASSERT_EQ(end.post(end.compare_swap(8, 1, 2)), 0);  // does not match
        expect_success(end, IBV_WC_COMP_SWAP);
        EXPECT_EQ(word(end, 8), 0x1122334455667788u);
        ASSERT_EQ(end.post(end.compare_swap(8, 0x1122334455667788, 3)), 0);
        expect_success(end, IBV_WC_COMP_SWAP);
        EXPECT_EQ(word(end, 8), 0x1122334455667788u);
        ASSERT_EQ(end.post(end.fetch_add(8, 0)), 0);
        expect_success(end, IBV_WC_FETCH_ADD);
        EXPECT_EQ(word(end, 8), 3u);
      },
      nothing);
}

// WRITE, atomic, WRITE, atomic on one address, all posted at once: each sees the result of the previous one.
TEST_F(Atomics, OrderedWithWrites) {
  run_connected(
      [](Endpoint& end) {
        set(end, 0, 100);
        set(end, 8, 200);
        auto first = end.request(IBV_WR_RDMA_WRITE, 0, 8, 64);
        ASSERT_EQ(end.post(first), 0);
        ASSERT_EQ(end.post(end.fetch_add(16, 1, 64)), 0);
        ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE, 8, 8, 64)), 0);
        ASSERT_EQ(end.post(end.fetch_add(24, 1, 64)), 0);
        ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_READ, 32, 8, 64)), 0);
        for (int i = 0; i < 5; ++i) EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
        EXPECT_EQ(word(end, 16), 100u);
        EXPECT_EQ(word(end, 24), 200u);
        EXPECT_EQ(word(end, 32), 201u);
      },
      nothing);
}

// More atomics than the responder may have outstanding: they wait for one another, and all take effect.
TEST_F(Atomics, MoreThanTheResponderHasResourcesFor) {
  EndpointOptions options;
  options.max_rd_atomic = 2;
  run_connected(
      [](Endpoint& end) {
        for (std::uint64_t id = 0; id < 20; ++id) {
          auto wr = end.fetch_add(8 * static_cast<std::uint32_t>(id), 1, 512);
          wr.wr_id = id;
          ASSERT_EQ(end.post(wr), 0);
        }
        for (std::uint64_t id = 0; id < 20; ++id) {
          expect_success(end, IBV_WC_FETCH_ADD, id);
          EXPECT_EQ(word(end, 8 * id), id);
        }
      },
      nothing, options, options);
}

TEST_F(Atomics, TheResultMayBeScattered) {
  run_connected(
      [](Endpoint& end) {
        ASSERT_EQ(end.post(end.fetch_add(0, 0x0807060504030201)), 0);
        expect_success(end, IBV_WC_FETCH_ADD);
        auto wr = end.fetch_add(0, 0);
        ibv_sge parts[] = {*wr.sg_list, *wr.sg_list};
        parts[0].length = 3;
        parts[1].length = 5;
        parts[1].addr += 100;
        wr.sg_list = parts;
        wr.num_sge = 2;
        ASSERT_EQ(end.post(wr), 0);
        expect_success(end, IBV_WC_FETCH_ADD);
        EXPECT_EQ(std::vector<std::uint8_t>(end.buffer.begin(), end.buffer.begin() + 3),
                  (std::vector<std::uint8_t>{1, 2, 3}));
        EXPECT_EQ(std::vector<std::uint8_t>(end.buffer.begin() + 100, end.buffer.begin() + 105),
                  (std::vector<std::uint8_t>{4, 5, 6, 7, 8}));
      },
      nothing);
}

// With relaxed ordering reads pass writes that wait for credits; there are few credits.
class AtomicsOfRelaxedOrdering : public Atomics {
 protected:
  static constexpr std::size_t kCounting = 4;
  static constexpr std::size_t kWriting = 2;

  AtomicsOfRelaxedOrdering() : Atomics({"nic.pcie.relaxed_ordering=true", "nic.pcie.posted_headers=4"}) {}

  // Queue pairs on one region; an endpoint uses one of them at a time.
  static std::vector<ibv_qp*> more_queue_pairs(Endpoint& end) {
    std::vector<ibv_qp*> qps{end.qp};
    while (qps.size() < kCounting + kWriting) qps.push_back(end.create_qp());
    return qps;
  }
  static std::vector<EndpointAddress> addresses_of(Endpoint& end, const std::vector<ibv_qp*>& qps) {
    std::vector<EndpointAddress> addresses;
    for (ibv_qp* qp : qps) {
      end.qp = qp;
      addresses.push_back(end.address());
    }
    return addresses;
  }
  static void connect_all(Endpoint& end, const std::vector<ibv_qp*>& qps, const std::vector<EndpointAddress>& remote) {
    for (std::size_t i = 0; i < qps.size(); ++i) {
      end.qp = qps[i];
      end.connect(remote[i]);
    }
  }
};

// All atomics on one word, while others use up the posted credits.
TEST_F(AtomicsOfRelaxedOrdering, NoUpdateIsLost) {
  constexpr std::uint64_t kAdds = 100;
  Exchange<std::vector<EndpointAddress>> addresses;
  std::uint64_t counted = 0;
  const auto body = [&](std::size_t me, const auto& action) {
    Endpoint end;
    const auto qps = more_queue_pairs(end);
    connect_all(end, qps, addresses.swap(me, addresses_of(end, qps)));
    meet(me);
    action(end, qps);
    meet(me);
    if (me == 1) counted = word(end, 64);
    for (std::size_t i = 1; i < qps.size(); ++i) EXPECT_EQ(ibv_destroy_qp(qps[i]), 0);
    end.qp = qps[0];
  };
  const auto count_and_write = [&](Endpoint& end, const std::vector<ibv_qp*>& qps) {
    std::array<std::uint64_t, kCounting + kWriting> sent{}, under_way{};
    for (std::uint64_t done = 0; done < kAdds * kCounting;) {
      for (std::size_t i = 0; i < qps.size(); ++i) {
        end.qp = qps[i];
        const bool counts = i < kCounting;
        for (; under_way[i] < 4 && (!counts || sent[i] < kAdds); ++under_way[i], ++sent[i]) {
          auto wr =
              counts ? end.fetch_add(8 * std::uint32_t(i), 1, 64) : end.request(IBV_WR_RDMA_WRITE, 4096, 16384, 16384);
          wr.wr_id = i;
          ASSERT_EQ(end.post(wr), 0);
        }
      }
      const auto wc = end.completion();
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
      --under_way[wc.wr_id];
      done += wc.wr_id < kCounting;
    }
  };
  run([&] { body(0, count_and_write); }, [&] { body(1, [](Endpoint&, const auto&) {}); });
  EXPECT_EQ(counted, kAdds * kCounting);
  EXPECT_GT(host(1).nic().counters().dma.write_stalls, 0u);
}

TEST_F(Atomics, AreNeverInline) {
  run_connected(
      [](Endpoint& end) {
        auto wr = end.fetch_add(0, 1);
        wr.send_flags = IBV_SEND_INLINE;
        EXPECT_EQ(end.post(wr), EINVAL);
      },
      nothing);
}

}  // namespace
}  // namespace rnicsim::testing
