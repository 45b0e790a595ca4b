// SPDX-License-Identifier: Apache-2.0
// Thread domains and parent domains.
#include <cstdlib>
#include <cstring>
#include <map>

#include "model/host/software_process.h"
#include "tests/verbs/rc_pair.h"

namespace rnicsim::testing {
namespace {

// Requests to a program's allocator, and memory that is still allocated.
struct Allocations {
  std::map<std::uint64_t, int> asked;  // number of requests by use
  std::map<void*, std::uint64_t> out;
  ibv_pd* pd = nullptr;
  enum class Mode { give, leave, fail, misaligned } mode = Mode::give;
};

void* allocate(ibv_pd* pd, void* context, std::size_t bytes, std::size_t alignment, std::uint64_t use) {
  auto& all = *static_cast<Allocations*>(context);
  EXPECT_EQ(pd, all.pd);
  ++all.asked[use];
  if (all.mode == Allocations::Mode::leave) return IBV_ALLOCATOR_USE_DEFAULT;
  if (all.mode == Allocations::Mode::fail) return nullptr;
  const std::size_t shift = all.mode == Allocations::Mode::misaligned ? 1 : 0;
  auto* whole = static_cast<std::byte*>(std::aligned_alloc(alignment, (bytes + 2 * alignment) / alignment * alignment));
  std::memset(whole, 0, bytes + shift);
  all.out[whole + shift] = use;
  return whole + shift;
}

void give_back(ibv_pd* pd, void* context, void* memory, std::uint64_t use) {
  auto& all = *static_cast<Allocations*>(context);
  EXPECT_EQ(pd, all.pd);
  ASSERT_TRUE(all.out.contains(memory));
  EXPECT_EQ(all.out[memory], use);
  all.out.erase(memory);
  std::free(reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(memory) & ~std::uintptr_t{63}));
}

class Domains : public RcPair {
 protected:
  static ibv_td* thread_domain(Endpoint& end) {
    ibv_td_init_attr attributes{};
    ibv_td* td = ibv_alloc_td(end.context, &attributes);
    EXPECT_NE(td, nullptr);
    return td;
  }
  static ibv_pd* parent_domain(Endpoint& end, ibv_td* td = nullptr, Allocations* allocations = nullptr) {
    ibv_parent_domain_init_attr attributes{};
    attributes.pd = end.pd;
    attributes.td = td;
    if (allocations != nullptr) {
      attributes.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
      attributes.alloc = allocate;
      attributes.free = give_back;
      attributes.pd_context = allocations;
    }
    ibv_pd* pd = ibv_alloc_parent_domain(end.context, &attributes);
    EXPECT_NE(pd, nullptr);
    if (allocations != nullptr) allocations->pd = pd;
    return pd;
  }
  static ibv_qp* queue_pair(Endpoint& end, ibv_pd* pd) {
    ibv_qp_init_attr initial{};
    initial.send_cq = initial.recv_cq = end.cq;
    initial.cap = {16, 16, 4, 4, 64};
    initial.qp_type = IBV_QPT_RC;
    initial.sq_sig_all = 1;
    return ibv_create_qp(pd, &initial);
  }
  static ibv_cq_ex* completion_queue(Endpoint& end, ibv_pd* pd) {
    ibv_cq_init_attr_ex wanted{};
    wanted.cqe = 32;
    wanted.wc_flags = IBV_WC_STANDARD_FLAGS;
    wanted.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
    wanted.parent_domain = pd;
    return ibv_create_cq_ex(end.context, &wanted);
  }
  // Creates the endpoint's CQ, queue pair and region again in this domain.
  static void rebuild(Endpoint& end, ibv_pd* pd) {
    ASSERT_EQ(ibv_destroy_qp(end.qp), 0);
    ASSERT_EQ(ibv_destroy_cq(end.cq), 0);
    ASSERT_EQ(ibv_dereg_mr(end.mr), 0);
    end.cq = ibv_cq_ex_to_cq(completion_queue(end, pd));
    ASSERT_NE(end.cq, nullptr);
    end.mr = ibv_reg_mr(pd, end.buffer.data(), end.buffer.size(), end.options.mr_access);
    ASSERT_NE(end.mr, nullptr);
    EXPECT_EQ(end.mr->pd, pd);
    end.qp = queue_pair(end, pd);
    ASSERT_NE(end.qp, nullptr);
    EXPECT_EQ(end.qp->pd, pd);
  }
  static void tear_down(Endpoint& end) {
    EXPECT_EQ(ibv_destroy_qp(end.qp), 0);
    EXPECT_EQ(ibv_destroy_cq(end.cq), 0);
    EXPECT_EQ(ibv_dereg_mr(end.mr), 0);
    end.qp = nullptr;
    end.cq = nullptr;
    end.mr = nullptr;
  }
  // h0's objects are in a parent domain; messages in both directions.
  void run_traffic(ibv_pd* (*make)(Endpoint&, Allocations&, ibv_td*&), Allocations& allocations) {
    constexpr int kMessages = 100;
    Exchange<EndpointAddress> addresses;
    const auto exchange = [](Endpoint& end) {
      for (std::uint64_t i = 0; i < kMessages; ++i) {
        ASSERT_EQ(end.receive(0, 64, i), 0);
        ASSERT_EQ(end.post(end.request(IBV_WR_SEND, 0, 8)), 0);
        for (int both = 0; both < 2; ++both) ASSERT_EQ(end.completion().status, IBV_WC_SUCCESS);
      }
    };
    run(
        [&] {
          Endpoint end;
          ibv_td* td = nullptr;
          ibv_pd* parent = make(end, allocations, td);
          rebuild(end, parent);
          end.connect(addresses.swap(0, end.address()));
          meet(0);
          exchange(end);
          meet(0);
          EXPECT_EQ(ibv_dealloc_pd(parent), EBUSY);
          tear_down(end);
          EXPECT_EQ(ibv_dealloc_pd(end.pd), EBUSY);
          if (td != nullptr) {
            EXPECT_EQ(ibv_dealloc_td(td), EBUSY);
          }
          EXPECT_EQ(ibv_dealloc_pd(parent), 0);
          if (td != nullptr) {
            EXPECT_EQ(ibv_dealloc_td(td), 0);
          }
          EXPECT_TRUE(allocations.out.empty());
        },
        [&] {
          Endpoint end;
          end.connect(addresses.swap(1, end.address()));
          meet(1);
          exchange(end);
          meet(1);
        });
  }
};

TEST_F(Domains, TrafficInAParentDomain) {
  Allocations none;
  run_traffic([](Endpoint& end, Allocations&, ibv_td*&) { return parent_domain(end); }, none);
}

TEST_F(Domains, TrafficInAThreadDomain) {
  Allocations none;
  run_traffic(
      [](Endpoint& end, Allocations&, ibv_td*& td) {
        td = thread_domain(end);
        return parent_domain(end, td);
      },
      none);
}

// Doorbell records and rings lie in the program's memory.
TEST_F(Domains, TrafficInMemoryOfTheProgram) {
  Allocations allocations;
  run_traffic([](Endpoint& end, Allocations& all, ibv_td*&) { return parent_domain(end, nullptr, &all); }, allocations);
  EXPECT_EQ(allocations.asked, (std::map<std::uint64_t, int>{{1, 1}, {2, 1}, {3, 1}, {4, 2}}));
}

TEST_F(Domains, AnAllocatorMayLeaveItToTheLibrary) {
  Allocations allocations;
  allocations.mode = Allocations::Mode::leave;
  run_traffic([](Endpoint& end, Allocations& all, ibv_td*&) { return parent_domain(end, nullptr, &all); }, allocations);
  EXPECT_EQ(allocations.asked.size(), 4u);
}

TEST_F(Domains, AnAllocatorMayFail) {
  run_alone([](Endpoint& end) {
    Allocations allocations;
    ibv_pd* parent = parent_domain(end, nullptr, &allocations);
    for (const auto mode : {Allocations::Mode::fail, Allocations::Mode::misaligned}) {
      allocations.mode = mode;
      errno = 0;
      EXPECT_EQ(queue_pair(end, parent), nullptr);
      EXPECT_EQ(errno, ENOMEM);
      EXPECT_EQ(completion_queue(end, parent), nullptr);
      EXPECT_EQ(errno, ENOMEM);
      EXPECT_TRUE(allocations.out.empty());
    }
    EXPECT_EQ(ibv_dealloc_pd(parent), 0);
  });
}

// A CQ that grows gets its new ring from the same allocator.
TEST_F(Domains, ResizedInMemoryOfTheProgram) {
  run_alone([](Endpoint& end) {
    Allocations allocations;
    ibv_pd* parent = parent_domain(end, nullptr, &allocations);
    ibv_cq* cq = ibv_cq_ex_to_cq(completion_queue(end, parent));
    ASSERT_NE(cq, nullptr);
    EXPECT_EQ(ibv_resize_cq(cq, 200), 0);
    EXPECT_EQ(allocations.asked[3], 2);
    EXPECT_EQ(allocations.out.size(), 2u);
    EXPECT_EQ(ibv_destroy_cq(cq), 0);
    EXPECT_TRUE(allocations.out.empty());
    EXPECT_EQ(ibv_dealloc_pd(parent), 0);
  });
}

TEST_F(Domains, WhatIsNotUnderstood) {
  run_alone([](Endpoint& end) {
    Endpoint other;
    ibv_pd* parent = parent_domain(end);
    const auto refused = [&](int error, const std::function<void(ibv_parent_domain_init_attr&)>& spoil) {
      ibv_parent_domain_init_attr attributes{};
      attributes.pd = end.pd;
      spoil(attributes);
      errno = 0;
      EXPECT_EQ(ibv_alloc_parent_domain(end.context, &attributes), nullptr);
      EXPECT_EQ(errno, error);
    };
    refused(EINVAL, [](auto& attributes) { attributes.pd = nullptr; });
    refused(EINVAL, [&](auto& attributes) { attributes.pd = other.pd; });
    refused(EINVAL, [&](auto& attributes) { attributes.pd = parent; });
    refused(EINVAL, [](auto& attributes) { attributes.comp_mask = 1u << 20; });
    refused(EINVAL, [](auto& attributes) {
      attributes.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
      attributes.alloc = allocate;
    });
    ibv_td* strange = thread_domain(other);
    refused(EINVAL, [&](auto& attributes) { attributes.td = strange; });
    EXPECT_EQ(ibv_dealloc_td(strange), 0);
    ibv_td_init_attr attributes{};
    attributes.comp_mask = 1;
    errno = 0;
    EXPECT_EQ(ibv_alloc_td(end.context, &attributes), nullptr);
    EXPECT_EQ(errno, EINVAL);
    errno = 0;
    EXPECT_EQ(completion_queue(end, end.pd), nullptr);  // a PD that is no parent domain
    EXPECT_EQ(errno, EINVAL);
    errno = 0;
    EXPECT_EQ(completion_queue(end, nullptr), nullptr);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(ibv_dealloc_pd(parent), 0);
  });
}

// Regions of the PD can be used by QPs of its parent domains, and the other way round.
TEST_F(Domains, OneProtectionDomain) {
  run_alone([](Endpoint& end) {
    ibv_pd* one = parent_domain(end);
    ibv_pd* two = parent_domain(end);
    EXPECT_EQ(one->handle, end.pd->handle);
    ibv_qp* qp = queue_pair(end, one);
    ASSERT_NE(qp, nullptr);
    EXPECT_EQ(ibv_dealloc_pd(two), 0);
    EXPECT_EQ(ibv_dealloc_pd(one), EBUSY);
    EXPECT_EQ(ibv_dealloc_pd(end.pd), EBUSY);
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
    const auto good = std::exchange(one->handle, 0x7fffff);
    EXPECT_EQ(ibv_dealloc_pd(one), ENOENT);
    one->handle = good;
    EXPECT_EQ(ibv_dealloc_pd(one), 0);
  });
}

// Queue pairs of a thread domain need no lock for the doorbell, however many there are.
TEST_F(Domains, AThreadHasADoorbellPageOfItsOwn) {
  run_alone([&](Endpoint& end) {
    const auto post_time = [&](ibv_pd* pd) {
      std::vector<ibv_qp*> qps;
      for (int i = 0; i < 24; ++i) qps.push_back(queue_pair(end, pd));
      std::swap(end.qp, qps.back());
      end.connect(end.address());
      settle(0);
      const auto begin = process(0).port().thread_time();
      EXPECT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE, 0, 8)), 0);
      const auto taken = process(0).port().thread_time() - begin;
      std::swap(end.qp, qps.back());
      for (ibv_qp* qp : qps) EXPECT_EQ(ibv_destroy_qp(qp), 0);
      return taken;
    };
    const auto shared = post_time(end.pd);
    ibv_td* td = thread_domain(end);
    ibv_pd* parent = parent_domain(end, td);
    const auto alone = post_time(parent);
    EXPECT_EQ(shared - alone, Duration{10'000});  // host.cpu.doorbell_lock
    EXPECT_EQ(ibv_dealloc_pd(parent), 0);
    EXPECT_EQ(ibv_dealloc_td(td), 0);
  });
}

}  // namespace
}  // namespace rnicsim::testing
