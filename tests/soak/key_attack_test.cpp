// SPDX-License-Identifier: Apache-2.0
// A key opens only memory whose key was given to the sender. The attacker's queue pair has every right in its own
// protection domain. It tries random keys, keys near those of its victims, and the victims' keys: of another domain in
// its peer's process, of another process and of another host, windows included. All memory must stay unchanged, and
// every attempt must be refused and counted once.
//
// RNICSIM_SOAK_KEYS: number of keys (default 6,000).
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <random>

#include "model/host/kernel_agent.h"
#include "model/host/software_process.h"
#include "sim/adapter.h"
#include "sim/adapter_counters.h"
#include "sim/config/config.h"
#include "sim/system.h"
#include "tests/verbs/rc_pair.h"

namespace rnicsim::testing {
namespace {

constexpr std::uint64_t kCheckEvery = 500;

std::uint64_t keys_to_try() {
  const char* wanted = std::getenv("RNICSIM_SOAK_KEYS");
  return wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 6'000;
}

// Memory under attack.
struct Victim {
  const std::vector<std::uint8_t>* memory;
  std::uint32_t key;
  std::uint64_t address;
};

class KeyAttack : public RcPair {
 protected:
  // Memory in another domain than the endpoint's, with every right.
  class Vault {
   public:
    explicit Vault(Endpoint& end) : memory(4096, 0x77), pd(ibv_alloc_pd(end.context)) {
      mr = ibv_reg_mr(pd, memory.data(), memory.size(), end.options.mr_access | IBV_ACCESS_MW_BIND);
    }
    ~Vault() {
      EXPECT_EQ(ibv_dereg_mr(mr), 0);
      EXPECT_EQ(ibv_dealloc_pd(pd), 0);
    }
    Victim victim() const { return {&memory, mr->rkey, reinterpret_cast<std::uint64_t>(memory.data())}; }

    std::vector<std::uint8_t> memory;
    ibv_pd* pd;
    ibv_mr* mr;
  };

  void reconnect(Endpoint& attacker, Endpoint& peer) {
    for (Endpoint* end : {&attacker, &peer}) ASSERT_EQ(move(end->qp, IBV_QPS_RESET), 0);
    const auto near = attacker.address(), far = peer.address();
    attacker.connect(far);
    peer.connect(near);
  }

  std::uint32_t guess(const Endpoint& end) {
    for (;;) {
      const auto& victim = victims_[random_() % victims_.size()];
      std::uint32_t key = victim.key;
      switch (random_() % 4) {
        case 0: key = std::uint32_t(random_()); break;
        case 1: key = std::uint32_t(random_() % 64) << 8 | std::uint32_t(random_() % 256); break;
        case 2: key ^= 1u << random_() % 16; break;
        default: break;
      }
      if (key >> 8 != end.mr->rkey >> 8) return key;  // the attacker's own key is no guess
    }
  }

  void try_key(Endpoint& attacker, Endpoint& peer) {
    const auto& victim = victims_[random_() % victims_.size()];
    const bool local = random_() % 4 == 0;
    const auto key = guess(local ? attacker : peer);
    constexpr ibv_wr_opcode kOpcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD,
                                          IBV_WR_ATOMIC_CMP_AND_SWP};
    const auto opcode = kOpcodes[random_() % 4];
    const auto address = victim.address + random_() % 64 * 8;
    auto wr = attacker.request(opcode, 0, 8);
    if (opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_READ)
      wr.wr.rdma = {address, key};
    else
      wr.wr.atomic = {address, 0x7777777777777777, 0, key};
    if (local) {
      wr = attacker.request(random_() % 2 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, 0, 8);
      wr.sg_list->lkey = key;
      wr.sg_list->addr = address;
    }
    const auto refused = refusals();
    ASSERT_EQ(attacker.post(wr), 0);
    ASSERT_EQ(attacker.completion().status, local ? IBV_WC_LOC_PROT_ERR : IBV_WC_REM_ACCESS_ERR) << std::hex << key;
    ASSERT_EQ(refusals(), refused + 1);
    reconnect(attacker, peer);
  }

  std::uint64_t refusals() {
    return host(0).counters().nic.translation.refused + host(1).counters().nic.translation.refused;
  }

  std::vector<Victim> victims_;
  std::mt19937_64 random_{2026};
};

TEST_F(KeyAttack, OpensNothing) {
  // A process of h1 to which neither end belongs.
  bool over = false;
  sc_core::sc_event told("told");
  host::SoftwareProcess bystander("bystander", system().config().host, host(1).agent(), [&] {
    Endpoint end;
    Vault vault(end);
    victims_.push_back(vault.victim());
    wake(told);
    while (!over) sleep_on(told);
  });
  Endpoint* peer = nullptr;
  const auto attack = [&](Endpoint& attacker) {
    Vault here(attacker);
    Vault there(*peer);
    victims_.push_back(here.victim());
    victims_.push_back(there.victim());
    std::unique_ptr<ibv_mw, int (*)(ibv_mw*)> window(nullptr, ibv_dealloc_mw);
    if (windows()) {
      window.reset(ibv_alloc_mw(there.pd, IBV_MW_TYPE_1));
      victims_.push_back({&there.memory, window->rkey, here.victim().address});
    }
    const auto untouched = there.memory;
    std::ranges::fill(attacker.buffer, 0x11);
    const auto own = attacker.buffer;
    const auto check = [&] {
      for (const auto& victim : victims_) ASSERT_TRUE(*victim.memory == untouched);
      ASSERT_TRUE(attacker.buffer == own);
    };
    const auto tries = keys_to_try();
    const auto before = refusals();
    for (std::uint64_t i = 1; i <= tries && !HasFatalFailure(); ++i) {
      try_key(attacker, *peer);
      if (i % kCheckEvery == 0) check();
    }
    check();
    EXPECT_EQ(refusals() - before, tries);
  };
  run_connected(
      [&](Endpoint& end) {
        meet(0);
        attack(end);
        over = true;
        wake(told);
      },
      [&](Endpoint& end) {
        peer = &end;
        while (victims_.empty()) sleep_on(told);
        meet(1);
        while (!bystander.finished()) pass(1, {1'000'000});
      },
      {}, {}, {1'000'000'000'000'000});
}

}  // namespace
}  // namespace rnicsim::testing
