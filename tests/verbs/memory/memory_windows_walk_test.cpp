// SPDX-License-Identifier: Apache-2.0
// Random walk over operations on memory windows, compared with a model.
#include <algorithm>
#include <random>
#include <vector>

#include "tests/verbs/memory/memory_windows.h"

namespace rnicsim::testing {
namespace {

class MemoryWindowsWalk : public MemoryWindows {
 protected:
  struct Window {
    ibv_mw* mw;
    bool bound = false;
    std::uint32_t key = 0, begin = 0, length = 0;
    unsigned access = 0;

    bool is_type2() const { return mw->type == IBV_MW_TYPE_2; }
  };

  void step() {
    Window& window = windows_[random_() % windows_.size()];
    switch (random_() % 8) {
      case 0:
      case 1: return bind(window);
      case 2: return close(window);
      case 3: return replace(window);
      default: return use(window);
    }
  }

  // Binds a random range; beyond the region unless it is `valid`.
  ibv_wc_status try_to_bind(Window& window, bool valid) {
    window.begin = std::uint32_t(random_() % 60'000);
    window.length = 1 + std::uint32_t(random_() % 4'000);
    window.access = random_() % 8 << 1;
    const auto info = part(valid ? window.begin : 65'000, window.length + (valid ? 0u : 4'000u), window.access);
    if (!window.is_type2()) {
      const auto status = bind1(window.mw, info);
      window.key = window.mw->rkey;
      return status;
    }
    window.key = (window.mw->rkey & ~0xffu) | std::uint32_t(random_() % 256);
    return bind2(window.mw, window.key, info);
  }

  // A bound window of type 2 cannot be bound again.
  void bind(Window& window) {
    auto tried = window;
    const bool is_taken = window.is_type2() && window.bound;
    const bool valid = random_() % 8 != 0 && !is_taken;
    ASSERT_EQ(try_to_bind(tried, valid || is_taken), valid ? IBV_WC_SUCCESS : IBV_WC_MW_BIND_ERR);
    if (valid) {
      window = tried;
      window.bound = true;
      return;
    }
    if (!window.is_type2()) window.mw->rkey = window.bound || window.key != 0 ? window.key : window.mw->rkey - 1;
    recover();
  }

  void close(Window& window) {
    if (!window.is_type2()) {
      ASSERT_EQ(bind1(window.mw, {nullptr, 0, 0, 0}), IBV_WC_SUCCESS);
      window.key = window.mw->rkey;
    } else if (window.bound) {
      ASSERT_EQ(local_invalidate(window.key), IBV_WC_SUCCESS);
    }
    window.bound = false;
  }

  void replace(Window& window) {
    const auto type = window.mw->type;
    ASSERT_EQ(ibv_dealloc_mw(window.mw), 0);
    window = {.mw = make(type)};
  }

  // Accesses at the window's edges and inside.
  void use(const Window& window) {
    const auto offset = window.begin + std::uint32_t(random_() % (window.length + 8)) - 4;
    const auto length = 1 + std::uint32_t(random_() % 16);
    const bool writes = random_() % 2;
    const unsigned needs = writes ? IBV_ACCESS_REMOTE_WRITE : IBV_ACCESS_REMOTE_READ;
    const bool inside = offset >= window.begin && offset + length <= window.begin + window.length;
    const bool granted = window.bound && inside && (window.access & needs) != 0;
    auto expected = far().buffer;
    for (std::uint32_t i = 0; i < length; ++i) near().buffer[i] = std::uint8_t(random_());
    if (granted && writes) std::copy_n(near().buffer.begin(), length, expected.begin() + offset);
    const auto status = reach(writes ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, window.key, offset, length);
    ASSERT_EQ(status, granted ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
    ASSERT_TRUE(far().buffer == expected);
    if (granted && !writes) {
      ASSERT_TRUE(std::equal(expected.begin() + offset, expected.begin() + offset + length, near().buffer.begin()));
    }
    ++(granted ? granted_ : refused_);
    if (!granted) recover();
  }

  // A region with bound windows cannot be reregistered.
  void reregister() {
    const bool is_used = std::ranges::any_of(windows_, &Window::bound);
    EXPECT_EQ(ibv_rereg_mr(far().mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, far().options.mr_access),
              is_used ? IBV_REREG_MR_ERR_CMD : 0);
  }

  // A new connection invalidates windows of type 2.
  void recover() {
    reconnect();
    for (auto& window : windows_)
      if (window.is_type2()) window.bound = false;
  }

  std::mt19937 random_{5};
  std::vector<Window> windows_;
  int granted_ = 0, refused_ = 0;
};

TEST_F(MemoryWindowsWalk, OfSixHundredSteps) {
  run_both([&] {
    for (int i = 0; i < 6; ++i) windows_.push_back({.mw = make(i % 2 == 0 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2)});
    for (int i = 0; i < 600 && !HasFatalFailure(); ++i) {
      SCOPED_TRACE(i);
      step();
      if (random_() % 16 == 0) reregister();
    }
    EXPECT_GT(granted_, 20);
    EXPECT_GT(refused_, 100);
    for (auto& window : windows_) EXPECT_EQ(ibv_dealloc_mw(window.mw), 0);
  });
}

}  // namespace
}  // namespace rnicsim::testing
