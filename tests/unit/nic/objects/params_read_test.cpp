// SPDX-License-Identifier: Apache-2.0
// Every documented parameter must have an effect: a change of each NIC parameter changes counters, times or traces.
#include <algorithm>
#include <array>
#include <sstream>

#include "model/nic/nic_params.h"
#include "tests/unit/nic/many_qps.h"

namespace rnicsim::nic::test {
namespace {

using abi::SendOpcode;

// Changes the parameter with the given number, and records all names.
class Change : public ParamVisitor {
 public:
  Change(std::size_t number, int attempt) : number_(number), attempt_(attempt) {}
  void param(const char* name, Duration& value, const char*, Range range) override {
    change(name, value.ps, range, 1000.0);
  }
  void param(const char* name, ByteCount& value, const char*, Range range) override {
    change(name, value.bytes, range);
  }
  void param(const char* name, BitRate& value, const char*, Range range) override {
    change(name, value.bits_per_second, range);
  }
  void param(const char* name, std::uint32_t& value, const char*, Range range) override { change(name, value, range); }
  void param(const char* name, std::uint64_t& value, const char*, Range range) override { change(name, value, range); }
  void param(const char* name, double& value, const char*, Range range) override { change(name, value, range); }
  void param(const char* name, bool& value, const char*) override {
    if (next(name)) value = !value;
  }
  void param(const char*, std::string&, const char*, std::span<const char* const>) override {}

  std::vector<std::string> names;

 protected:
  void enter(const char* name) override { prefix_.push_back(std::string(name) + "."); }
  void leave() override { prefix_.pop_back(); }

 private:
  bool next(const char* name) {
    std::string full;
    for (const auto& part : prefix_) full += part;
    names.push_back(full + name);
    return names.size() - 1 == number_;
  }
  // Twice, half, the least, or a hundred times the value, if in range.
  template <class Value>
  void change(const char* name, Value& value, Range range, double scale = 1) {
    if (!next(name)) return;
    const auto old = static_cast<double>(value);
    const double tries[] = {old * 2, old / 2, range.least * scale, old * 100};
    auto wanted = std::clamp(tries[attempt_], range.least * scale, std::min(range.most * scale, 1e15));
    if (wanted == old) wanted = std::min(old + 1, range.most * scale);
    value = static_cast<Value>(wanted);
  }

  const std::size_t number_;
  const int attempt_;
  std::vector<std::string> prefix_;
};

class Tell : public CounterVisitor {
 public:
  explicit Tell(std::ostream& out) : out_(out) {}
  void counter(const char* name, const Counter& value, const char*, const char*) override {
    out_ << name << value << ' ';
  }

 protected:
  void enter(const char*) override {}
  void leave() override {}

