// SPDX-License-Identifier: Apache-2.0
// A workload file results in the right flows; a mistake gives one line with the key's path.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "sim/bench/bench.h"
#include "sim/config/config_error.h"

namespace rnicsim::sim::bench::workload_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr const char* kLeast = R"(schema = 1
[measure]
duration = "1 ms"
[[flow]]
from = "h0"
to = "h1"
op = "write"
size = "4 KiB"
)";

class BenchWorkload : public testing::Test {
 protected:
  BenchWorkload() : folder_(fs::temp_directory_path() / ("rnicsim-bench-" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~BenchWorkload() override { fs::remove_all(folder_); }

  fs::path file(const std::string& text) {
    std::ofstream(folder_ / "w.toml", std::ios::binary) << text;
    return folder_ / "w.toml";
  }
  Workload read(const std::string& text) { return read_workload(file(text)); }
  Flow flow(const std::string& keys) { return read(kLeast + keys).flows.front(); }
  // The error message without the file's name.
  std::string error(const std::string& text) {
    try {
      prepare({.workload = file(text).string()});
    } catch (const ConfigError& wrong) {
      const std::string what = wrong.what();
      EXPECT_TRUE(what.starts_with(folder_.string())) << what;
      EXPECT_EQ(what.find('\n'), what.npos) << what;
      return what.substr(what.find("w.toml") + 8);
    }
    return "no error";
  }
  std::string flow_error(const std::string& keys) { return error(kLeast + keys); }

  fs::path folder_;
};

TEST_F(BenchWorkload, Defaults) {
  const auto workload = read(kLeast);
  EXPECT_EQ(workload.nic, "cx5-100g");
  EXPECT_EQ(workload.topology, "back-to-back");
  EXPECT_EQ(workload.seed, 1u);
  EXPECT_EQ(workload.measure.warmup, std::nullopt);
  EXPECT_EQ(workload.measure.limit, 65536_us);
  EXPECT_EQ(workload.measure.duration, 1_ms);
  const auto& flow = workload.flows.front();
  EXPECT_THAT(flow.from, ElementsAre("h0"));
  EXPECT_EQ(flow.mix.front().op, Op::write);
  EXPECT_EQ(flow.mix.front().size, 4_KiB);
  EXPECT_EQ(flow.window, 1u);
  EXPECT_EQ(flow.signal_every, 1u);
  EXPECT_EQ(flow.receives(), 16u);
}

TEST_F(BenchWorkload, EveryKey) {
  const auto workload = read(R"(schema = 1
seed = 7
nic = "cx5-100g"
topology = "star"
set = { nic.tx.latency = "1 us", "nic.port.rate" = "50 Gb/s", host = { completion_vectors = 3 } }
[measure]
warmup = "2 us"
operations = 10
[[flow]]
from = ["h0", "h2..h4"]
to = "h1"
transport = "rc"
mix = [{ op = "read", weight = 3, size = "8 B" }, { op = "cmp_swap" }]
threads = 2
qps = 3
connect = "all"
window = 64
window_per = "thread"
pick = "random"
batch = 4
inline = "64 B"
signal_every = 2
doorbell = "plain"
uars = "per_thread"
recv_depth = 9
recv_inline = "24 B"
mrs = 5
mr_size = "1 MiB"
page = "4 KiB"
address = { stride = "4 KiB" }
mtu = 1024
max_rd_atomic = 4
rnr_timer = 1
timeout = 2
retry = 3
pace = "10 Gb/s"
start = "1 us"
stop = "1 ms"
)");
  EXPECT_THAT(workload.sets, testing::UnorderedElementsAre("nic.tx.latency=1 us", "nic.port.rate=50 Gb/s",
                                                           "host.completion_vectors=3"));
  EXPECT_EQ(workload.measure.operations, 10u);
  const auto& flow = workload.flows.front();
  EXPECT_THAT(flow.from, ElementsAre("h0", "h2", "h3", "h4"));
  EXPECT_EQ(flow.mix[0].weight, 3u);
  EXPECT_EQ(flow.mix[1].size, 8_B);
  EXPECT_EQ(flow.pace->rate, 10_Gbps);
  EXPECT_EQ(flow.stride, 4_KiB);
  EXPECT_EQ(flow.stop, 1_ms);
}

struct KeyRange {
  const char* key;
  const char* below;
  const char* least;
  const char* most;
  const char* above;
  const char* needed;
  const char* with = "";
};

TEST_F(BenchWorkload, BothSidesOfEveryRange) {
  const KeyRange ranges[] = {
      {"threads", "0", "1", "256", "257", "1..256 is needed"},
      {"qps", "0", "1", "60000", "65537", "1..65536 is needed"},
      {"window", "0", "1", "32768", "32769", "1..32768 is needed"},
      {"batch", "0", "1", "4096", "4097", "1..4096 is needed", "window = 4096\n"},
      {"signal_every", "0", "1", "32768", "32769", "1..32768 is needed", "window = 32768\n"},
      {"recv_depth", "-1", "0", "32768", "32769", "0..32768 is needed"},
      {"mrs", "0", "1", "1048576", "1048577", "1..1048576 is needed", "mr_size = \"4 KiB\"\n"},
      {"mr_size", "\"7 B\"", "\"4 KiB\"", "\"1 TiB\"", "\"2 TiB\"", "\"8 B\"..\"1 TiB\" is needed"},
      {"max_rd_atomic", "0", "1", "16", "129", "1..128 is needed"},
      {"rnr_timer", "-1", "0", "31", "32", "0..31 is needed"},
      {"timeout", "-1", "0", "31", "32", "0..31 is needed"},
      {"retry", "-1", "0", "7", "8", "0..7 is needed"},
      {"mtu", "0", "256", "4096", "8192", "256, 512, 1024, 2048 or 4096 is needed"},
      {"pace", "0", "1", "1000000000", "1000000001", "operations a second"},
      {"pace", "\"1 b/s\"", "\"1 kb/s\"", "\"10 Tb/s\"", "\"11 Tb/s\"", "operations a second"},
      {"start", "\"-1 ns\"", "\"0 s\"", "\"999 us\"", "\"1001 s\"", "\"0 ps\"..\"1000 s\" is needed"},
      {"stop", "\"0 s\"", "\"1 ps\"", "\"1000 s\"", "\"1001 s\"", "\"1 ps\"..\"1000 s\" is needed"},
      {"inline", "\"-1 B\"", "\"0 B\"", "\"220 B\"", "\"961 B\"", "is needed"},
      {"recv_inline", "\"-1 B\"", "\"0 B\"", "\"32 B\"", "\"33 B\"", "is needed"},
  };
  for (const auto& range : ranges) {
    const auto with = [&](const char* value) { return std::string(range.with) + range.key + " = " + value + "\n"; };
    for (const char* bad : {range.below, range.above, "\"many\"", "[]", "1.5e300"})
      EXPECT_THAT(flow_error(with(bad)),
                  testing::AllOf(HasSubstr(std::string("flow[0].") + range.key + ": "), HasSubstr(range.needed)))
          << range.key << " = " << bad;
    for (const char* bad : {range.below, range.above})
      EXPECT_THAT(flow_error(with(bad)), HasSubstr(std::string("is needed, not ") + bad)) << range.key;
    for (const char* good : {range.least, range.most})
      if (!std::string(range.key).starts_with("mrs") && !std::string(range.key).starts_with("mr_size") &&
          std::string(range.key) != "batch")
        EXPECT_EQ(flow_error(with(good)), "no error") << range.key << " = " << good;
      else
        EXPECT_NO_THROW(flow(with(good))) << range.key << " = " << good;
  }
}

TEST_F(BenchWorkload, WholeNumbersMayHaveAFraction) {
  EXPECT_EQ(flow("window = 4.0\n").window, 4u);
  EXPECT_EQ(flow_error("window = 4.5\n"), "flow[0].window: 1..32768 is needed, not 4.5");
  EXPECT_THAT(flow_error("window = -4.0\n"), HasSubstr("1..32768 is needed, not -4"));
  EXPECT_THAT(flow_error("window = nan\n"), HasSubstr("1..32768 is needed, not nan"));
}

TEST_F(BenchWorkload, Sizes) {
  const auto with = [](const char* op, const char* size) {
    return std::string("schema = 1\nmeasure.duration = \"1 us\"\n[[flow]]\nfrom = \"h0\"\nto = \"h1\"\nop = \"") + op +
           "\"\nsize = \"" + size + "\"\n";
  };
  EXPECT_EQ(error(with("write", "0 B")), "flow[0].size: \"1 B\"..\"1 GiB\" is needed, not \"0 B\"");
  EXPECT_EQ(error(with("write", "1025 MiB")), "flow[0].size: \"1 B\"..\"1 GiB\" is needed, not \"1025 MiB\"");
  EXPECT_EQ(error(with("read", "1 GiB")), "no error");
  EXPECT_EQ(error(with("read", "1 B")), "no error");
  EXPECT_EQ(error(with("fetch_add", "4 B")), "flow[0].size: \"8 B\"..\"8 B\" is needed, not \"4 B\"");
  EXPECT_EQ(error(with("erase", "4 B")),
            "flow[0].op: \"write\", \"write_imm\", \"send\", \"send_imm\", \"read\", \"fetch_add\", \"cmp_swap\", "
            "\"lock_write\", \"reg_mr\" or \"connect_qp\" is needed, not \"erase\"");
}

TEST_F(BenchWorkload, MissingAndUnknown) {
  EXPECT_EQ(error("[measure]\nduration = \"1 us\"\n"), "schema: is missing");
  EXPECT_EQ(error("schema = 2\n"), "schema: 1..1 is needed, not 2");
  EXPECT_EQ(error("schema = 1\n"), "flow: is missing");
  EXPECT_EQ(error("schema = 1\nmeasure = 3\n"), "measure: a table [measure] is needed, not 3");
  EXPECT_EQ(error("schema = 1\n[measure]\nwarmup = \"0 s\"\n[[flow]]\n"),
            "measure.duration: is missing (or operations)");
  EXPECT_EQ(error("schema = 1\n[measure]\nduration = \"1 us\"\noperations = 3\n"),
            "measure.operations: cannot be combined with duration");
  EXPECT_EQ(error("schema = 1\n[measure]\nduration = \"0 s\"\n"),
            "measure.duration: \"1 ns\"..\"1000 s\" is needed, not \"0 s\"");
  EXPECT_EQ(error("schema = 1\n[measure]\noperations = 0\n"), "measure.operations: 1..1000000000000 is needed, not 0");
  EXPECT_EQ(error("schema = 1\n[measure]\nduration = \"1 us\"\n"), "flow: is missing");
  EXPECT_EQ(error("schema = 1\nflow = 3\n[measure]\nduration = \"1 us\"\n"),
            "flow: 1..256 tables [[flow]] is needed, not 3");
  EXPECT_EQ(error("schema = 1\n[measure]\nduration = \"1 us\"\n[[flow]]\n"), "flow[0].from: is missing");
  EXPECT_EQ(flow_error("windw = 3\n"), "flow[0].windw: unknown key; did you mean window?");
  EXPECT_EQ(flow_error("[[flow]]\nfrom = \"h0\"\nto = \"h1\"\n"), "flow[1].op: is missing");
  EXPECT_EQ(flow_error("[[flow]]\nfrom = \"h0\"\nto = \"h1\"\nop = \"read\"\n"), "flow[1].size: is missing");
  EXPECT_THAT(error("schema = \n"), HasSubstr("rror"));
  EXPECT_THAT(error("schema = 1\n\"a\\nb\" = 1\n[measure]\nduration = \"1 us\"\n[[flow]]\n"),
              HasSubstr("a?b: unknown key"));
}

TEST_F(BenchWorkload, Contradictions) {
  EXPECT_EQ(flow_error("window = 4\nbatch = 5\n"), "flow[0].batch: 1..4 is needed, not 5: no more than the window");
  EXPECT_EQ(flow_error("window = 4\nsignal_every = 5\n"),
            "flow[0].signal_every: 1..4 is needed, not 5: no more than the window");
  EXPECT_THAT(flow_error("window = 8\nsignal_every = 3\nqps = 4\nwindow_per = \"thread\"\n"),
              HasSubstr("flow[0].signal_every: 2 unsignalled"));
  EXPECT_EQ(flow_error("window = 9\nsignal_every = 3\nqps = 4\nwindow_per = \"thread\"\n"), "no error");
  EXPECT_EQ(flow_error("mix = [{ op = \"read\", size = \"1 B\" }]\n"),
            "flow[0].op: cannot be combined with mix, whose entries have their own");
  EXPECT_EQ(flow_error("mr_size = \"1 KiB\"\n"),
            "flow[0].mr_size: at least 4 KiB is needed, not \"1 KiB\": the longest message must fit");
  EXPECT_EQ(flow_error("start = \"3 us\"\nstop = \"3 us\"\n"),
            "flow[0].stop: a time after start is needed, not \"3 us\"");
  EXPECT_EQ(flow_error("inline = \"237 B\"\n"),
            "flow[0].inline: no more than 236 B is needed, not 237: the NIC's limit");
  EXPECT_EQ(flow_error("max_rd_atomic = 17\n"),
            "flow[0].max_rd_atomic: no more than 16 is needed, not 17: the NIC's limit");
  EXPECT_EQ(flow_error("inline = true\nwindow = 8193\n"),
            "flow[0].window: 1..8192 is needed, not 8193: the NIC's send ring");
  EXPECT_EQ(flow_error("qps = 65536\n"), "flow[0].qps: h0 has more QPs than nic.capabilities.max_qp");
  EXPECT_EQ(flow_error("qps = 65536\nthreads = 256\n"),
            "flow[0].qps: the flow has 16777216 connections; no more than 1048576 can be simulated");
  EXPECT_EQ(flow_error("mr_size = \"1 TiB\"\nmrs = 2\n"),
            "flow[0].mr_size: the memory regions of h0 are larger than 1 TiB");
  EXPECT_EQ(flow_error("address = { stride = \"12 B\" }\n"),
            "flow[0].address.stride: a multiple of 8 B is needed, not \"12 B\"");
}

TEST_F(BenchWorkload, WhatIsMeasured) {
  const auto with = [](const std::string& measure, const std::string& keys = "") {
    return "schema = 1\n" + measure + "[[flow]]\nfrom = \"h0\"\nto = \"h1\"\nop = \"read\"\nsize = \"8 B\"\n" + keys;
  };
  const auto measure = [&](const std::string& keys) { return with("[measure]\n" + keys); };
  EXPECT_FALSE(read(with("")).measure.is_given());
  EXPECT_FALSE(read(measure("")).measure.is_given());
  EXPECT_EQ(read(measure("warmup = \"1 us\"\nduration = \"1 us\"\n")).measure.warmup, 1_us);
  EXPECT_EQ(read(measure("operations = 3\n")).measure.warmup, std::nullopt);
  EXPECT_EQ(read(measure("limit = \"256 us\"\n")).measure.limit, 256_us);
  EXPECT_EQ(error(measure("limit = \"255 us\"\n")), "measure.limit: \"256 us\"..\"1000 s\" is needed, not \"255 us\"");
  EXPECT_EQ(error(measure("limit = \"1001 s\"\n")), "measure.limit: \"256 us\"..\"1000 s\" is needed, not \"1001 s\"");
  EXPECT_EQ(error(measure("warmup = \"1 us\"\nduration = \"1 us\"\nlimit = \"1 ms\"\n")),
            "measure.limit: cannot be combined with warmup");
  EXPECT_EQ(error(with("", "stop = \"1 ms\"\n")),
            "flow[0].stop: needs measure.duration or measure.operations: this flow reaches no steady rate");
  EXPECT_EQ(read(with("measure.duration = \"1 us\"\n", "stop = \"1 ms\"\n")).measure.warmup, 0_s);
  EXPECT_EQ(error(with("measure = { warmup = \"0 s\", duration = \"1 ms\" }\n", "start = \"1 ms\"\n")),
            "flow[0].start: a time before the end of the measurement is needed, not \"1 ms\"");
  EXPECT_EQ(error(with("", "start = \"1 ms\"\n")), "no error");
  EXPECT_EQ(error(with("", "start = \"1 s\"\n")), "flow[0].start: leaves no time before measure.limit");
}

TEST_F(BenchWorkload, Hosts) {
  const auto between = [](const char* from, const char* to, const char* rest = "") {
    return std::string(
               "schema = 1\ntopology = \"star\"\nmeasure.duration = \"1 us\"\n[[flow]]\nop = \"read\"\nsize = \"8 "
               "B\"\nfrom = ") +
           from + "\nto = " + to + "\n" + rest;
  };
  EXPECT_EQ(error(between("\"h0\"", "\"h1..h11\"", "connect = \"all\"")), "no error");
  EXPECT_EQ(error(between("\"h0\"", "\"h1..h11\"")), "no error");
  EXPECT_EQ(error(between("\"h0..h3\"", "\"h0..h3\"", "connect = \"all\"")), "no error");
  EXPECT_EQ(error(between("\"h0..h3\"", "\"h0..h3\"")), "flow[0].to: pairwise would connect h0 with itself");
  EXPECT_EQ(error(between("\"h0..h3\"", "\"h4..h6\"")),
            "flow[0].to: pairwise needs as many hosts in from as in to, or a multiple: there are 4 and 3");
  EXPECT_EQ(error(between("\"h0\"", "\"h0\"", "connect = \"all\"")),
            "flow[0].to: no host is left: `from` and `to` name the same host");
  EXPECT_EQ(error(between("\"a\"", "\"h1\"")), "flow[0].from: no host is called 'a'; the topology has h0 to h1");
  for (const char* bad : {"\"h1..\"", "\"..h1\"", "\"h3..h1\"", "\"h1..g4\"", "\"h0..h100000\"", "\"\"", "[]", "3",
                          "[3]", "\"h0..h4096\"", "[\"h0\", \"h0..h1\"]"})
    EXPECT_THAT(error(between(bad, "\"h1\"")), HasSubstr("flow[0].from: ")) << bad;
  EXPECT_THAT(error(between("\"h0\"", "\"h4095\"")), "no error");
  EXPECT_THAT(error(between("\"h0\"", "\"h4096\"")), HasSubstr("star:2 .. star:4096 is needed"));
  EXPECT_THAT(error(between("\"h0\"", "\"h4294967295\"")), HasSubstr("star:2 .. star:4096 is needed"));
}

TEST_F(BenchWorkload, Transports) {
  const auto of = [](const std::string& transport, const std::string& op, const std::string& rest = "") {
    return "schema = 1\nmeasure.duration = \"1 us\"\n[[flow]]\nfrom = \"h0\"\nto = \"h1\"\ntransport = \"" + transport +
           "\"\nop = \"" + op + "\"\n" + rest;
  };
  const std::string size = "size = \"8 B\"\n";
  for (const char* op : {"send", "send_imm", "write", "write_imm", "read"})
    EXPECT_EQ(error(of("rc", op, size)), "no error");
  for (const char* op : {"send", "send_imm", "write", "write_imm"}) EXPECT_EQ(error(of("uc", op, size)), "no error");
  for (const char* op : {"send", "send_imm"}) EXPECT_EQ(error(of("ud", op, size)), "no error");
  EXPECT_EQ(error(of("uc", "read", size)), "flow[0].transport: uc has no read");
  EXPECT_EQ(error(of("uc", "fetch_add")), "flow[0].transport: uc has no fetch_add");
  EXPECT_EQ(error(of("ud", "write", size)), "flow[0].transport: ud has no write");
  EXPECT_EQ(error(of("ud", "send", "size = \"4096 B\"\n")), "no error");
  EXPECT_EQ(error(of("ud", "send", "size = \"4097 B\"\n")),
            "flow[0].size: no more than 4096 B is needed, not 4097: the MTU");
  EXPECT_EQ(error(of("ud", "send", size + "mr_size = \"47 B\"\n")),
            "flow[0].mr_size: at least 48 B is needed, not \"47 B\": the longest message must fit");
  EXPECT_EQ(error(of("ud", "send", size + "inline = \"60 B\"\nwindow = 16384\n")), "no error");
  EXPECT_EQ(error(of("ud", "send", size + "window = 16385\n")),
            "flow[0].window: 1..16384 is needed, not 16385: the NIC's send ring");
  EXPECT_EQ(flow_error("transport = \"tcp\"\n"),
            "flow[0].transport: \"rc\", \"uc\", \"ud\", \"raw\" or \"xrc\" is needed, not \"tcp\"");
}

constexpr const char* kFrames = R"(schema = 1
measure.duration = "1 us"
[[flow]]
from = "h0"
to = "h1"
transport = "raw"
)";

TEST_F(BenchWorkload, RawPackets) {
  const std::string head = std::string(kFrames) + "op = \"send\"\n";
  const auto plain = read(head + "size = \"60 B\"\n").flows.front();
  EXPECT_EQ(plain.raw.flows, 64u);
  EXPECT_EQ(plain.raw.rx_queues, 1u);
  EXPECT_EQ(plain.raw.rss_fields.size(), 4u);
  EXPECT_EQ(plain.raw.key_text().substr(0, 8), "6d5a56da");
  EXPECT_EQ(plain.receives(), 1024u);
  const auto full = read(head + R"(size = "9000 B"
flows = 7
checksums = true
tso_mss = 1000
rx_queues = 3
rss_key = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f2021222324252627"
rss_fields = ["dst_port_udp", "src_ipv4"]
)")
                        .flows.front();
  EXPECT_EQ(full.raw.flows, 7u);
  EXPECT_TRUE(full.raw.checksums);
  EXPECT_EQ(full.raw.tso_mss, 1000u);
  EXPECT_EQ(full.raw.rx_queues, 3u);
  EXPECT_EQ(full.raw.rss_key[39], 39);
  EXPECT_THAT(full.raw.rss_fields, ElementsAre(RssField::dst_port_udp, RssField::src_ipv4));
  EXPECT_EQ(full.place().bytes, 1042u);
}

TEST_F(BenchWorkload, RawPacketsAreRefused) {
  const std::string head = std::string(kFrames) + "op = \"send\"\n";
  const auto refusal = [this](const std::string& keys) {
    const bool sized = keys.find("size") != keys.npos && keys.find("mr_size") == keys.npos;
    return error(std::string(kFrames) + (keys.find("op = ") == keys.npos ? "op = \"send\"\n" : "") +
                 (sized ? "" : "size = \"60 B\"\n") + keys);
  };
  EXPECT_EQ(refusal("op = \"write\"\n"), "flow[0].transport: raw has no write");
  EXPECT_EQ(refusal("op = \"send_imm\"\n"), "flow[0].transport: raw has no send_imm");
  EXPECT_EQ(refusal("size = \"59 B\"\n"),
            "flow[0].size: at least 60 B is needed, not \"59 B\": Ethernet's shortest frame");
  EXPECT_EQ(refusal("size = \"9018 B\"\n"), "no error");
  EXPECT_EQ(refusal("size = \"9019 B\"\n"),
            "flow[0].size: no more than 9018 B is needed, not 9019: nic.capabilities.max_frame");
  const std::string segmented = "checksums = true\nwindow = 2\ntso_mss = ";
  EXPECT_EQ(refusal("size = \"65549 B\"\n" + segmented + "8976\n"), "no error");
  EXPECT_THAT(refusal("size = \"65550 B\"\n" + segmented + "8976\n"), HasSubstr("no more than 65549 B"));
  EXPECT_THAT(refusal(segmented + "8977\n"), HasSubstr("flow[0].tso_mss: no more than 8976 is needed, not 8977"));
  EXPECT_EQ(refusal(segmented + "18\n"), "no error");
  EXPECT_THAT(refusal(segmented + "17\n"), HasSubstr("flow[0].tso_mss: 18..9000 is needed, not 17"));
  EXPECT_EQ(refusal("tso_mss = 1000\n"), "flow[0].tso_mss: needs checksums = true");
  EXPECT_EQ(refusal(segmented + "1000\ninline = true\n"), "flow[0].inline: cannot be combined with tso_mss");
  EXPECT_EQ(refusal("rx_queues = 256\n"), "no error");
  EXPECT_EQ(refusal("rx_queues = 257\n"), "flow[0].rx_queues: 1..256 is needed, not 257");
  EXPECT_EQ(refusal("flows = 65536\n"), "no error");
  EXPECT_EQ(refusal("flows = 0\n"), "flow[0].flows: 1..65536 is needed, not 0");
  EXPECT_EQ(refusal("recv_depth = 1\n"), "no error");
  EXPECT_EQ(refusal("recv_depth = 0\n"), "flow[0].recv_depth: 1..32768 is needed, not 0");
  for (const char* key :
       {"recv_inline = true", "mrs = 2", "mr_size = \"4 KiB\"", "address = \"random\"", "share = true"})
    EXPECT_THAT(refusal(key + std::string("\n")), HasSubstr("cannot be combined with transport = \"raw\"")) << key;
  for (const char* bad : {"\"00\"", "5", "[]"})
    EXPECT_THAT(refusal("rss_key = " + std::string(bad) + "\n"),
                HasSubstr("flow[0].rss_key: 40 bytes, two hexadecimal digits each, is needed"))
        << bad;
  EXPECT_THAT(refusal("rss_key = \"" + std::string(79, '0') + "g\"\n"), HasSubstr("flow[0].rss_key: 40 bytes"));
  for (const char* bad : {"\"src_ipv4\"", "[]", "[\"src_ipv6\"]", "[4]"})
    EXPECT_THAT(refusal("rss_fields = " + std::string(bad) + "\n"), HasSubstr("flow[0].rss_fields: a list of some of"))
        << bad;
  EXPECT_EQ(refusal("rss_fields = [\"src_ipv4\", \"src_ipv4\"]\n"), "flow[0].rss_fields: \"src_ipv4\" is listed twice");
  EXPECT_EQ(error("set = { nic.capabilities.raw = false }\n" + head + "size = \"60 B\"\n"),
            "flow[0].transport: the NIC has no raw packets: nic.capabilities.raw is false");
  for (const char* key :
       {"flows = 1", "checksums = true", "tso_mss = 18", "rx_queues = 1", "rss_key = \"\"", "rss_fields = []"})
    EXPECT_THAT(flow_error(key + std::string("\n")), HasSubstr("needs transport = \"raw\"")) << key;
}

TEST_F(BenchWorkload, Addresses) {
  EXPECT_EQ(flow("address = \"one\"\n").address, Addressing::one);
  EXPECT_TRUE(flow("address = \"one\"\n").share);
  EXPECT_FALSE(flow("address = \"random\"\n").share);
  const auto hot = flow("address = { zipf = 1, slots = 100, stride = \"4 KiB\" }\nshare = true\n");
  EXPECT_EQ(hot.address, Addressing::zipf);
  EXPECT_EQ(hot.zipf, 1);
  EXPECT_EQ(hot.slots, 100u);
  EXPECT_EQ(hot.stride, 4_KiB);
  EXPECT_EQ(flow("address = { slots = 64 }\n").address, Addressing::slots);
  EXPECT_EQ(flow("address = { stride = \"8 B\" }\n").address, Addressing::stride);
  EXPECT_EQ(flow_error("address = \"one\"\nshare = false\n"), "flow[0].address: \"one\" needs share = true");
  EXPECT_EQ(flow_error("address = \"hot\"\n"),
            "flow[0].address: \"fixed\", \"sequential\", \"random\" or \"one\" is needed, not \"hot\"");
  EXPECT_EQ(flow_error("address = {}\n"), "flow[0].address.stride: is missing (or slots, or zipf)");
  EXPECT_EQ(flow_error("address = { slot = 3 }\n"), "flow[0].address.slot: unknown key; did you mean slots?");
  for (const char* bad : {"0", "0.001", "10.5", "-1", "nan", "\"much\""})
    EXPECT_THAT(flow_error("address = { zipf = " + std::string(bad) + " }\n"),
                HasSubstr("flow[0].address.zipf: 0.01..10 is needed, not "))
        << bad;
  for (const char* bad : {"0", "-1", "1.5", "\"8 B\""})
    EXPECT_THAT(flow_error("address = { slots = " + std::string(bad) + " }\n"),
                HasSubstr("flow[0].address.slots: 1..137438953472 is needed, not "))
        << bad;
  EXPECT_EQ(flow_error("address = { slots = 17 }\nmr_size = \"64 KiB\"\n"),
            "flow[0].address.slots: 1..16 is needed, not 17: the memory has no further places");
  EXPECT_EQ(flow_error("address = { slots = 17 }\nmr_size = \"64 KiB\"\nmrs = 2\n"), "no error");
  EXPECT_EQ(flow_error("address = { slots = 1000000 }\n"), "no error");
  EXPECT_EQ(flow_error("address = { slots = 1000, stride = \"8 B\" }\n"), "no error");
  EXPECT_EQ(flow_error("address = { slots = 137438953472, stride = \"1 TiB\" }\n"),
            "flow[0].address.slots: 1..2 is needed, not 137438953472: the memory has no further places");
  EXPECT_EQ(flow_error("ping_pong = true\nshare = true\n"), "flow[0].share: cannot be combined with ping_pong");
}

TEST_F(BenchWorkload, Sequences) {
  const std::string head = "schema = 1\nmeasure.duration = \"1 us\"\n[[flow]]\nfrom = \"h0\"\nto = \"h1\"\n";
  const auto steps = [&](const std::string& keys) {
    std::string text;
    const auto flow = read(head + keys).flows.front();
    EXPECT_TRUE(flow.sequence);
    for (const auto& op : flow.mix) text += std::string(to_string(op.op)) + ' ' + to_string(op.size) + ", ";
    return text + (flow.locks() ? "locks" : "");
  };
  const std::string size = "size = \"64 B\"\n";
  EXPECT_EQ(steps("op = \"lock_write\"\n" + size), "cmp_swap 8 B, write 64 B, write 8 B, locks");
  EXPECT_EQ(steps("sequence = [\"cmp_swap\", \"write\", \"write\"]\n" + size),
            "cmp_swap 8 B, write 64 B, write 8 B, locks");
  EXPECT_EQ(steps("sequence = [\"read\", { op = \"send\", size = \"1 KiB\" }, \"fetch_add\"]\n" + size),
            "read 64 B, send 1 KiB, fetch_add 8 B, ");
  EXPECT_EQ(read(head + "op = \"lock_write\"\n" + size).flows.front().place(), 72_B);
  for (const char* bad : {"[]", "3", "\"read\""})
    EXPECT_THAT(error(head + "sequence = " + bad + "\n" + size),
                HasSubstr("flow[0].sequence: a list of 1..64 operations, each by name or { op, size }, is needed"))
        << bad;
  for (const char* bad : {"[\"write\", \"cmp_swap\"]", "[\"cmp_swap\"]", "[\"cmp_swap\", \"read\"]",
                          "[\"cmp_swap\", \"cmp_swap\", \"write\"]"})
    EXPECT_EQ(error(head + "sequence = " + bad + "\n" + size),
              "flow[0].sequence: a cmp_swap takes a lock: the cmp_swap must be the first operation and the "
              "only cmp_swap, and the last operation, a write, frees the lock")
        << bad;
  EXPECT_EQ(error(head + "sequence = [\"read\"]\n"), "flow[0].sequence[0].size: is missing");
  EXPECT_THAT(error(head + "sequence = [\"read\", 4]\n" + size), HasSubstr("flow[0].sequence[1].op: "));
  EXPECT_THAT(error(head + "sequence = [\"lock_write\"]\n" + size), HasSubstr("flow[0].sequence[0].op: "));
  EXPECT_THAT(error(head + "mix = [{ op = \"reg_mr\", size = \"8 B\" }]\n"), HasSubstr("flow[0].mix[0].op: "));
  for (const char* key :
       {"op = \"read\"", "mix = []", "batch = 1", "signal_every = 1", "pick = \"random\"", "ping_pong = true"})
    EXPECT_THAT(error(head + "sequence = [\"read\"]\n" + size + key + '\n'),
                HasSubstr("cannot be combined with sequence"))
        << key;
  EXPECT_EQ(error(head + "op = \"lock_write\"\nbatch = 1\n" + size),
            "flow[0].batch: cannot be combined with op = \"lock_write\"");
  EXPECT_EQ(error(head + "sequence = [\"write\"]\ntransport = \"uc\"\n" + size),
            "flow[0].transport: sequences need \"rc\"");
  EXPECT_EQ(error("set = { nic.timing_only = true }\n" + head + "op = \"lock_write\"\n" + size),
            "flow[0].sequence: needs payload to test the lock, but nic.timing_only is true");
}

TEST_F(BenchWorkload, Registration) {
  const std::string head = "schema = 1\nmeasure.duration = \"1 us\"\n[[flow]]\nfrom = \"h0\"\nop = \"reg_mr\"\n";
  EXPECT_EQ(error(head), "flow[0].size: is missing");
  const auto sized = head + "size = \"1 MiB\"\n";
  EXPECT_EQ(error(sized + "threads = 2\nuars = \"per_thread\"\npage = \"2 MiB\"\npace = 1000\nstop = \"1 ms\"\n"),
            "no error");
  for (const char* key : {"to = \"h1\"", "transport = \"rc\"", "qps = 1", "window = 1", "address = \"fixed\"",
                          "mrs = 1", "mtu = 1024", "inline = true", "recv_depth = 3", "share = true"})
    EXPECT_THAT(error(sized + key + '\n'), HasSubstr("cannot be combined with op = \"reg_mr\"")) << key;
}

TEST_F(BenchWorkload, SharedRegions) {
  const auto planned = [this](const std::string& keys) {
    return prepare({.workload = file(std::string(kLeast) + "threads = 3\nqps = 2\n" + keys).string()}).plan.agents;
  };
  const auto apart = planned(""), together = planned("share = true\nuars = \"per_thread\"\n");
  ASSERT_EQ(together.size(), 6u);
  for (std::uint32_t i = 0; i < 6; ++i) {
    EXPECT_EQ(apart[i].lender, i);
    EXPECT_EQ(together[i].lender, i < 3 ? i : 3);
    EXPECT_EQ(together[i].first_place, i < 3 ? 0 : 2 * (i - 3));
    EXPECT_EQ(together[i].region, i < 3 ? 8_KiB : 24_KiB);
  }
}

TEST_F(BenchWorkload, Faults) {
  const auto with = [](const std::string& faults) {
    return "schema = 1\nmeasure.duration = \"1 us\"\nfaults = " + faults +
           "\n[[flow]]\nfrom = \"h0\"\nto = \"h1\"\nop = \"read\"\nsize = \"8 B\"\n";
  };
  const auto prepared = prepare(
      {.workload = file(with("[\"drop=1e-3\", \"delay,by=2us,nth=3\"]")).string(), .faults = {"corrupt=0.5,host=h1"}});
  ASSERT_EQ(prepared.config.faults.size(), 3u);
  EXPECT_EQ(prepared.workload.faults.front(), "drop=1e-3");
  for (const char* bad : {"\"drop\"", "[]", "[3]", "[\"drop\", 3]"})
    EXPECT_THAT(error(with(bad)), HasSubstr("faults: a list of rules such as \"drop=1e-3\" is needed, not ")) << bad;
  for (const char* bad : {"lose", "drop=2", "drop,host=h7", "delay"})
    EXPECT_THAT(error(with("[\"" + std::string(bad) + "\"]")), HasSubstr("--fault")) << bad;
}

TEST_F(BenchWorkload, Pages) {
  EXPECT_EQ(flow_error("page = \"3 KiB\"\n"), "flow[0].page: \"4 KiB\"..\"1 GiB\" is needed, not \"3 KiB\"");
  EXPECT_EQ(flow_error("page = \"8 KiB\"\n"),
            "flow[0].page: \"4 KiB\", \"64 KiB\", \"2 MiB\" or \"1 GiB\" is needed, not \"8 KiB\"");
}

TEST_F(BenchWorkload, Overrides) {
  const auto path = file(kLeast).string();
  const auto with = [&](std::vector<std::string> sets) { return prepare({.workload = path, .sets = std::move(sets)}); };
  EXPECT_EQ(with({"flow[0].window=8"}).workload.flows[0].window, 8u);
  EXPECT_EQ(with({"flow.size=64 B", "flow.address={ stride = \"64 B\" }"}).workload.flows[0].stride, 64_B);
  EXPECT_EQ(with({"measure.operations=5"}).workload.measure.operations, 5u);
  EXPECT_EQ(with({"measure.warmup=3us"}).workload.measure.warmup, 3_us);
  EXPECT_EQ(with({"seed=9"}).workload.seed, 9u);
  EXPECT_EQ(with({"nic.tx.latency=1us"}).config.nic.tx.latency, 1_us);
  for (const char* bad : {"flow[1].window=8", "flow[0.window=8", "flow[].window=8", "flow[0].windw=8",
                          "flow[0].window=0", "flow[0]=1", "nic.tx.late=1ns"})
    EXPECT_THROW(with({bad}), ConfigError) << bad;
}

}  // namespace
}  // namespace rnicsim::sim::bench::workload_test
