// Atomics: do they change memory as ibv_post_send(3) says, whoever else works on it?
#include <cstring>

#include "tests/verbs/rc_pair.h"

namespace rnicsim::testing {
namespace {

class Atomics : public RcPair {
 protected:
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
  // The other side waits, with its memory as prepared.
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

// WRITE, atomic, WRITE, atomic on one address, all at once: each sees what the one before left.
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

// More than the responder may have open: they wait for one another, and every one counts.
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
