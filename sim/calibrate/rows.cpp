// SPDX-License-Identifier: Apache-2.0
// The table of experiments; the reference values are those of published measurements (docs/timing.md, Calibration).
#include "sim/calibrate/row.h"

#include <fmt/format.h>

#include <algorithm>

namespace rnicsim::sim::calibrate {
namespace {

Check within(std::string what, double expected, double off, std::string unit,
             std::function<double(const Measured&)> simulated) {
  return {std::move(what), expected, expected - off, expected + off, std::move(unit), std::move(simulated)};
}
Check between(std::string what, double expected, double low, double high, std::string unit,
              std::function<double(const Measured&)> simulated) {
  return {std::move(what), expected, low, high, std::move(unit), std::move(simulated)};
}

Row one_way() {
  return {.id = "CAL-1",
          .setup = "cx5-100g, RC WRITE 2 B inline, one way, as ib_write_lat",
          .points = {{"2 B", "cal-1", {}}},
          .checks = {between("one way", 0.95, 0.85, 1.05, "us", [](const Measured& m) { return m.latency(0) / 1e3; })}};
}

Row inline_step() {
  Row row{.id = "CAL-2",
          .setup = "RC WRITE, one way, by size; inline up to 220 B; other steps up to 512 B, where no wire dominates",
          .points = {},
          .checks = {}};
  static constexpr int kSizes[] = {8, 16, 32, 64, 128, 256, 512};
  struct Nic {
    const char* name;
    const char* host;
    double step;
    bool fast;
  };
  for (const auto& [name, host, step, fast] : {Nic{"cx5-100g", "xeon-gen3", 0.5, true},
                                               {"cx6-200g", "epyc-gen4", 0.91, true},
                                               {"cx3-40g", "xeon-e5", 0.74, false}}) {
    const auto first = row.points.size();
    for (const int size : kSizes)
      row.points.push_back(
          {fmt::format("{} {} B", name, size),
           "cal-1",
           {fmt::format("nic={}", name), fmt::format("host={}", host), fmt::format("flow.size={} B", size)}});
    const auto rise = [first](const Measured& m, std::size_t at) {
      return (m.latency(first + at) - m.latency(first + at - 1)) / 1e3;
    };
    constexpr std::size_t kStep = 5;  // 256 B
    row.checks.push_back(between(fmt::format("{}, 128 B to 256 B", name), step, 0.5, 0.95, "us",
                                 [rise](const Measured& m) { return rise(m, kStep); }));
    row.checks.back().nic = name;
    if (!fast) continue;
    const auto largest = [rise](const Measured& m) {
      double most = 0;
      for (std::size_t at = 1; at < std::size(kSizes); ++at)
        if (at != kStep) most = std::max(most, rise(m, at));
      return most;
    };
    row.checks.push_back(between(fmt::format("{}, the largest other step", name), 0, 0, 0.1, "us", largest));
    row.checks.back().nic = name;
  }
  return row;
}

Row wire_share() {
  const auto share = [](std::size_t point) { return [point](const Measured& m) { return m.goodput(point) / 1e9; }; };
  return {.id = "CAL-3",
          .setup = "cx5-100g, RC WRITE 64 KiB: payload, % of the line",
          .points = {{"MTU 1024", "cal-3", {"flow.mtu=1024"}}, {"MTU 4096", "cal-3", {"flow.mtu=4096"}}},
          .checks = {within("MTU 1024", 92.6, 0.5, "%", share(0)), within("MTU 4096", 98.0, 0.5, "%", share(1))}};
}

Row doorbells() {
  return {.id = "CAL-4",
          .setup = "connectib-2xfdr, UD SEND 32 B inline, 14 threads: 16 a doorbell, or BlueFlame each",
          .points = {{"BlueFlame", "cal-4", {}}, {"batch 16", "cal-4", {"flow.batch=16"}}},
          .checks = {within("batch 16 over BlueFlame", 1.27, 0.1, "x",
                            [](const Measured& m) { return m.rate(1) / m.rate(0); })}};
}

// Rate of the receiver's completions; more is sent. UC instead of UD: a datagram of RoCE brings a GRH, a datagram of
// InfiniBand does not. UC shows the cost of a receive with the data in its CQE or beside it.
Row inline_receive() {
  const auto received = [](const Measured& m, std::size_t point) {
    return m.counter(point, "h0", "nic.completion.cqes");
  };
  return {.id = "CAL-5",
          .setup = "connectib-2xfdr, UC SEND 32 B from two machines, in its CQE or beside it",
          .points = {{"regular", "cal-5", {}}, {"inline", "cal-5", {"flow.recv_inline=true"}}},
          .checks = {within("inline over regular", 1.49, 0.15, "x",
                            [=](const Measured& m) { return received(m, 1) / received(m, 0); })}};
}

Row context_cache() {
  Row row{
      .id = "CAL-6",
      .setup = "connectib-2xfdr, RC READ 32 B from 11 machines, 14 threads, window 32 each; rate over that at 154 QPs",
      .points = {},
      .checks = {}};
  struct Step {
    int qps;
    double expected;
  };
  for (const auto& [qps, expected] :
       {Step{154, 1}, {308, 0.90}, {462, 0.82}, {770, 0.74}, {1078, 0.69}, {1386, 0.61}}) {
    const auto point = row.points.size();
    row.points.push_back({fmt::format("{} QPs", qps), "cal-6", {fmt::format("flow.qps={}", qps / 154)}});
    if (point == 0)
      row.checks.push_back(within("154 QPs", 47.7, 3, "M/s", [](const Measured& m) { return m.rate(0) / 1e6; }));
    else
      row.checks.push_back(within(fmt::format("{} QPs", qps), expected, 0.07, "",
                                  [point](const Measured& m) { return m.rate(point) / m.rate(0); }));
  }
  return row;
}

Row send_wqe_cache() {
  const auto ratio = [](std::size_t point) { return [point](const Measured& m) { return m.rate(point) / m.rate(0); }; };
  Row row{.id = "CAL-7",
          .setup = "cx6-200g, RC READ 8 B, 96 threads; outstanding = threads x depth; rate over that at 768",
          .points = {},
          .checks = {within("768 outstanding", 111, 9, "M/s", [](const Measured& m) { return m.rate(0) / 1e6; }),
                     between("1152 outstanding", 0.98, 0.96, 1.01, "", ratio(1)),
                     between("1536 outstanding", 0.82, 0.70, 0.94, "", ratio(2)),
                     within("3072 outstanding", 0.50, 0.08, "", ratio(3))}};
  for (const int depth : {8, 12, 16, 32})
    row.points.push_back({fmt::format("{} outstanding", 96 * depth), "cal-7", {fmt::format("flow.window={}", depth)}});
  return row;
}

Row atomics() {
  return {.id = "CAL-8",
          .setup = "cx5-100g, fetch-and-add, 16 outstanding a QP",
          .points = {{"one QP, one address", "cal-8", {}},
                     {"many QPs, many addresses",
                      "cal-8",
                      {"flow.threads=8", "flow.qps=4", "flow.uars=per_thread", "flow.address=random",
                       "flow.mr_size=64 KiB"}},
                     {"stride 4 KiB", "cal-8", {"flow.address={ stride = \"4 KiB\" }"}}},
          .checks = {
              between("one QP, one address", 2.25, 1.9, 2.6, "M/s", [](const Measured& m) { return m.rate(0) / 1e6; }),
              between("32 QPs, many addresses, over that", 15, 15, kMuch, "x",
                      [](const Measured& m) { return m.rate(1) / m.rate(0); }),
              within("one QP, a stride of 4 KiB, over that", 1, 0.05, "x",
                     [](const Measured& m) { return m.rate(2) / m.rate(0); })}};
}

// Points: WRITE; READ with max_rd_atomic 1, 2, 4, 16; READ with two QPs and 16.
Row reads_in_flight() {
  const auto of_write = [](std::size_t point) {
    return [point](const Measured& m) { return m.goodput(point) / m.goodput(0); };
  };
  Row row{.id = "CAL-9",
          .setup = "cx5-100g, RC READ 64 KiB, MTU 4096: goodput over that of WRITE",
          .points = {{"WRITE", "cal-9", {"flow.op=write"}}},
          .checks = {}};
  for (const int reads : {1, 2, 4, 16})
    row.points.push_back(
        {fmt::format("max_rd_atomic {}", reads), "cal-9", {fmt::format("flow.max_rd_atomic={}", reads)}});
  row.points.push_back({"2 QPs", "cal-9", {"flow.qps=2", "flow.max_rd_atomic=16"}});
  // Proportional, up to the limit of the wire or of one QP.
  row.checks.push_back(within("max_rd_atomic 2 over 1, or one QP's limit", 1, 0.05, "x", [](const Measured& m) {
    return m.goodput(2) / std::min(2 * m.goodput(1), m.goodput(4));
  }));
  row.checks.push_back(between("one QP, max_rd_atomic 16", 0.90, 0.85, 0.95, "", of_write(4)));
  row.checks.push_back(between("two QPs, max_rd_atomic 16", 1, 0.98, 1.02, "", of_write(5)));
  return row;
}

Row loaded_reads() {
  const auto read_time = [](const Measured& m, std::size_t point) {
    return m.counter(point, "h1", "nic.dma.read_time") / m.counter(point, "h1", "nic.dma.reads");
  };
  Row row{.id = "CAL-10",
          .setup = "cx5-100g, reads of 64 B by the device, against the load of its link to the host",
          .points = {},
          .checks = {within("time of a read at full load over idle", 2, 0.4, "x",
                            [=](const Measured& m) { return read_time(m, 4) / read_time(m, 0); }),
                     within("that load", 88, 3, "%",
                            [](const Measured& m) { return 100 * m.derived(4, "h1", "nic.dma.to_host_busy_share"); })}};
  for (const auto* pace : {"0.1", "25", "50", "75", "98"})
    row.points.push_back({fmt::format("{} Gb-s", pace), "cal-10", {fmt::format("flow[0].pace={} Gb/s", pace)}});
  return row;
}

// Go-back-N: a loss costs the packets in flight, which are those of one round trip.
Row losses() {
  Row row{.id = "CAL-11",
          .setup = "cx5-100g, RC WRITE 64 KiB, MTU 1024, packets lost; goodput over that without losses",
          .points = {{"no loss", "cal-11", {}}},
          .checks = {}};
  struct Loss {
    const char* name;
    double share;
  };
  constexpr double kInFlight = 25;  // packets of 1106 B in the 2.2 us from a packet to its NAK and back
  for (const auto& [name, share] : {Loss{"1e-4", 1e-4}, {"1e-3", 1e-3}, {"1e-2", 1e-2}}) {
    const auto point = row.points.size();
    row.points.push_back({name, "cal-11", {fmt::format("faults=[\"drop={}\"]", name)}});
    row.checks.push_back(within(fmt::format("{} of the packets", name), 1 / (1 + share * kInFlight), 0.08, "",
                                [point](const Measured& m) { return m.goodput(point) / m.goodput(0); }));
  }
  return row;
}

Row small_context_cache() {
  Row row{.id = "CAL-12",
          .setup = "cx3-40g, RC READ 32 B, 32 outstanding in all; rate over that at 48 QPs",
          .points = {{"48 QPs", "cal-12", {}}},
          .checks = {between("48 QPs", 11.1, 11.1 * 0.7, 11.1 * 1.3, "M/s",
                             [](const Measured& m) { return m.rate(0) / 1e6; })}};
  struct Step {
    int peers, qps;  // QPs of each of eight threads to each peer
    double expected;
  };
  for (const auto& [peers, qps, expected] : {Step{11, 1, 0.69},
                                             {9, 2, 0.29},
                                             {11, 2, 0.24},
                                             {10, 3, 0.19},
                                             {6, 7, 0.159},
                                             {9, 6, 0.145},
                                             {11, 6, 0.135},
                                             {10, 9, 0.12}}) {
    const auto point = row.points.size();
    const auto name = fmt::format("{} QPs", 8 * peers * qps);
    row.points.push_back({name, "cal-12", {fmt::format("flow.to=h1..h{}", peers), fmt::format("flow.qps={}", qps)}});
    row.checks.push_back(
        within(name, expected, 0.3 * expected, "", [point](const Measured& m) { return m.rate(point) / m.rate(0); }));
  }
  return row;
}

// Points: threads, and outstanding operations of each. The last check is the lowest rate over the peak.
Row writes_not_inline() {
  Row row{.id = "CAL-13",
          .setup = "cx6-200g, RC WRITE 8 B not inline, one QP a thread; threads x outstanding",
          .points = {},
          .checks = {}};
  struct Point {
    int threads, window;
    double expected, off;
  };
  for (const auto& [threads, window, expected, off] :
       {Point{96, 10, 92.7, 5}, {36, 32, 91.4, 5}, {72, 16, 67, 6}, {96, 16, 66.5, 5}, {96, 32, 63, 6}}) {
    const auto point = row.points.size();
    const auto name = fmt::format("{} x {}", threads, window);
    row.points.push_back(
        {name, "cal-13", {fmt::format("flow.threads={}", threads), fmt::format("flow.window={}", window)}});
    row.checks.push_back(
        within(name, expected, off, "M/s", [point](const Measured& m) { return m.rate(point) / 1e6; }));
    if (window == 16) row.checks.back().argued = "docs/timing.md, CAL-13";
  }
  row.checks.push_back(within("96 x 32 over the peak", 0.68, 0.06, "",
                              [](const Measured& m) { return m.rate(4) / std::max(m.rate(0), m.rate(1)); }));
  return row;
}

// Checks the steps from size to size, not the times: a time that is added to all sizes is the host's.
Row sizes_one_way() {
  Row row{.id = "CAL-15",
          .setup = "cx6-200g, RC WRITE, one way, MTU 4096: what a size takes more than the one before it",
          .points = {},
          .checks = {}};
  struct Size {
    const char* name;
    double measured;  // us
  };
  static constexpr Size kSizes[] = {{"2 B", 1.87},   {"64 B", 1.91},   {"128 B", 1.96},  {"256 B", 2.87},
                                    {"512 B", 2.96}, {"1 KiB", 3.05},  {"2 KiB", 3.19},  {"4 KiB", 3.85},
                                    {"8 KiB", 4.22}, {"16 KiB", 4.39}, {"32 KiB", 5.24}, {"64 KiB", 6.76},
                                    {"1 MiB", 46.9}};
  for (const auto& [name, measured] : kSizes) {
    const auto point = row.points.size();
    row.points.push_back(
        {name, "cal-1", {"nic=cx6-200g", "host=epyc-gen4", "flow.mtu=4096", fmt::format("flow.size={}", name)}});
    if (point == 0) continue;
    const double step = measured - kSizes[point - 1].measured;
    row.checks.push_back(
        within(fmt::format("{} to {}", kSizes[point - 1].name, name), step, std::max(0.05, 0.3 * step), "us",
               [point](const Measured& m) { return (m.latency(point) - m.latency(point - 1)) / 1e3; }));
    if (step < 0.7 && measured > 2.9) row.checks.back().argued = "docs/timing.md, CAL-15";
  }
  return row;
}

// Points: number of threads with one context; in the last point each thread has a context.
Row doorbell_lock() {
  Row row{.id = "CAL-14",
          .setup = "cx6-200g, RC READ 8 B, window 8, one context for all threads (16 doorbell pages) or each its own",
          .points = {},
          .checks = {}};
  for (const int threads : {8, 16, 24, 32, 48, 64, 96})
    row.points.push_back({fmt::format("{} threads", threads), "cal-14", {fmt::format("flow.threads={}", threads)}});
  row.points.push_back({"96 contexts", "cal-14", {"flow.threads=96", "flow.uars=per_thread"}});
  const auto last = row.points.size() - 2;
  row.checks.push_back(within("96 threads over the peak", 0.49, 0.12, "", [last](const Measured& m) {
    double peak = 0;
    for (std::size_t point = 0; point <= last; ++point) peak = std::max(peak, m.rate(point));
    return m.rate(last) / peak;
  }));
  row.checks.push_back(between("96 contexts over one", 5.8, 4, 8, "x",
                               [last](const Measured& m) { return m.rate(last + 1) / m.rate(last); }));
  return row;
}

Row writes_inline() {
  Row row{.id = "CAL-16",
          .setup = "cx5-100g, a switch, RC WRITE 8 B inline in lists of 8, one QP a thread, 372 outstanding each",
          .points = {},
          .checks = {}};
  for (const int threads : {1, 6, 7, 8, 10})
    row.points.push_back({fmt::format("{} QPs", threads), "cal-16", {fmt::format("flow.threads={}", threads)}});
  row.checks.push_back(within("one QP", 18.26, 1, "M/s", [](const Measured& m) { return m.rate(0) / 1e6; }));
  row.checks.push_back(
      within("6 QPs over one", 6.17, 0.35, "x", [](const Measured& m) { return m.rate(1) / m.rate(0); }));
  for (std::size_t point = 2; point < row.points.size(); ++point)
    row.checks.push_back(within(row.points[point].name, 117.9, 117.9 * 0.02, "M/s",
                                [point](const Measured& m) { return m.rate(point) / 1e6; }));
  return row;
}

// Points: compare-and-swap by window, compare-and-swap with two QPs, READ.
Row atomics_of_a_qp() {
  Row row{.id = "CAL-17",
          .setup = "cx5-100g, compare-and-swap of one QP on 1,024 addresses, by window; READ 8 B in its place",
          .points = {},
          .checks = {}};
  struct Step {
    int window;
    double expected;
  };
  for (const auto& [window, expected] : {Step{1, 0.447}, {2, 0.891}, {4, 1.762}, {8, 2.890}, {16, 2.881}}) {
    const auto point = row.points.size();
    row.points.push_back({fmt::format("window {}", window), "cal-17", {fmt::format("flow.window={}", window)}});
    row.checks.push_back(within(fmt::format("window {}", window), expected, 0.2 * expected, "M/s",
                                [point](const Measured& m) { return m.rate(point) / 1e6; }));
  }
  row.points.push_back({"2 QPs", "cal-17", {"flow.qps=2"}});
  row.points.push_back({"READ", "cal-17", {"flow.op=read", "flow.size=8 B"}});
  row.checks.push_back(
      within("two QPs over one", 1.99, 0.15, "x", [](const Measured& m) { return m.rate(5) / m.rate(4); }));
  row.checks.push_back(
      within("over READ, window 16", 0.53, 0.08, "", [](const Measured& m) { return m.rate(4) / m.rate(6); }));
  return row;
}

}  // namespace

const Json& Measured::flow(std::size_t point, std::size_t flow) const {
  return results_.at(point).at("flows").at(flow);
}
double Measured::rate(std::size_t point, std::size_t number) const {
  return flow(point, number).at("rate_per_s").get<double>();
}
double Measured::goodput(std::size_t point, std::size_t number) const {
  return flow(point, number).at("goodput_bits_per_s").get<double>();
}
double Measured::latency(std::size_t point, std::size_t number) const {
  return flow(point, number).at("latency_ps").at("mean").get<double>() / 1e3;
}
double Measured::counter(std::size_t point, const char* host, const char* path) const {
  return results_.at(point).at("hosts").at(host).at("counters").at(path).get<double>();
}
double Measured::derived(std::size_t point, const char* host, const char* path) const {
  return results_.at(point).at("hosts").at(host).at("derived").at(path).get<double>();
}

std::vector<Row> all_rows() {
  return {one_way(),       inline_step(),         wire_share(),        doorbells(),       inline_receive(),
          context_cache(), send_wqe_cache(),      atomics(),           reads_in_flight(), loaded_reads(),
          losses(),        small_context_cache(), writes_not_inline(), doorbell_lock(),   sizes_one_way(),
          writes_inline(), atomics_of_a_qp()};
}

}  // namespace rnicsim::sim::calibrate
