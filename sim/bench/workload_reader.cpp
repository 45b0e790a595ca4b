// SPDX-License-Identifier: Apache-2.0
// Reads a workload file. The plan (plan.h) checks all that depends on NIC or topology.
#include <algorithm>
#include <charconv>
#include <sstream>

#include "sim/bench/overrides.h"
#include "sim/bench/table_reader.h"
#include "sim/bench/workload.h"
#include "sim/config/config_error.h"
#include "sim/config/toml_file.h"
#include "sim/config/topology.h"

namespace rnicsim::sim::bench {
namespace {

constexpr std::uint64_t kMostFlows = 256;
constexpr std::uint64_t kMostHosts = kMaxHosts;
constexpr Duration kLongest = 1000_s;
constexpr ByteCount kLargestMessage = 1024_MiB;

// Examples: "h3", "h1..h11".
void expand(const TableReader& reader, std::string_view key, const std::string& text, std::vector<std::string>& hosts) {
  const auto dots = text.find("..");
  if (dots == text.npos) {
    if (text.empty()) reader.refuse(key, "a host, or a range of hosts such as \"h1..h4\",");
    hosts.push_back(text);
    return;
  }
  const auto split = [&](std::string_view name) {
    const auto stem = name.find_last_not_of("0123456789") + 1;
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(name.data() + stem, name.data() + name.size(), number);
    if (error != std::errc{} || name.size() - stem > 4) reader.refuse(key, "a range of hosts such as \"h1..h4\"");
    return std::pair(name.substr(0, stem), number);
  };
  const auto [stem, first] = split(std::string_view(text).substr(0, dots));
  const auto [last_stem, last] = split(std::string_view(text).substr(dots + 2));
  if (stem != last_stem || last < first) reader.refuse(key, "a range of hosts such as \"h1..h4\"");
  if (last - first >= kMostHosts) reader.refuse(key, fmt::format("a range of 1..{} hosts", kMostHosts));
  for (auto number = first; number <= last; ++number) hosts.push_back(fmt::format("{}{}", stem, number));
}

std::vector<std::string> read_hosts(TableReader& reader, std::string_view key) {
  const auto& node = reader.need(key);
  std::vector<std::string> hosts;
  const auto take = [&](const toml::node& name) {
    if (!name.is_string()) reader.refuse(key, "a host, or a range of hosts such as \"h1..h4\",");
    expand(reader, key, name.as_string()->get(), hosts);
  };
  if (const auto* list = node.as_array()) {
    for (const auto& entry : *list) take(entry);
  } else {
    take(node);
  }
  if (hosts.empty() || hosts.size() > kMostHosts) reader.refuse(key, fmt::format("1..{} hosts", kMostHosts));
  for (std::size_t i = 0; i < hosts.size(); ++i)
    if (std::ranges::find(hosts.begin(), hosts.begin() + static_cast<std::ptrdiff_t>(i), hosts[i]) !=
        hosts.begin() + static_cast<std::ptrdiff_t>(i))
      reader.complain(key, fmt::format("{} is listed twice", shown(hosts[i])));
  return hosts;
}

MixedOp read_op(TableReader& reader, std::size_t ops = kPostedOps) {
  MixedOp entry;
  reader.need("op");
  reader.choice("op", entry.op, ops);
  if (is_atomic(entry.op)) {
    entry.size = 8_B;
    reader.size("size", entry.size, 8_B, 8_B);
  } else if (entry.op != Op::connect_qp) {
    reader.need("size");
    reader.size("size", entry.size, 1_B, kLargestMessage);
  }
  return entry;
}

// A step given by the name of its operation has the flow's size.
MixedOp read_step(TableReader& reader, const toml::node& node, std::size_t number) {
  const auto path = fmt::format("sequence[{}]", number);
  if (const auto* table = node.as_table()) {
    TableReader step(*table, reader.file(), reader.path_of(path));
    const auto entry = read_op(step);
    step.finish();
    return entry;
  }
  toml::table named;
  named.insert("op", node);
  if (const auto* size = reader.find("size")) named.insert("size", *size);
  if (node.value<std::string>() == to_string(Op::fetch_add) || node.value<std::string>() == to_string(Op::cmp_swap))
    named.erase("size");
  TableReader step(named, reader.file(), reader.path_of(path));
  return read_op(step);
}

// A sequence with a lock begins with cmp_swap, and its last write frees the lock.
void check_lock(const TableReader& reader, std::vector<MixedOp>& steps) {
  const auto locks = std::ranges::find(steps, Op::cmp_swap, &MixedOp::op);
  if (locks == steps.end()) return;
  if (locks != steps.begin() || std::ranges::count(steps, Op::cmp_swap, &MixedOp::op) != 1 ||
      steps.back().op != Op::write)
    reader.complain("sequence",
                    "a cmp_swap takes a lock: the cmp_swap must be the first operation and the only cmp_swap, and the "
                    "last operation, a write, frees the lock");
  steps.back().size = {Flow::kLockBytes};
}

std::vector<MixedOp> read_steps(TableReader& reader) {
  constexpr std::size_t kMost = 64;
  const auto* list = reader.find("sequence")->as_array();
  if (!list || list->empty() || list->size() > kMost)
    reader.refuse("sequence", fmt::format("a list of 1..{} operations, each by name or {{ op, size }},", kMost));
  std::vector<MixedOp> steps;
  for (const auto& node : *list) steps.push_back(read_step(reader, node, steps.size()));
  check_lock(reader, steps);
  return steps;
}

void refuse_beside_sequences(const TableReader& reader, const char* what) {
  for (const char* key : {"batch", "signal_every", "signal_per", "both_ways", "pick", "ping_pong"})
    if (reader.has(key)) reader.complain(key, fmt::format("cannot be combined with {}", what));
}

void add_sequence(Flow& flow, const std::vector<MixedOp>& steps, std::uint32_t weight = 1) {
  flow.sequences.push_back({.first = static_cast<std::uint32_t>(flow.mix.size()),
                            .count = static_cast<std::uint32_t>(steps.size()),
                            .weight = weight});
  flow.mix.insert(flow.mix.end(), steps.begin(), steps.end());
}

std::vector<MixedOp> steps_of_lock_write(ByteCount size) {
  return {{.op = Op::cmp_swap, .size = {Flow::kLockBytes}},
          {.op = Op::write, .size = size},
          {.op = Op::write, .size = {Flow::kLockBytes}}};
}

// If one entry is a sequence, or the name of one (lock_write), all entries are sequences, most of one step.
void read_mix(TableReader& reader, Flow& flow) {
  for (const char* key : {"op", "size"})
    if (reader.has(key)) reader.complain(key, "cannot be combined with mix, whose entries have their own");
  constexpr std::size_t kMost = 64;
  const auto* list = reader.find("mix")->as_array();
  if (!list || list->empty() || list->size() > kMost || !list->is_array_of_tables())
    reader.refuse("mix",
                  fmt::format("a list of 1..{} tables {{ op, weight, size }} or {{ sequence, weight, size }}", kMost));
  for (std::size_t i = 0; i < list->size(); ++i) {
    TableReader entry(*list->get_as<toml::table>(i), reader.file(), reader.path_of(fmt::format("mix[{}]", i)));
    std::vector<MixedOp> steps;
    if (entry.has("sequence")) {
      if (entry.has("op")) entry.complain("op", "cannot be combined with sequence");
      steps = read_steps(entry);
      entry.find("size");  // the size of the steps that are given by name
    } else {
      steps = {read_op(entry, kPostedOps + 1)};
      if (steps.front().op == Op::lock_write) steps = steps_of_lock_write(steps.front().size);
    }
    flow.sequence = flow.sequence || steps.size() > 1 || entry.has("sequence");
    std::uint32_t weight = 1;
    entry.number("weight", weight, 1, 1'000'000);
    entry.finish();
    if (steps.size() == 1) steps.front().weight = weight;
    add_sequence(flow, steps, weight);
  }
  if (flow.sequence)
    refuse_beside_sequences(reader, "a mix with sequences");
  else
    flow.sequences.clear();
}

// { stride } steps from place to place; { slots } and { zipf } draw a place, with `stride` as the distance if it is
// given.
void read_places(TableReader&& reader, Flow& flow) {
  reader.size("stride", flow.stride, 8_B, ByteCount{1ull << 40});
  reader.number("slots", flow.slots, 1, 1ull << 37);
  if (const auto* zipf = reader.find("zipf")) {
    constexpr double kLeast = 0.01, kMost = 10;
    flow.zipf = zipf->value<double>().value_or(0);
    if (!(flow.zipf >= kLeast && flow.zipf <= kMost)) reader.refuse("zipf", fmt::format("{}..{}", kLeast, kMost));
  }
  reader.finish();
  if (flow.stride.bytes % 8 != 0) reader.refuse("stride", "a multiple of 8 B");
  if (flow.zipf > 0)
    flow.address = Addressing::zipf;
  else if (flow.slots)
    flow.address = Addressing::slots;
  else if (flow.stride.bytes != 0)
    flow.address = Addressing::stride;
  else
    reader.complain("stride", "is missing (or slots, or zipf)");
}

void read_address(TableReader& reader, Flow& flow) {
  reader.flag("share", flow.share);
  const auto* node = reader.find("address");
  if (!node) return;
  if (const auto* table = node->as_table())
    return read_places(TableReader(*table, reader.file(), reader.path_of("address")), flow);
  reader.choice("address", flow.address, kNamedAddressings);
  if (flow.address != Addressing::one) return;
  if (reader.has("share") && !flow.share) reader.complain("address", "\"one\" needs share = true");
  flow.share = true;
}

// Reads a mix, a sequence, or one operation.
void read_what(TableReader& reader, Flow& flow) {
  if (reader.has("sequence")) {
    for (const char* key : {"op", "mix"})
      if (reader.has(key)) reader.complain(key, "cannot be combined with sequence");
    refuse_beside_sequences(reader, "sequence");
    flow.sequence = true;
    return add_sequence(flow, read_steps(reader));
  }
  if (reader.has("mix")) return read_mix(reader, flow);
  flow.mix = {read_op(reader, kOps)};
  if (flow.mix.front().op != Op::lock_write) return;
  refuse_beside_sequences(reader, "op = \"lock_write\"");
  flow.sequence = true;
  const auto size = flow.mix.front().size;
  flow.mix.clear();
  add_sequence(flow, steps_of_lock_write(size));
}

// Objects are made at one end of the flow, and no message is sent.
void check_churn(const TableReader& reader, const std::string& op) {
  for (const char* key :
       {"to",         "transport",     "qps",        "connect",   "window",  "window_per", "pick",     "batch",
        "inline",     "signal_every",  "signal_per", "both_ways", "srq",     "odp",        "doorbell", "ping_pong",
        "recv_depth", "recv_inline",   "mrs",        "mr_size",   "address", "share",      "mtu",      "dscp",
        "sl",         "max_rd_atomic", "rnr_timer",  "timeout",   "retry"})
    if (reader.has(key)) reader.complain(key, fmt::format("cannot be combined with op = \"{}\"", op));
}

// A size, or a flag: true takes the device's limit.
void read_inline(TableReader& reader, const char* key, ByteCount most, ByteCount& size, bool& device) {
  const auto* node = reader.find(key);
  if (!node) return;
  if (node->is_boolean())
    device = node->as_boolean()->get();
  else if (node->is_string() && parse_byte_count(node->as_string()->get()))
    reader.size(key, size, 0_B, most);
  else
    reader.refuse(key,
                  fmt::format("true, false, or the longest message to be inline, \"0 B\"..\"{}\",", to_string(most)));
}

void read_pace(TableReader& reader, Flow& flow) {
  const auto* node = reader.find("pace");
  if (!node) return;
  constexpr double kMostOperations = 1e9;
  Pace pace;
  if (const auto number = node->value<double>()) pace.operations_per_second = *number;
  if (node->is_string()) pace.rate = parse_bit_rate(node->as_string()->get()).value_or(BitRate{});
  const bool good = node->is_string()
                        ? pace.rate.bits_per_second >= 1000 && pace.rate <= BitRate{10'000'000'000'000}
                        : pace.operations_per_second >= 1 && pace.operations_per_second <= kMostOperations;
  if (!good) reader.refuse("pace", "1..1000000000 operations a second, or a rate \"1 kb/s\"..\"10 Tb/s\",");
  flow.pace = pace;
}

void read_mtu(TableReader& reader, Flow& flow) {
  const auto* node = reader.find("mtu");
  if (!node) return;
  const auto mtu = node->is_integer() ? node->as_integer()->get() : 0;
  if (mtu != 256 && mtu != 512 && mtu != 1024 && mtu != 2048 && mtu != 4096)
    reader.refuse("mtu", "256, 512, 1024, 2048 or 4096");
  flow.mtu = static_cast<std::uint32_t>(mtu);
}

void read_page(TableReader& reader, Flow& flow) {
  reader.size("page", flow.page, 4_KiB, 1024_MiB);
  for (const auto page : {4_KiB, 64_KiB, 2_MiB, 1024_MiB})
    if (flow.page == page) return;
  reader.refuse("page", "\"4 KiB\", \"64 KiB\", \"2 MiB\" or \"1 GiB\"");
}

// UC has no READs and no atomics, UD only SENDs; a flow of raw packets only has `send`.
void check_transport(const TableReader& reader, const Flow& flow) {
  const auto has = [&](Op op) {
    if (flow.transport == Transport::raw) return op == Op::send;
    if (flow.transport == Transport::ud) return op == Op::send || op == Op::send_imm;
    return flow.transport != Transport::uc || (op != Op::read && !is_atomic(op));
  };
  for (const auto& entry : flow.mix)
    if (!has(entry.op))
      reader.complain("transport", fmt::format("{} has no {}", to_string(flow.transport), to_string(entry.op)));
}

void check_frames(const TableReader& reader, const Flow& flow) {
  for (const auto& entry : flow.mix)
    if (entry.size.bytes < RawOptions::kLeastFrame)
      reader.refuse("size", fmt::format("at least {} B", RawOptions::kLeastFrame), "Ethernet's shortest frame");
  for (const char* key : {"recv_inline", "mrs", "mr_size", "address", "share", "dscp", "sl"})
    if (reader.has(key)) reader.complain(key, "cannot be combined with transport = \"raw\"");
  if (flow.recv_depth == 0u) reader.refuse("recv_depth", "1..32768");
  if (!flow.raw.tso_mss) return;
  if (!flow.raw.checksums) reader.complain("tso_mss", "needs checksums = true");
  if (flow.inline_device || flow.inline_most.bytes != 0) reader.complain("inline", "cannot be combined with tso_mss");
}

// A thread polls either its completions or its receives, not both.
void check_both_ways(const TableReader& reader, const Flow& flow) {
  if (!flow.both_ways) return;
  if (flow.transport != Transport::rc && flow.transport != Transport::uc)
    reader.complain("both_ways", "needs transport = \"rc\" or \"uc\"");
  if (flow.takes_receives())
    reader.complain("both_ways", "needs operations without receives: no send, send_imm and write_imm");
  if (flow.ping_pong) reader.complain("both_ways", "cannot be combined with ping_pong");
  if (flow.share) reader.complain("both_ways", "cannot be combined with share = true");
}

void check_shared_receives(const TableReader& reader, const Flow& flow) {
  if (!flow.srq) return;
  if (flow.transport != Transport::rc && flow.transport != Transport::ud)
    reader.complain("srq", "needs transport = \"rc\" or \"ud\"");
  if (!flow.takes_receives()) reader.complain("srq", "needs operations with receives: send, send_imm or write_imm");
  if (flow.recv_depth == 0u) reader.refuse("recv_depth", "1..32768");
}

// Reports keys that contradict each other.
void check(const TableReader& reader, const Flow& flow) {
  check_transport(reader, flow);
  if (flow.sequence && flow.transport != Transport::rc) reader.complain("transport", "sequences need \"rc\"");
  if (flow.transport == Transport::raw) check_frames(reader, flow);
  if (flow.transport == Transport::xrc && flow.recv_depth == 0u) reader.refuse("recv_depth", "1..32768");
  if (flow.batch > flow.window) reader.refuse("batch", fmt::format("1..{}", flow.window), "no more than the window");
  if (flow.signal_every > flow.window)
    reader.refuse("signal_every", fmt::format("1..{}", flow.window), "no more than the window");
  const bool simple = flow.mix.size() == 1 && flow.mix.front().op == Op::write && flow.qps == 1 && flow.window == 1 &&
                      flow.from.size() == 1 && flow.to.size() == 1 && !flow.mr_size;
  if (flow.ping_pong && !simple)
    reader.complain("ping_pong",
                    "needs two hosts, op = \"write\", one QP for each thread, a window of 1 and no mr_size");
  if (flow.ping_pong && flow.share) reader.complain("share", "cannot be combined with ping_pong");
  if (flow.ping_pong && flow.transport == Transport::xrc)
    reader.complain("ping_pong", "cannot be combined with transport = \"xrc\"");
  check_both_ways(reader, flow);
  check_shared_receives(reader, flow);
  if (flow.odp && flow.transport != Transport::rc) reader.complain("odp", "needs transport = \"rc\"");
  if (flow.stop && *flow.stop <= flow.start) reader.refuse("stop", "a time after start");
  if (flow.mr_size && *flow.mr_size < flow.place())
    reader.refuse("mr_size", fmt::format("at least {}", to_string(flow.place())), "the longest message must fit");
}

Flow read_flow(TableReader& reader) {
  Flow flow;
  flow.from = read_hosts(reader, "from");
  const auto* op = reader.find("op");
  const auto name = op != nullptr ? op->value_or(std::string()) : std::string();
  if (name == to_string(Op::reg_mr) || name == to_string(Op::connect_qp))
    check_churn(reader, name);
  else
    flow.to = read_hosts(reader, "to");
  reader.choice("transport", flow.transport, kTransports);
  read_what(reader, flow);
  reader.number("threads", flow.threads, 1, 256);
  reader.number("qps", flow.qps, 1, 65536);
  reader.choice("connect", flow.connect, 2);
  reader.number("window", flow.window, 1, 32768);
  reader.choice("window_per", flow.window_per, 2);
  reader.choice("pick", flow.pick, 2);
  reader.number("batch", flow.batch, 1, 4096);
  read_inline(reader, "inline", 956_B, flow.inline_most, flow.inline_device);
  reader.number("signal_every", flow.signal_every, 1, 32768);
  reader.choice("signal_per", flow.signal_per, 2);
  reader.flag("both_ways", flow.both_ways);
  reader.flag("srq", flow.srq);
  reader.flag("odp", flow.odp);
  reader.choice("doorbell", flow.doorbell, 2);
  reader.choice("uars", flow.uars, 2);
  reader.flag("ping_pong", flow.ping_pong);
  reader.number("recv_depth", flow.recv_depth, 0, 32768);
  read_inline(reader, "recv_inline", 32_B, flow.recv_inline, flow.recv_inline_device);
  reader.number("mrs", flow.mrs, 1, 1 << 20);
  reader.size("mr_size", flow.mr_size, 8_B, ByteCount{1ull << 40});
  read_page(reader, flow);
  read_address(reader, flow);
  read_mtu(reader, flow);
  reader.number("max_rd_atomic", flow.max_rd_atomic, 1, 128);
  reader.number("dscp", flow.dscp, 0, 63);
  reader.number("sl", flow.sl, 0, 7);
  reader.number("rnr_timer", flow.rnr_timer, 0, 31);
  reader.number("timeout", flow.timeout, 0, 31);
  reader.number("retry", flow.retry, 0, 7);
  read_pace(reader, flow);
  if (flow.transport == Transport::raw)
    read_raw_options(reader, flow.raw);
  else
    refuse_raw_options(reader);
  reader.time("start", flow.start, 0_s, kLongest);
  reader.time("stop", flow.stop, 1_ps, kLongest);
  reader.finish();
  check(reader, flow);
  if (flow.transport == Transport::xrc) flow.srq = true;  // each request of XRC names a shared receive queue
  return flow;
}

void collect_sets(const TableReader& reader, const toml::table& table, const std::string& prefix,
                  std::vector<std::string>& sets) {
  for (const auto& [key, node] : table) {
    const std::string path = prefix + std::string(key.str());
    if (const auto* inner = node.as_table())
      collect_sets(reader, *inner, path + '.', sets);
    else if (const auto text = node.value<std::string>())
      sets.push_back(path + '=' + *text);
    else if (node.is_boolean())
      sets.push_back(path + (node.as_boolean()->get() ? "=true" : "=false"));
    else if (node.is_integer())
      sets.push_back(fmt::format("{}={}", path, node.as_integer()->get()));
    else if (node.is_floating_point())
      sets.push_back(fmt::format("{}={}", path, node.as_floating_point()->get()));
    else
      reader.refuse("set." + shown(path), "a parameter's value");
  }
}

Measure read_measure(const TableReader& file, const toml::node& node) {
  if (!node.is_table()) file.refuse("measure", "a table [measure]");
  TableReader reader(*node.as_table(), file.file(), "measure");
  Measure measure;
  reader.time("warmup", measure.warmup, 0_s, kLongest);
  reader.time("limit", measure.limit, Measure::kFirstLook, kLongest);
  reader.time("duration", measure.duration, 1_ns, kLongest);
  reader.number("operations", measure.operations, 1, 1'000'000'000'000);
  reader.finish();
  if (measure.duration && measure.operations) reader.complain("operations", "cannot be combined with duration");
  if (measure.warmup && !measure.is_given()) reader.complain("duration", "is missing (or operations)");
  if (measure.warmup && reader.has("limit")) reader.complain("limit", "cannot be combined with warmup");
  return measure;
}

// A flow with a stop has no steady rate, so the measured time must be given.
void check_times(const TableReader& reader, Workload& workload) {
  auto& measure = workload.measure;
  const auto stops = std::ranges::find_if(workload.flows, [](const Flow& flow) { return flow.stop.has_value(); });
  if (stops != workload.flows.end() && !measure.warmup) {
    if (!measure.is_given())
      reader.complain(fmt::format("flow[{}].stop", stops - workload.flows.begin()),
                      "needs measure.duration or measure.operations: this flow reaches no steady rate");
    measure.warmup = 0_s;
  }
  for (std::size_t i = 0; i < workload.flows.size(); ++i) {
    const auto& flow = workload.flows[i];
    const auto path = fmt::format("flow[{}].", i);
    if (measure.warmup && measure.duration && flow.start >= *measure.warmup + *measure.duration)
      reader.complain(path + "start", fmt::format("a time before the end of the measurement is needed, not \"{}\"",
                                                  to_string(flow.start)));
    if (!measure.warmup && flow.start + Measure::kFirstLook > measure.limit)
      reader.complain(path + "start", "leaves no time before measure.limit");
  }
}

Workload read_root(const toml::table& root, const std::string& name) {
  TableReader reader(root, name, "");
  Workload workload;
  workload.file = name;
  std::uint32_t schema = 0;
  reader.need("schema");
  reader.number("schema", schema, 1, 1);
  reader.number("seed", workload.seed, 0, INT64_MAX);
  reader.text("nic", workload.nic);
  reader.text("host", workload.host);
  reader.text("topology", workload.topology);
  if (const auto* set = reader.find("set")) {
    if (!set->is_table()) reader.refuse("set", "a table of parameters");
    collect_sets(reader, *set->as_table(), "", workload.sets);
  }
  if (const auto* faults = reader.find("faults")) {
    const auto* list = faults->as_array();
    if (!list || list->empty() || !list->is_homogeneous(toml::node_type::string))
      reader.refuse("faults", "a list of rules such as \"drop=1e-3\"");
    for (const auto& rule : *list) workload.faults.push_back(rule.as_string()->get());
  }
  if (const auto* measure = reader.find("measure")) workload.measure = read_measure(reader, *measure);
  const auto* flows = reader.need("flow").as_array();
  if (!flows || flows->empty() || flows->size() > kMostFlows || !flows->is_array_of_tables())
    reader.refuse("flow", fmt::format("1..{} tables [[flow]]", kMostFlows));
  reader.finish();
  for (const auto& node : *flows) {
    const auto path = fmt::format("flow[{}]", workload.flows.size());
    TableReader flow(*node.as_table(), name, path);
    workload.flows.push_back(read_flow(flow));
  }
  check_times(reader, workload);
  return workload;
}

}  // namespace

Workload read_workload(const std::filesystem::path& path, const std::vector<std::string>& overrides) {
  const std::string text = read_configuration(path);
  const std::string name = path.string();
  try {
    toml::table root = toml::parse(text, name);
    for (const auto& entry : overrides) apply_override(root, entry);
    return read_root(root, name);
  } catch (const toml::parse_error& error) {
    throw ConfigError(fmt::format("{}:{}: {}", name, error.source().begin.line, shown(error.description())));
  }
}

}  // namespace rnicsim::sim::bench
