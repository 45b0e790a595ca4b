// SPDX-License-Identifier: Apache-2.0
// Agents do what a workload says, and the NIC counts what the agents count.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <optional>

#include "model/nic/nic.h"
#include "model/nic/packets/packet_tx.h"
#include "model/nic/packets/receive/packet_rx.h"
#include "sim/adapter.h"
#include "sim/bench/bench.h"
#include "sim/bench/results/results.h"
#include "sim/bench/runner.h"
#include "sim/system.h"
#include "tests/unit/bench/bench_run.h"

namespace rnicsim::sim::bench::run_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
namespace fs = std::filesystem;

class BenchOp : public BenchRun, public testing::WithParamInterface<std::string> {};

// One operation at a time, so that nothing is outstanding when the last completes.
TEST_P(BenchOp, CountsAgreeWithTheNics) {
  const auto op = GetParam();
  const bool atomic = op == "fetch_add" || op == "cmp_swap";
  run(kOneByOne + std::string("op = \"") + op + "\"\n" + (atomic ? "" : "size = \"3000 B\"\n"));
  EXPECT_EQ(flow().operations, 100u);
  EXPECT_EQ(flow().posted, 100u);
  EXPECT_EQ(flow().latency.count(), 100u);
  EXPECT_EQ(flow().bytes, atomic ? 800u : 300'000u);
  EXPECT_EQ(grown(0, "nic.completion.cqes"), 100u);
  EXPECT_EQ(grown(0, "nic.doorbell.blueflame_doorbells"), 100u);
  const bool receives = op == "send" || op == "send_imm" || op == "write_imm";
  EXPECT_EQ(grown(1, "nic.completion.cqes"), receives ? 100u : 0u);
  EXPECT_EQ(grown(1, "nic.atomics.operations"), atomic ? 100u : 0u);
  EXPECT_EQ(grown(1, "nic.tx.payload_bytes"), op == "read" ? 300'000u : 0u);
  EXPECT_EQ(grown(0, "nic.tx.payload_bytes"), atomic || op == "read" ? 0u : 300'000u);
}

INSTANTIATE_TEST_SUITE_P(All, BenchOp,
                         testing::Values("write", "write_imm", "send", "send_imm", "read", "fetch_add", "cmp_swap"),
                         [](const auto& info) { return info.param; });

class BenchTransport : public BenchRun, public testing::WithParamInterface<std::string> {};

// Unreliable transports have no acknowledgements.
TEST_P(BenchTransport, CountsAgreeWithTheNics) {
  const bool datagrams = GetParam() == "ud";
  run(kOneByOne + std::string("op = \"send\"\nsize = \"3000 B\"\nqps = 2\ntransport = \"") + GetParam() + "\"\n" +
          (datagrams ? "mr_size = \"3040 B\"\n" : ""),
      "warmup = \"20 us\"\nduration = \"500 us\"");
  EXPECT_GT(flow().operations, 400u);
  EXPECT_NEAR(double(grown(0, "nic.tx.packets")), double(flow().operations) * (datagrams ? 1 : 3), 10);
  EXPECT_NEAR(double(grown(1, "nic.completion.cqes")), double(flow().operations), 5);
  EXPECT_EQ(grown(1, "nic.tx.packets"), 0u);
  EXPECT_EQ(grown(1, "nic.engine.out_of_buffer"), 0u);
}
INSTANTIATE_TEST_SUITE_P(All, BenchTransport, testing::Values("uc", "ud"), [](const auto& info) { return info.param; });

// A measured interval in which no message, or every message, ends: the goodput equals the bytes that arrived on the
// wire.
class BenchGoodput : public BenchRun, public testing::WithParamInterface<std::string> {};

TEST_P(BenchGoodput, IsThatOfTheMeasuredTimeAlone) {
  const double line = 100e9;
  for (const char* warmup : {"300 us", "600 us", "640 us", "680 us"}) {
    run("from = \"h0\"\nto = \"h1\"\nsize = \"1 MiB\"\nqps = 8\n" + GetParam(),
        std::string("warmup = \"") + warmup + "\"\nduration = \"150 us\"");
    const auto goodput = flow_result(flow(), runner_->after().at).bits_per_second();
    EXPECT_LE(goodput, line) << warmup;
    // Nothing is lost, so the goodput equals the port's bytes in that time, apart from bytes in the pipeline.
    const auto taken = grown(GetParam().starts_with("op = \"read\"") ? 0 : 1, "nic.rx.payload_bytes");
    EXPECT_NEAR(double(flow().bytes), double(taken), 0.02 * double(taken)) << warmup;
    EXPECT_GT(taken, 1'000'000u);
    restart();
  }
}
INSTANTIATE_TEST_SUITE_P(Ops, BenchGoodput,
                         testing::Values("op = \"write\"\n", "op = \"send\"\n", "op = \"read\"\n",
                                         "op = \"write\"\ntransport = \"uc\"\n"));

// Goodput counts the payload alone: no GRH, and also payload within the CQE.
TEST_F(BenchRun, GoodputOfDatagramsAndOfInlineReceives) {
  run(kOneByOne + std::string("op = \"send\"\nsize = \"1000 B\"\nmr_size = \"1040 B\"\ntransport = \"ud\"\n"),
      "warmup = \"20 us\"\nduration = \"100 us\"");
  EXPECT_EQ(flow().bytes, 1000 * grown(1, "nic.completion.cqes"));
  restart();
  run(kOneByOne + std::string("op = \"send\"\nsize = \"24 B\"\nrecv_inline = \"24 B\"\n"));
  EXPECT_EQ(flow().bytes, 2400u);
}

TEST_F(BenchRun, AgentsCpus) {
  const auto shares = [&](const std::string& keys) {
    run(kOneByOne + keys, "warmup = \"20 us\"\nduration = \"200 us\"");
    const std::array shares{runner_->busy_share(0), runner_->busy_share(1)};
    return shares;
  };
  // The target of writes has no CPU work; one write at a time leaves the sender's CPU idle.
  const auto idle = shares("op = \"write\"\nsize = \"64 KiB\"\n");
  EXPECT_GT(idle[0], 0);
  EXPECT_LT(idle[0], 0.1);
  EXPECT_EQ(idle[1], std::nullopt);
  restart();
  // The CPU time of a message is known, and small messages of many QPs keep the CPU busy.
  const auto busy = shares("op = \"send\"\nsize = \"8 B\"\nqps = 16\nwindow = 16\n");
  const auto& cpu = prepared_->config.host.cpu;
  const auto each = cpu.post_wqe + cpu.ring_doorbell + cpu.mmio_write + cpu.poll_cqe;
  const auto least = double(flow().operations) * double(each.ps) / double(runner_->interval().ps);
  EXPECT_GT(*busy[0], 0.95 * least);
  EXPECT_GT(*busy[0], 0.8);
  EXPECT_LE(*busy[0], 1);
  EXPECT_GT(*busy[1], 0.1);
  EXPECT_LE(*busy[1], 1);
}

TEST_F(BenchRun, BatchesAndUnsignalled) {
  run(kOneByOne + std::string("op = \"write\"\nsize = \"64 B\"\nqps = 3\nwindow = 8\nbatch = 4\nsignal_every = 8\n"),
      "operations = 240");
  EXPECT_EQ(flow().operations, 240u);
  // An eighth of the WQEs has a CQE, and each doorbell announces four WQEs.
  EXPECT_NEAR(double(grown(0, "nic.completion.cqes")), double(flow().posted) / 8, 3);
  EXPECT_EQ(grown(0, "nic.doorbell.blueflame_doorbells"), 0u);
  EXPECT_NEAR(double(grown(0, "nic.doorbell.send_doorbells")), double(flow().posted) / 4, 3);
}

TEST_F(BenchRun, SignalsOftenEnoughToGoOn) {
  run(kOneByOne + std::string("op = \"write\"\nsize = \"64 B\"\nwindow = 7\nbatch = 3\nsignal_every = 7\n"));
  EXPECT_EQ(flow().operations, 100u);
}

TEST_F(BenchRun, PlainDoorbells) {
  run(kOneByOne + std::string("op = \"write\"\nsize = \"64 B\"\ndoorbell = \"plain\"\n"));
  EXPECT_EQ(grown(0, "nic.doorbell.blueflame_doorbells"), 0u);
  EXPECT_EQ(grown(0, "nic.doorbell.send_doorbells"), 100u);
}

TEST_F(BenchRun, Inline) {
  run(kOneByOne + std::string("op = \"write\"\nsize = \"64 B\"\ninline = \"64 B\"\n"));
  EXPECT_EQ(grown(0, "nic.dma.reads"), 0u);
}

TEST_F(BenchRun, InlineReceives) {
  run(kOneByOne + std::string("op = \"send\"\nsize = \"24 B\"\nrecv_inline = \"24 B\"\n"));
  EXPECT_EQ(grown(1, "nic.completion.inline_cqes"), 100u);
}

TEST_F(BenchRun, PaceAndStop) {
  run(kOneByOne +
          std::string(
              "op = \"write\"\nsize = \"64 B\"\nthreads = 2\npace = 500000\nstart = \"10 us\"\nstop = \"110 us\"\n"),
      "duration = \"200 us\"");
  EXPECT_NEAR(double(flow().operations), 50, 1);
  EXPECT_NEAR(flow_result(flow(), runner_->after().at).operations_per_second(), 5e5, 1e4);
}

// The operations of a batch start together, and the pace counts all of them.
TEST_F(BenchRun, PaceOfBatches) {
  for (const int batch : {4, 10}) {
    run(kOneByOne + fmt::format("op = \"write\"\nsize = \"64 B\"\nthreads = 2\nwindow = {0}\nbatch = {0}\n"
                                "pace = 2000000\n",
                                batch),
        "duration = \"200 us\"");
    EXPECT_NEAR(double(flow().operations), 400, 2 * batch) << batch;
    EXPECT_EQ(flow().posted % std::uint64_t(batch), 0u);
    restart();
  }
}

TEST_F(BenchRun, WarmUpDoesNotCount) {
  run(kOneByOne + std::string("op = \"read\"\nsize = \"64 B\"\n"), "warmup = \"50 us\"\nduration = \"50 us\"");
  EXPECT_EQ(runner_->interval(), 50_us);
  EXPECT_NEAR(double(flow().operations), double(flow().posted) / 2, 2);
}

// MTT entries are fetched when pages are first written: the rate rises until all are cached.
constexpr const char* kWarming =
    "from = \"h0\"\nto = \"h1\"\nop = \"read\"\nsize = \"8 B\"\nthreads = 2\nqps = 4\nwindow = 16\n"
    "address = \"random\"\nmr_size = \"1 MiB\"\n";

TEST_F(BenchRun, WarmsUpUntilItIsSteady) {
  run(kWarming, "");
  const auto steady = flow_result(flow(), runner_->after().at).operations_per_second();
  const auto validated = steadiness_of({prepared_->workload, prepared_->plan, *runner_, *system_}, 0);
  EXPECT_EQ(validated.steady, true);
  EXPECT_LE(*validated.reach, 0.05);
  EXPECT_EQ(runner_->interval(), runner_->warmup());  // the second half of the run
  EXPECT_EQ(flow().latency.count(), flow().operations);
  const auto chosen = runner_->warmup();
  restart();
  // A longer warm-up gives the same rate; a measurement from the start does not.
  run(kWarming, "warmup = \"" + to_string(2 * chosen) + "\"\nduration = \"4 ms\"");
  EXPECT_NEAR(flow_result(flow(), runner_->after().at).operations_per_second() / steady, 1, 0.05);
  restart();
  run(kWarming, "duration = \"100 us\"");
  EXPECT_EQ(steadiness_of({prepared_->workload, prepared_->plan, *runner_, *system_}, 0).steady, false);
  EXPECT_LT(flow_result(flow(), runner_->after().at).operations_per_second(), 0.9 * steady);
}

TEST_F(BenchRun, WarmsUpBeforeWhatIsWanted) {
  const auto one = kOneByOne + std::string("op = \"write\"\nsize = \"64 B\"\n");
  run(one, "limit = \"1 ms\"\noperations = 50");
  EXPECT_EQ(flow().operations, 50u);
  // At the first check there were too few operations.
  EXPECT_EQ(runner_->warmup(), 512_us);
  restart();
  run(one, "limit = \"1 ms\"\nduration = \"300 us\"");
  EXPECT_EQ(runner_->warmup(), 512_us);
  EXPECT_EQ(runner_->interval(), 300_us);
  EXPECT_NE(runner_->middle(), nullptr);
  restart();
  // The warm-up also covers a flow that starts later.
  run(one + "[[flow]]\nfrom = \"h1\"\nto = \"h0\"\nop = \"read\"\nsize = \"8 B\"\nstart = \"400 us\"\n", "");
  EXPECT_EQ(runner_->warmup(), 656_us);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(flow(i).measured_from, flow(0).measured_from);
}

// One operation in 300 us: too few for a decision, up to the limit.
TEST_F(BenchRun, TooSlowToBeSteady) {
  run(kOneByOne + std::string("op = \"write\"\nsize = \"64 B\"\npace = 3000\n"), "limit = \"2048 us\"");
  EXPECT_EQ(runner_->interval(), 1024_us);
  EXPECT_EQ(flow().operations, 3u);
  const auto validated = steadiness_of({prepared_->workload, prepared_->plan, *runner_, *system_}, 0);
  EXPECT_EQ(validated.steady, std::nullopt);
  EXPECT_EQ(validated.reach, std::nullopt);
}

TEST_F(BenchRun, MixByWeight) {
  run(kOneByOne +
          std::string("mix = [{ op = \"write\", weight = 3, size = \"8 B\" }, { op = \"read\", size = \"16 B\" }, "
                      "{ op = \"send\", size = \"24 B\" }]\nwindow = 4\n"),
      "operations = 2000");
  EXPECT_NEAR(double(flow().of_mix[0]), 1200, 120);
  EXPECT_NEAR(double(flow().of_mix[1]), 400, 80);
  const auto completed = 8 * flow().of_mix[0] + 16 * flow().of_mix[1] + 24 * flow().of_mix[2];
  EXPECT_GE(flow().bytes, completed);
  EXPECT_LE(flow().bytes, completed + 4 * 24);  // bytes of operations in flight
}

TEST_F(BenchRun, AddressesOfEveryKind) {
  run(kOneByOne +
      std::string(
          "op = \"read\"\nsize = \"40 B\"\nqps = 3\nwindow = 5\nmrs = 3\nmr_size = \"1000 B\"\naddress = \"random\"\n"
          "pick = \"random\"\n[[flow]]\nfrom = \"h1\"\nto = \"h0\"\nop = \"write\"\nsize = \"1000 B\"\nmrs = 2\n"
          "mr_size = \"1000 B\"\naddress = \"sequential\"\n[[flow]]\nfrom = \"h0\"\nto = \"h1\"\nop = \"fetch_add\"\n"
          "mr_size = \"1 KiB\"\naddress = { stride = \"248 B\" }\nwindow = 3\n"));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(flow(i).operations, 100u);
  EXPECT_EQ(grown(0, "nic.translation.refused") + grown(1, "nic.translation.refused"), 0u);
}

// All agents use one word of h1: atomics on it wait for one another. With other addressing, conflicts are rare: two
// words in one lock slot.
TEST_F(BenchRun, OneWordForAll) {
  const auto conflicts = [&](const std::string& keys) {
    run(kOneByOne + ("op = \"fetch_add\"\nthreads = 4\nqps = 2\n" + keys), "operations = 400");
    EXPECT_EQ(flow().operations, 400u);
    EXPECT_EQ(grown(1, "nic.translation.refused"), 0u);
    const auto counted = grown(1, "nic.atomics.conflicts");
    restart();
    return counted;
  };
  EXPECT_LT(conflicts("address = \"random\"\nmr_size = \"64 KiB\"\n"), 50u);
  EXPECT_GT(conflicts("address = \"one\"\n"), 200u);
  EXPECT_GT(conflicts("address = \"one\"\nuars = \"per_thread\"\n"), 200u);
  EXPECT_GT(conflicts("address = { slots = 2 }\nshare = true\n"), 50u);
}

// Operations in sequence: equally many of each, and a latency of their sum.
TEST_F(BenchRun, Sequences) {
  const auto latency = [&](const std::string& keys) {
    run(kOneByOne + ("size = \"64 B\"\n" + keys), "operations = 50");
    EXPECT_EQ(flow().operations, 50u);
    const auto mean = flow().latency.mean();
    EXPECT_EQ(flow().latency.count(), 50u);
    restart();
    return double(mean.ps);
  };
  const auto read = latency("op = \"read\"\n"), write = latency("op = \"write\"\n");
  EXPECT_NEAR(latency("sequence = [\"read\", \"write\", \"read\"]\n"), 2 * read + write, 0.05 * (2 * read + write));
  run(kOneByOne + std::string("sequence = [\"send\", \"write\", \"fetch_add\"]\nsize = \"3000 B\"\nqps = 2\n"
                              "window = 3\n"),
      "operations = 300");
  for (const auto count : flow().of_mix) EXPECT_NEAR(double(count), 300, 6);
  EXPECT_EQ(flow().of_mix.back(), 300u);
}

// Many threads and one lock: one thread holds it, the others try again.
TEST_F(BenchRun, Locks) {
  run(kOneByOne + std::string("op = \"lock_write\"\nsize = \"64 B\"\nthreads = 4\nwindow = 2\naddress = \"one\"\n"),
      "operations = 200");
  EXPECT_EQ(flow().operations, 200u);
  EXPECT_GT(flow().of_mix[0], 600u);
  EXPECT_NEAR(double(flow().of_mix[1]), 200, 1);
  const auto one = flow_result(flow(), runner_->after().at).operations_per_second();
  restart();
  run(kOneByOne + std::string("op = \"lock_write\"\nsize = \"64 B\"\nthreads = 4\nwindow = 2\nmr_size = \"64 KiB\"\n"
                              "address = { slots = 512 }\nshare = true\n"),
      "operations = 200");
  EXPECT_LT(flow().of_mix[0], 240u);
  EXPECT_GT(flow_result(flow(), runner_->after().at).operations_per_second(), 2 * one);
}

// Observes the packets at the host with the lock: holder, writes under the lock, release.
class LockWitness {
 public:
  explicit LockWitness(const nic::NicBlocks& nic) {
    nic.tx.sent.subscribe([this](const nic::PacketTrace& packet) {
      if (packet.headers.atomic_ack == 0) take(packet.qpn.value);
    });
    nic.rx.received.subscribe([this](const nic::PacketTrace& packet) {
      const auto& headers = packet.headers;
      if (headers.atomic) lock_ = headers.atomic->address;
      if (!headers.reth) return;
      EXPECT_EQ(holder_, packet.qpn.value) << "writes without the lock";
      headers.reth->address == lock_ ? give_back(packet) : write(packet);
    });
  }
  std::uint64_t taken = 0, written = 0, freed = 0;

 private:
  void take(std::uint32_t qpn) {
    EXPECT_EQ(holder_, std::nullopt) << "two hold the lock";
    holder_ = qpn;
    ++taken;
  }
  void write(const nic::PacketTrace& packet) {
    constexpr std::uint64_t kWord = 8;
    EXPECT_EQ(packet.headers.reth->address, lock_ + kWord);
    ++written;
  }
  void give_back(const nic::PacketTrace& packet) {
    EXPECT_TRUE(std::ranges::all_of(packet.payload.bytes(), [](std::byte byte) { return byte == std::byte{0}; }));
    EXPECT_EQ(packet.payload.size(), 8u);
    holder_ = std::nullopt;
    ++freed;
  }

  std::uint64_t lock_ = 0;
  std::optional<std::uint32_t> holder_;  // QP number, on the lock's host, of the holder
};

TEST_F(BenchRun, ALockHasOneHolderAtATime) {
  prepare_run(kOneByOne + std::string("op = \"lock_write\"\nsize = \"64 B\"\nthreads = 4\nwindow = 2\naddress = "
                                      "\"one\"\n"),
              "operations = 200");
  LockWitness witness(system_->adapter(1).nic().blocks());
  EXPECT_EQ(runner_->execute(), "");
  EXPECT_GE(witness.freed, 200u);
  EXPECT_NEAR(double(witness.taken), double(witness.freed), 1);
  EXPECT_NEAR(double(witness.written), double(witness.freed), 1);
}

TEST_F(BenchRun, RegistersAgainAndAgain) {
  run("from = \"h0\"\nop = \"reg_mr\"\nsize = \"1 MiB\"\nthreads = 2\n[[flow]]\n" + std::string(kOneByOne) +
          "op = \"read\"\nsize = \"8 B\"\n",
      "operations = 20");
  EXPECT_EQ(flow(0).operations, 20u);
  EXPECT_EQ(flow(0).bytes, 0u);
  EXPECT_GE(grown(0, "kernel.pages_registered"), 20 * 256u);
  const auto fast = flow(0).latency.mean();
  restart();
  run("from = \"h0\"\nop = \"reg_mr\"\nsize = \"4 KiB\"\npace = 10000\n", "duration = \"1 ms\"");
  EXPECT_NEAR(double(flow().operations), 10, 1);
  EXPECT_LT(flow().latency.mean(), fast);
}

// Shared pages are registered once, and every kind of operation can reach them.
TEST_F(BenchRun, SharedRegions) {
  const auto pages = [&](const std::string& keys) {
    run(kOneByOne + ("mix = [{ op = \"write\", size = \"8 B\" }, { op = \"read\", size = \"64 B\" }, "
                     "{ op = \"send\", size = \"24 B\" }]\nthreads = 4\nqps = 2\nwindow = 4\nmr_size = \"1 MiB\"\n"
                     "address = { zipf = 0.99 }\n" +
                     keys),
        "operations = 1000");
    EXPECT_EQ(flow().operations, 1000u);
    const auto& counters = runner_->after().hosts[1].entries();
    const auto registered = std::ranges::find(counters, "kernel.pages_registered", &CounterEntry::path)->value;
    restart();
    return registered;
  };
  EXPECT_EQ(pages("") - pages("share = true\n"), 3 * 256u);
}

// A switch with two ways up divides the flows among them, and the packets of each flow keep their order.
TEST_F(BenchRun, SpinesShareTheFlows) {
  run("from = \"h0..h3\"\nto = \"h4..h7\"\nop = \"write\"\nsize = \"4 KiB\"\nqps = 64\nwindow = 1\n",
      "operations = 4000", "topology = \"leaf-spine:2,2,4\"");
  const auto frames = [&](std::size_t box) { return double(system_->switch_counters(box).frames); };
  EXPECT_NEAR(frames(2) / (frames(2) + frames(3)), 0.5, 0.12);  // 256 flows in each direction: four standard deviations
  EXPECT_EQ(system_->config().topology.node_name(8 + 2), "spine0");
  for (std::size_t host = 4; host < 8; ++host) EXPECT_EQ(grown(host, "nic.engine.out_of_sequence"), 0u);
}

// The slower of two ports limits a flow, and the switch buffers the excess.
TEST_F(BenchRun, NicsOfTwoRates) {
  const auto goodput = [&](const std::string& from, const std::string& to) {
    run("from = \"" + from + "\"\nto = \"" + to + "\"\nop = \"write\"\nsize = \"64 KiB\"\nqps = 4\nwindow = 4\n",
        "warmup = \"100 us\"\nduration = \"200 us\"",
        "topology = \"star:3\"\nset = { hosts.h0.nic = \"cx6-200g\", hosts.h1.nic = \"cx6-200g\" }");
    const auto rate = flow_result(flow(), runner_->after().at).bits_per_second();
    EXPECT_EQ(grown(to == "h2" ? 2 : 1, "nic.engine.out_of_sequence"), 0u);
    restart();
    return rate / 1e9;
  };
  EXPECT_NEAR(goodput("h0", "h1"), 195, 5);
  EXPECT_NEAR(goodput("h0", "h2"), 97.5, 2.5);
  EXPECT_NEAR(goodput("h2", "h1"), 97.5, 2.5);
}

// A flow uses the smaller limits of both NICs.
TEST_F(BenchRun, LimitsOfBothNics) {
  prepare_run(
      "from = \"h0\"\nto = \"h1\"\nop = \"read\"\nsize = \"64 B\"\n", "operations = 10",
      "set = { hosts.h1.nic = \"old\", nics.old.capabilities.max_rd_atomic = 2, nics.old.capabilities.max_mtu = 3 }");
  EXPECT_EQ(prepared_->workload.flows[0].max_rd_atomic, 2u);
  EXPECT_EQ(prepared_->workload.flows[0].mtu, 1024u);
  EXPECT_EQ(runner_->execute(), "");
}

// Each page is an MTT entry: all large pages fit the cache.
TEST_F(BenchRun, PagesBehindTheRegions) {
  const auto pages_and_misses = [&](const std::string& page) {
    run(kOneByOne + ("op = \"read\"\nsize = \"64 B\"\nqps = 4\nwindow = 4\nmr_size = \"64 MiB\"\n"
                     "address = \"random\"\npage = \"" +
                     page + "\"\n"),
        "operations = 2000");
    const auto& counters = runner_->after().hosts[1].entries();
    const auto pages = std::ranges::find(counters, "kernel.pages_registered", &CounterEntry::path);
    const std::pair result{pages->value, grown(1, "nic.contexts.mtt.misses")};
    restart();
    return result;
  };
  const auto small = pages_and_misses("4 KiB"), large = pages_and_misses("2 MiB");
  EXPECT_EQ(small.first - large.first, 16384u - 32u);
  EXPECT_GT(small.second, 1000u);
  EXPECT_LT(large.second, 100u);
}

TEST_F(BenchRun, ThreadsWithPagesOfTheirOwn) {
  run(kOneByOne + std::string("op = \"send\"\nsize = \"8 B\"\nthreads = 3\nqps = 2\nwindow = 4\nuars = "
                              "\"per_thread\"\nwindow_per = \"thread\"\n"),
      "operations = 300");
  EXPECT_EQ(flow().operations, 300u);
}

TEST_F(BenchRun, StarOfFive) {
  run("from = \"h0\"\nto = \"h1..h4\"\nop = \"write\"\nsize = \"64 B\"\nqps = 2\n", "operations = 800",
      "topology = \"star\"");
  EXPECT_EQ(flow().operations, 800u);
  for (std::size_t host = 1; host < 5; ++host) EXPECT_NEAR(double(grown(host, "nic.rx.packets")), 200, 10) << host;
  EXPECT_EQ(system_->switches(), 1u);
  EXPECT_EQ(system_->switch_counters(0).unknown, 0u);
  EXPECT_GE(system_->switch_counters(0).frames, 1600u);
}

TEST_F(BenchRun, AllToAll) {
  run("from = \"h0..h2\"\nto = \"h0..h2\"\nconnect = \"all\"\nop = \"send\"\nsize = \"64 B\"\nthreads = 2\n",
      "operations = 600", "topology = \"star\"");
  EXPECT_EQ(flow().operations, 600u);
}

TEST_F(BenchRun, NothingToReceiveInto) {
  const auto error =
      run_error(kOneByOne + std::string("op = \"send\"\nsize = \"8 B\"\nrecv_depth = 0\ntimeout = 4\nrnr_timer = 24\n"),
                "duration = \"10 us\"");  // RNR timer 24 is long: the QP waits for it nearly always
  EXPECT_THAT(error, AllOf(HasSubstr("flow[0] makes no progress"),
                           HasSubstr("h0 flow[0] thread 0 (from): 1 operations on 1 of 1 QPs wait"),
                           HasSubstr("h0's NIC:\nqp "), HasSubstr("waits for an RNR timer")));
}

// A run without end time, and a sender with infinite retries.
TEST_F(BenchRun, NothingToReceiveIntoAndNoEnd) {
  const auto error = run_error(kOneByOne + std::string("op = \"send\"\nsize = \"8 B\"\nrecv_depth = 0\ntimeout = 4\n"));
  EXPECT_THAT(error, AllOf(HasSubstr("flow[0] makes no progress"), HasSubstr("1 operations on 1 of 1 QPs wait"),
                           HasSubstr("waits for an RNR timer")));
}

// A cable that loses everything, no retry timer, and no end time.
class BenchLost : public BenchRun, public testing::WithParamInterface<std::string> {};

TEST_P(BenchLost, StandsStillAndSaysWho) {
  const auto cable = fs::temp_directory_path() / ("rnicsim-bench-lost-" + std::to_string(getpid()) + ".toml");
  std::ofstream(cable) << "base = \"back-to-back\"\n[[fault]]\naction = \"drop\"\n";
  const auto error = run_error(kOneByOne + std::string("timeout = 0\nretry = 0\n") + GetParam(), "operations = 100",
                               "topology = \"" + cable.string() + "\"");
  fs::remove(cable);
  EXPECT_THAT(error, AllOf(HasSubstr("flow[0] makes no progress: no completion for"), HasSubstr("h0 flow[0] thread 0"),
                           HasSubstr("h0's NIC:\nqp ")));
}
INSTANTIATE_TEST_SUITE_P(Ops, BenchLost,
                         testing::Values("op = \"write\"\nsize = \"8 B\"\n", "op = \"read\"\nsize = \"8 B\"\n",
                                         "op = \"send\"\nsize = \"8 B\"\n", "op = \"fetch_add\"\n",
                                         "op = \"write\"\nsize = \"8 B\"\nping_pong = true\n"));

TEST_F(BenchRun, AnOperationThatFails) {
  // The round trip is longer than the timeout: all retries are used.
  const auto error = run_error(kOneByOne + std::string("op = \"write\"\nsize = \"8 B\"\ntimeout = 1\nretry = 1\n"),
                               "duration = \"1 ms\"", "set = { link.latency = \"100 us\" }");
  EXPECT_THAT(error,
              AllOf(HasSubstr("h0 flow[0] thread 0 (from), qp 0x"), HasSubstr("transport retry counter exceeded")));
}

// Nine queue pairs on eight transmit units: two QPs share a unit, but all have equal shares of a full port.
TEST_F(BenchRun, FlowsOfOneQpShareAFullPortEqually) {
  constexpr std::size_t kFlows = 9;
  for (const std::string op : {"write", "read"}) {
    const auto one = "from = \"h0\"\nto = \"h1\"\nop = \"" + op + "\"\nsize = \"16 KiB\"\nwindow = 4\n";
    auto all = one;
    for (std::size_t i = 1; i < kFlows; ++i) all += "[[flow]]\n" + one;
    run(all, "warmup = \"100 us\"\nduration = \"300 us\"");
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < kFlows; ++i) sum += flow(i).bytes;
    EXPECT_GT(double(sum) * 8 / double(runner_->interval().ps) * 1000, 90.0) << "Gb/s: full";
    const auto share = double(sum) / kFlows;
    for (std::size_t i = 0; i < kFlows; ++i) EXPECT_NEAR(double(flow(i).bytes), share, 0.06 * share) << op << i;
    restart();
  }
}

}  // namespace
}  // namespace rnicsim::sim::bench::run_test