 private:
  std::ostream& out_;
};

// Bases: defaults; caches, links and windows so small that each of their parameters matters; caches of very few
// entries; an engine with jitter.
constexpr int kBases = 4;
constexpr int kAttempts = 4;
NicParams base(int number) {
  NicParams params;
  if (number == 3) params.jitter.delay = 20_ns;
  if (number == 0 || number == 3) return params;
  const bool least = number == 2;
  for (auto* cache : {&params.contexts.qpc, &params.contexts.cqc, &params.contexts.srqc, &params.contexts.mpt,
                      &params.contexts.mtt}) {
    cache->l0_entries = least ? 0 : 1;
    cache->l1_entries = least ? 1 : 2;
    cache->ways = 2;
    cache->banks = least ? 1 : 2;
    cache->bank_cycle = 60_ns;
    cache->miss_slots = 1;
  }
  params.send_wqes.entries = least ? 0 : params.send_wqes.entries;
  if (least) return params;
  params.units.transmit_units = params.units.receive_units = 2;
  params.dma.read_tags = 6;
  params.dma.read_bytes = {2048};
  params.dma.posted_headers = 6;
  params.dma.posted_data = {1024};
  params.dma.link.lanes = 4;
  params.dma.link.max_payload = {128};
  params.dma.burst = {4096};
  params.atomics.lock_slots = 8;
  params.tx.queue_packets = 3;
  return params;
}

constexpr std::uint32_t kShared = 4;  // QPs with one SRQ each
constexpr std::uint32_t kFirstShared = kFirstQpn + 16;
constexpr std::uint32_t kPaged = 3;    // paged regions (MTT)
constexpr std::uint32_t kIdleCqs = 6;  // only queried

class ParamsRead : public ManyPairs {
 protected:
  std::string observe(const NicParams& params) {
    std::ostringstream seen;
    build(params, 6, [](abi::Qpc& c) {
      c.timeout = 14;
      c.path_mtu = 1;  // the least that a device may allow
    });
    a().connect(a(), 1, [](abi::Qpc& c) { c.timeout = 14; });  // over the loopback
    for (std::uint32_t i = 0; i < kPaged; ++i) paged_region(i);
    share(params);
    for (std::uint32_t i = 0; i < kIdleCqs; ++i) idle_cq(i);
    for (int round = 0; round < 2; ++round) {
      for (std::uint32_t i = 0; i < qa->count(); ++i) {
        const auto paged = Remote{b().buffer + 4096 * (i % kPaged) + 4000, paged_key(i % kPaged)};
        qb->post_receive(i, qb->area(i) + 4096, 4096);
        qa->post(i, {.opcode = SendOpcode::write, .length = 2500, .remote = round == 0 ? remote_of(i) : paged});
        qa->post(i, {.opcode = SendOpcode::write, .length = 8, .remote = remote_of(i)});
        qa->post(i, {.opcode = SendOpcode::send, .length = 3000, .blueflame = false});
        qa->post(i, {.opcode = SendOpcode::read, .length = 2000, .remote = paged});
        qa->post(i, {.opcode = SendOpcode::fetch_add, .length = 8, .remote = at_b(2048 * i), .immediate = 3});
        qa->post(i, {.opcode = SendOpcode::fetch_add, .length = 8, .remote = at_b(16 * i), .immediate = 3});
      }
      for (std::uint32_t i = 0; i < 2 * shared_.size(); ++i) {
        shared_[i % kShared]->post(b().buffer, 64);
        sharers_a_->post(i % kShared, {.opcode = SendOpcode::send, .length = 8});
      }
      qa->post(0, {.opcode = SendOpcode::write, .length = 20'000, .remote = at_b(400'000)});
      a().post_send({.opcode = SendOpcode::write, .length = 2000, .remote = Remote{a().buffer + 500'000, kKey}});
      for (std::uint32_t i = 0; i < 3 * kIdleCqs; ++i) command_on_cq(abi::CommandOpcode::query_cq, i * 5 % kIdleCqs);
      run(400);
      while (const auto cqe = a().poll(kSendCqn)) seen << cqe->wqe_counter << cqe->timestamp << ' ';
      while (const auto cqe = b().poll(kReceiveCqn)) seen << cqe->wqe_counter << cqe->timestamp << ' ';
    }
    for (auto* node : {&a(), &b()}) {
      for (const auto& [address, at] : node->host.landed) seen << address << '@' << at.ps << ' ';
      Tell tell(seen);
      node->nic.counters().describe(tell);
    }
    for (const auto opcode : {abi::CommandOpcode::query_device, abi::CommandOpcode::query_port}) {
      abi::CommandHeader header;
      header.opcode = std::uint16_t(opcode);
      header.object = 1;
      seen << int(a().command(header));
      const auto output = a().output<std::array<char, 256>>();
      seen.write(output.data(), output.size());
    }
    return seen.str();
  }

 private:
  void share(const NicParams& params) {
    shared_.clear();
    sharers_a_ = std::make_unique<QueuePairs>(a(), kShared, kFirstShared);
    if (!params.capabilities.srq) return;
    SharedRing::map_contexts(b());
    for (std::uint32_t i = 0; i < kShared; ++i) {
      shared_.push_back(std::make_unique<SharedRing>(b(), i));
      ASSERT_EQ(shared_[i]->create(), abi::CommandStatus::ok);
    }
    QueuePairs sharers_b(b(), kShared, kFirstShared, [](std::uint32_t i, abi::Qpc& c) {
      c.flags = abi::Qpc::kHasSend | abi::Qpc::kHasSrq;
      c.srqn = i;
    });
    for (std::uint32_t i = 0; i < kShared; ++i) {
      const auto small = [](abi::Qpc& c) { c.path_mtu = 1; };
      sharers_a_->connect(i, 2, small);
      sharers_b.connect(i, 1, small);
    }
  }
  void idle_cq(std::uint32_t i) {
    abi::CreateCq cq;
    cq.header.opcode = std::uint16_t(abi::CommandOpcode::create_cq);
    cq.header.object = 10 + i;
    cq.context.log_entries = 4;
    cq.context.ring = a().host.allocate(1024);
    cq.context.doorbell_record = a().host.allocate(64);
    ASSERT_EQ(a().command(cq), abi::CommandStatus::ok);
  }
  void command_on_cq(abi::CommandOpcode opcode, std::uint32_t i) {
    abi::CommandHeader header;
    header.opcode = std::uint16_t(opcode);
    header.object = 10 + i;
    ASSERT_EQ(a().command(header), abi::CommandStatus::ok);
  }
  static std::uint32_t paged_key(std::uint32_t i) { return (20 + i) << 8 | 0x10; }
  void paged_region(std::uint32_t i) {
    for (auto* node : {&a(), &b()}) {
      if (i == 0) {
        abi::MapIcm map;
        map.header.opcode = std::uint16_t(abi::CommandOpcode::map_icm);
        map.table = static_cast<std::uint32_t>(abi::IcmTable::mtt);
        map.count = 64;
        map.memory = node->host.allocate(64 * sizeof(abi::Mtt));
        for (std::uint32_t page = 0; page < 64; ++page) {
          abi::Mtt entry;
          entry.page = node->buffer + std::uint64_t{page} * 4096;
          node->host.put(map.memory + page * sizeof entry, entry);
        }
        ASSERT_EQ(node->command(map), abi::CommandStatus::ok);
      }
      abi::CreateMpt mpt;
      mpt.header.opcode = std::uint16_t(abi::CommandOpcode::create_mpt);
      mpt.header.object = paged_key(i) >> 8;
      mpt.context.key = paged_key(i);
      mpt.context.pd = kPd;
      mpt.context.pasid = kPasid;
      mpt.context.access_flags = 0xf;
      mpt.context.start = node->buffer;
      mpt.context.length = 64 * 4096;
      mpt.context.log_page = 12;
      mpt.context.first_page = 0;
      ASSERT_EQ(node->command(mpt), abi::CommandStatus::ok);
    }
  }

  std::vector<std::unique_ptr<SharedRing>> shared_;
  std::unique_ptr<QueuePairs> sharers_a_;
};

TEST_F(ParamsRead, EachChangesSomething) {
  Change all(~std::size_t{0}, 0);
  NicParams params;
  params.describe(all);
  ASSERT_GT(all.names.size(), 90u);
  const std::array before{observe(base(0)), observe(base(1)), observe(base(2))};
  ASSERT_EQ(before[1], observe(base(1))) << "the same twice";
  for (std::size_t number = 0; number < all.names.size(); ++number) {
    bool felt = false;
    // Minimum or maximum of a capability: the workload would not run.
    const auto attempts = all.names[number].starts_with("capabilities.") ? 2 : kAttempts;
    for (int trial = 0; trial < kBases * attempts && !felt; ++trial) {
      auto changed = base(trial % kBases);
      Change change(number, trial / kBases);
      changed.describe(change);
      felt = observe(changed) != before[static_cast<std::size_t>(trial % kBases)];
    }
    EXPECT_TRUE(felt) << all.names[number] << " changes nothing";
  }
}

}  // namespace
}  // namespace rnicsim::nic::test
