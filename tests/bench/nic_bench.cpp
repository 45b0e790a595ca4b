// SPDX-License-Identifier: Apache-2.0
// CPU time of the simulator per WQE, from doorbell to CQE over two NICs, MTU 4096. The time includes SystemC's kernel,
// the scripted hosts and polling; it does not include system calls of an attached process.
#include <benchmark/benchmark.h>

#include <memory>

#include "tests/unit/nic/nic_pair.h"

namespace rnicsim::nic::test {
namespace {

constexpr std::uint8_t kMtu4096 = 5;
constexpr int kBatch = 16;

Duration time_for(std::uint32_t length) {
  constexpr auto kLatencies = 5_us;
  return kLatencies + kBatch * (200_ns + PortParams{}.rate.time_for({length + length / 4}));
}

int poll_all(Node& node, std::uint32_t cqn) {
  int done = 0;
  while (const auto cqe = node.poll(cqn)) done += cqe->syndrome == abi::CqeSyndrome::success;
  return done;
}

// One iteration is one WQE. WQEs are posted in batches, so that several are outstanding.
void transfer(benchmark::State& state, abi::SendOpcode opcode) {
  const auto length = static_cast<std::uint32_t>(state.range(0));
  const bool sends = opcode == abi::SendOpcode::send;
  auto cable = std::make_unique<Cable>(NicParams{});
  cable->connect(kMtu4096);
  auto& a = cable->a;
  auto& b = cable->b;
  const auto duration = to_sc_time(time_for(length));
  while (state.KeepRunningBatch(kBatch)) {
    for (int i = 0; i < kBatch; ++i) {
      if (sends) b.post_receive(b.buffer, length);
      a.post_send(
          {.opcode = opcode, .length = length, .remote = sends ? std::nullopt : std::optional(Remote{b.buffer, kKey})});
    }
    sc_core::sc_start(duration);
    const bool all = poll_all(a, kSendCqn) == kBatch && poll_all(b, kReceiveCqn) == (sends ? kBatch : 0);
    if (!all) state.SkipWithError("not all were completed");
    for (auto* node : {&a, &b}) node->host.landed.clear();
  }
  cable.reset();
  sc_core::sc_get_curr_simcontext()->reset();
}

void sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgName("bytes")->Arg(8)->Arg(4 << 10)->Arg(64 << 10);
}
BENCHMARK_CAPTURE(transfer, write, abi::SendOpcode::write)->Apply(sizes);
BENCHMARK_CAPTURE(transfer, send, abi::SendOpcode::send)->Apply(sizes);
BENCHMARK_CAPTURE(transfer, read, abi::SendOpcode::read)->Apply(sizes);

}  // namespace
}  // namespace rnicsim::nic::test

int sc_main(int argc, char* argv[]) {
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
