// SPDX-License-Identifier: Apache-2.0
#include "sim/bench/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "model/abi/device.h"
#include "model/host/objects.h"
#include "sim/config/config_error.h"
#include "sim/config/param_list.h"

namespace rnicsim::sim::bench {
namespace {

constexpr ByteCount kPage = 4_KiB;
constexpr std::uint64_t kLine = 64;
constexpr std::uint64_t kMostMemory = 1ull << 40;  // limit of the buffers of a host
constexpr std::uint32_t kMostAgents = 32768;

std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) { return (value + unit - 1) / unit * unit; }

class Planner {
 public:
  Planner(Workload& workload, const Config& config) : workload_(workload), config_(config) {}

  Plan make() {
    plan_.hosts = static_cast<std::uint32_t>(config_.topology.interfaces.size());
    for (std::uint32_t i = 0; i < plan_.hosts; ++i) nics_.push_back(Device(config_.nic_of(i)));
    for (flow_number_ = 0; flow_number_ < workload_.flows.size(); ++flow_number_) {
      check_device(flow());
      add_flow();
    }
    check_totals();
    return std::move(plan_);
  }

 private:
  using Pair = std::pair<std::uint32_t, std::uint32_t>;
  struct Device {
    explicit Device(const nic::NicParams& nic) : capabilities(nic.capabilities), timing_only(nic.timing_only) {}
    nic::CapabilityParams capabilities;
    bool timing_only;
  };

  Flow& flow() { return workload_.flows[flow_number_]; }

  [[noreturn]] void complain(const char* key, const std::string& what) const { complain(flow_number_, key, what); }
  [[noreturn]] void complain(std::size_t flow, const char* key, const std::string& what) const {
    throw ConfigError(fmt::format("{}: flow[{}].{}: {}", workload_.file, flow, key, what));
  }

  // Capabilities that all NICs of a flow have.
  Device common(const Flow& flow) const {
    std::optional<Device> common;
    for (const auto* names : {&flow.from, &flow.to})
      for (const auto& name : *names) {
        const auto host = config_.topology.find(name);
        if (!host) continue;  // find_hosts() reports it
        const Device& own = nics_[*host];
        if (!common) common = own;
        for (const auto limit : {&nic::CapabilityParams::max_inline, &nic::CapabilityParams::max_inline_receive,
                                 &nic::CapabilityParams::max_rd_atomic, &nic::CapabilityParams::max_mtu,
                                 &nic::CapabilityParams::max_qp_wr})
          common->capabilities.*limit = std::min(common->capabilities.*limit, own.capabilities.*limit);
        common->capabilities.max_message = std::min(common->capabilities.max_message, own.capabilities.max_message);
        common->capabilities.max_mr_size = std::min(common->capabilities.max_mr_size, own.capabilities.max_mr_size);
        common->timing_only = common->timing_only || own.timing_only;
      }
    return common.value_or(Device(config_.nic));
  }

  void check_device(Flow& flow) const {
    const Device device = common(flow);
    const auto& caps = device.capabilities;
    const auto most = [&](const char* key, std::uint64_t value, std::uint64_t limit, const char* unit = "",
                          const char* because = "the NIC's limit") {
      if (value > limit)
        complain(key, fmt::format("no more than {}{} is needed, not {}: {}", limit, unit, value, because));
    };
    if (flow.inline_device) flow.inline_most = {caps.max_inline};
    most("inline", flow.inline_most.bytes, caps.max_inline, " B");
    if (flow.recv_inline_device) flow.recv_inline = {caps.max_inline_receive};
    most("recv_inline", flow.recv_inline.bytes, caps.max_inline_receive, " B");
    if (!flow.churns()) most("size", flow.longest().bytes, caps.max_message, " B");
    if (!flow.mtu) flow.mtu = 128u << caps.max_mtu;
    most("mtu", *flow.mtu, 128u << caps.max_mtu);
    if (flow.transport == Transport::raw) check_frames(flow, caps, most);
    if (flow.transport == Transport::ud) most("size", flow.longest().bytes, 128u << caps.max_mtu, " B", "the MTU");
    const bool reads = std::ranges::any_of(flow.mix, [](const auto& e) { return e.op == Op::read || is_atomic(e.op); });
    if (!flow.max_rd_atomic) flow.max_rd_atomic = caps.max_rd_atomic;
    most("max_rd_atomic", *flow.max_rd_atomic, caps.max_rd_atomic);
    if (reads && *flow.max_rd_atomic == 0)
      complain("op", "the NIC has no READs and no atomics: nic.capabilities.max_rd_atomic is 0");
    // Inline data make a WQE longer, as do the address of a datagram and the headers of a TSO. The ring counts blocks.
    const std::uint64_t address = flow.transport == Transport::ud || flow.raw.tso_mss ? kLine : 0;
    const std::uint64_t blocks = std::max<std::uint64_t>(1, (address + kLine + flow.inline_most.bytes) / kLine);
    const std::uint64_t ring = std::min<std::uint64_t>(32768, caps.max_qp_wr) / blocks;
    if (flow.window > ring)
      complain("window", fmt::format("1..{} is needed, not {}: the NIC's send ring", ring, flow.window));
    if (flow.transport == Transport::xrc && !caps.xrc)
      complain("transport", "the NIC has no XRC: nic.capabilities.xrc is false");
    if (flow.srq && !caps.srq) complain("srq", "the NIC has no shared receive queues: nic.capabilities.srq is false");
    if (flow.odp && !caps.on_demand)
      complain("odp", "the NIC has no memory on demand: nic.capabilities.on_demand is false");
    if (flow.takes_receives()) {
      if (!flow.recv_depth) flow.recv_depth = std::min(flow.receives(), caps.max_qp_wr);
      most("recv_depth", *flow.recv_depth, std::min<std::uint64_t>(32768, caps.max_qp_wr));
    }
    if (flow.ping_pong && device.timing_only) complain("ping_pong", "needs payload, but nic.timing_only is true");
    if (flow.locks() && device.timing_only)
      complain("sequence", "needs payload to test the lock, but nic.timing_only is true");
    if (flow.registers()) most("size", flow.longest().bytes, caps.max_mr_size, " B");
    if (flow.mr_size) most("mr_size", flow.mr_size->bytes, caps.max_mr_size, " B");
  }

  template <class Most>
  void check_frames(const Flow& flow, const nic::CapabilityParams& caps, Most&& most) const {
    if (!caps.raw) complain("transport", "the NIC has no raw packets: nic.capabilities.raw is false");
    const auto longest = flow.longest().bytes;
    most("rx_queues", flow.raw.rx_queues, std::bit_floor(caps.max_rss_queues));
    if (!flow.raw.tso_mss) return most("size", longest, caps.max_frame, " B", "nic.capabilities.max_frame");
    most("size", longest, caps.max_tso + RawOptions::kHeaderBytes, " B", "nic.capabilities.max_tso and the headers");
    // The length field of IPv4 counts the whole packet.
    most("size", longest, 65535 + 14, " B", "IPv4's longest packet, and Ethernet's header");
    most("tso_mss", *flow.raw.tso_mss, caps.max_frame - RawOptions::kHeaderBytes, "",
         "nic.capabilities.max_frame less the headers");
  }

  std::vector<std::uint32_t> find_hosts(const std::vector<std::string>& names, const char* key) const {
    const auto& interfaces = config_.topology.interfaces;
    std::vector<std::uint32_t> hosts;
    for (const auto& name : names) {
      const auto host = config_.topology.find(name);
      if (!host)
        complain(key, fmt::format("no host is called '{}'; the topology has {} to {}", shown(name),
                                  label_of(interfaces.front()), label_of(interfaces.back())));
      hosts.push_back(*host);
    }
    return hosts;
  }

  // Pairs of hosts, of `from` and `to`.
  std::vector<Pair> host_pairs() {
    const auto from = find_hosts(flow().from, "from");
    const auto to = find_hosts(flow().to, "to");
    std::vector<Pair> pairs;
    if (flow().connect == Connect::all) {
      for (const auto a : from)
        for (const auto b : to)
          if (a != b) pairs.emplace_back(a, b);
      if (pairs.empty()) complain("to", "no host is left: `from` and `to` name the same host");
      return pairs;
    }
    const std::size_t few = std::min(from.size(), to.size()), many = std::max(from.size(), to.size());
    if (many % few != 0)
      complain("to", fmt::format("pairwise needs as many hosts in from as in to, or a multiple: there are {} and {}",
                                 from.size(), to.size()));
    for (std::size_t i = 0; i < many; ++i) {
      pairs.emplace_back(from[i % from.size()], to[i % to.size()]);
      if (pairs.back().first == pairs.back().second)
        complain("to", fmt::format("pairwise would connect {} with itself",
                                   label_of(config_.topology.interfaces[pairs.back().first])));
    }
    return pairs;
  }

  // Index of this flow's agent on a host. The first call makes the agent.
  std::uint32_t agent(std::uint32_t host, std::uint32_t thread, bool sends) {
    const auto [found, made] =
        numbers_.try_emplace({flow_number_, host, thread, sends}, std::uint32_t(plan_.agents.size()));
    if (made)
      plan_.agents.push_back({.flow = std::uint32_t(flow_number_),
                              .host = host,
                              .thread = thread,
                              .sends = sends,
                              .place = places_[{flow_number_, sends || flow().both_ways}]++,
                              .qps = {}});
    if (plan_.agents.size() > kMostAgents)
      complain("threads", fmt::format("the workload has more than {} agents", kMostAgents));
    return found->second;
  }

  void add_churns() {
    if (flow().longest().bytes > kMostMemory) complain("size", "is more than 1 TiB");
    for (std::uint32_t thread = 0; thread < flow().threads; ++thread)
      for (const auto host : find_hosts(flow().from, "from")) {
        const auto member = agent(host, thread, true);
        plan_.agents[member].lender = member;
        plan_.agents[member].region = flow().longest();
      }
  }

  void add_flow() {
    if (flow().churns()) return add_churns();
    const auto pairs = host_pairs();
    const std::uint64_t qps = std::uint64_t(flow().qps) * flow().threads * pairs.size();
    constexpr std::uint64_t kMostQps = 1 << 20;
    if (qps > kMostQps)
      complain("qps", fmt::format("the flow has {} connections; no more than {} can be simulated", qps, kMostQps));
    const bool raw = flow().transport == Transport::raw;
    for (const bool sends : {true, false})
      for (std::uint32_t thread = 0; thread < (raw && !sends ? flow().raw.rx_queues : flow().threads); ++thread)
        for (const auto& [from, to] : pairs) agent(sends ? from : to, thread, sends);
    for (std::uint32_t thread = 0; thread < flow().threads; ++thread)
      for (std::uint32_t i = 0; i < flow().qps; ++i)
        for (const auto& [from, to] : pairs) {
          const auto sender = agent(from, thread, true);
          if (raw)
            plan_.agents[sender].qps.push_back({agent(to, 0, false), 0});
          else
            connect(sender, agent(to, thread, false));
        }
    if (flow().window_per == WindowPer::thread && flow().signal_per == WindowPer::qp) check_thread_window();
    lend_regions();
  }

  // With `share`, the first receiver of a host has the regions of all receivers of the flow on this host.
  void lend_regions() {
    std::map<std::uint32_t, std::uint32_t> lenders, places;  // by host
    const auto all = static_cast<std::uint32_t>(plan_.agents.size());
    for (std::uint32_t i = 0; i < all; ++i) {
      auto& member = plan_.agents[i];
      if (member.flow != flow_number_) continue;
      member.lender = i;
      std::uint64_t own = member.qps.size();
      if (flow().share && !member.sends) {
        member.lender = lenders.try_emplace(member.host, i).first->second;
        member.first_place = places[member.host];
        own = places[member.host] += static_cast<std::uint32_t>(member.qps.size());
      }
      plan_.agents[member.lender].region = region_of(member, own);
    }
    for (auto& member : plan_.agents)
      if (member.flow == flow_number_) member.region = plan_.agents[member.lender].region;
    check_slots();
  }

  void check_slots() {
    if (!flow().slots) return;
    const std::uint64_t region = plan_.agents.back().region.bytes;
    const std::uint64_t places = ((region - flow().place().bytes) / step_of(flow()) + 1) * flow().mrs;
    if (*flow().slots > places)
      complain("address.slots",
               fmt::format("1..{} is needed, not {}: the memory has no further places", places, *flow().slots));
  }

  void connect(std::uint32_t sender, std::uint32_t receiver) {
    auto& a = plan_.agents[sender].qps;
    auto& b = plan_.agents[receiver].qps;
    a.push_back({receiver, std::uint32_t(b.size())});
    b.push_back({sender, std::uint32_t(a.size() - 1)});
  }

  // Unsignalled WQEs hold their part of the window until a later WQE of the same QP is signalled.
  void check_thread_window() {
    for (const auto& member : plan_.agents) {
      if (member.flow != flow_number_ || !posts_wrs(member, flow())) continue;
      const std::uint64_t held = std::uint64_t(flow().signal_every - 1) * member.qps.size();
      if (held + flow().batch > flow().window)
        complain("signal_every", fmt::format("{} unsignalled WQEs on {} QPs fill the thread's window of {}",
                                             flow().signal_every - 1, member.qps.size(), flow().window));
    }
  }

  // With room for `places` at least.
  ByteCount region_of(const PlannedAgent& member, std::uint64_t places) {
    if (member.sends && flow().sequence)
      return {std::max(kPage.bytes, tracks_of(member, flow()) * track_bytes(flow()))};
    if (flow().mr_size) return *flow().mr_size;
    if (flow().transport == Transport::raw) {
      const std::uint64_t frames =
          member.sends ? member.qps.size() * std::bit_ceil(flow().window) : std::max(flow().receives(), 1u);
      return {std::max(kPage.bytes, frames * frame_slot(flow()))};
    }
    if (flow().ping_pong) return {ping_pong_landing(flow()) + flow().longest().bytes};
    const auto further = std::min((flow().slots.value_or(1) - 1) / flow().mrs, kMostMemory / step_of(flow()));
    return {std::max({kPage.bytes, std::max<std::uint64_t>(1, places) * round_up(flow().place().bytes, kLine),
                      further * step_of(flow()) + flow().place().bytes})};
  }

  void check_totals() {
    std::map<std::uint32_t, std::uint64_t> qps, memory;
    std::map<std::uint32_t, std::set<std::tuple<std::uint32_t, std::uint32_t, bool>>> pages;
    for (const auto& member : plan_.agents) {
      const Flow& flow = workload_.flows[member.flow];
      const std::string host = label_of(config_.topology.interfaces[member.host]);
      const bool queue = flow.transport == Transport::raw && !member.sends;  // also counts the number of the table's QP
      qps[member.host] += queue ? 2 : member.qps.size();
      if (qps[member.host] + host::Objects::kFirstQpn > nics_[member.host].capabilities.max_qp)
        complain(member.flow, "qps", fmt::format("{} has more QPs than nic.capabilities.max_qp", host));
      const std::uint64_t each = round_up(member.region.bytes, kPage.bytes);
      if (&plan_.agents[member.lender] != &member) {
        // counted for the lender
      } else if (each > kMostMemory / flow.mrs || (memory[member.host] += each * flow.mrs) > kMostMemory)
        complain(member.flow, "mr_size", fmt::format("the memory regions of {} are larger than 1 TiB", host));
      const bool own = has_own_context(member, flow);
      pages[member.host].emplace(member.flow, own ? member.thread : 0, own && member.sends);
      if (pages[member.host].size() >= abi::kUarPages)
        complain(member.flow, "uars", fmt::format("{} needs more than {} doorbell pages", host, abi::kUarPages - 1));
      const bool posts = posts_wrs(member, flow), one_queue = queue || (flow.srq && !posts);
      const std::uint64_t entries = (one_queue ? 1 : member.qps.size()) * (posts                   ? flow.window
                                                                           : flow.takes_receives() ? flow.receives()
                                                                                                   : 1);
      if (entries >= nics_[member.host].capabilities.max_cqe)
        complain(member.flow, member.sends ? "window" : "recv_depth",
                 fmt::format("a completion queue of {} entries is more than nic.capabilities.max_cqe", entries));
    }
  }

  Workload& workload_;
  const Config& config_;
  Plan plan_;
  std::vector<Device> nics_;  // by host
  std::size_t flow_number_ = 0;
  std::map<std::tuple<std::size_t, std::uint32_t, std::uint32_t, bool>, std::uint32_t> numbers_;
  std::map<std::pair<std::size_t, bool>, std::uint32_t> places_;  // the number of agents, by flow and end
};

}  // namespace

std::string topology_of(const Workload& workload) {
  if (workload.topology != "star") return workload.topology;
  std::uint32_t last = 1;
  for (const auto& flow : workload.flows)
    for (const auto* names : {&flow.from, &flow.to})
      for (const auto& name : *names) {
        std::uint32_t number = 0;
        const auto [end, error] = std::from_chars(name.data() + 1, name.data() + name.size(), number);
        if (name.front() == 'h' && error == std::errc{} && end == name.data() + name.size())
          last = std::max(last, number);
      }
  return fmt::format("star:{}", std::uint64_t(last) + 1);
}

bool posts_wrs(const PlannedAgent& agent, const Flow& flow) { return agent.sends || flow.ping_pong || flow.both_ways; }

// The queues of a table share a context, and so do the users of a shared region.
bool has_own_context(const PlannedAgent& agent, const Flow& flow) {
  return flow.uars == Uars::per_thread && (agent.sends || (flow.transport != Transport::raw && !flow.share));
}

std::uint64_t step_of(const Flow& flow) {
  if (flow.stride.bytes != 0) return flow.stride.bytes;
  const bool fixed = flow.address == Addressing::fixed || flow.address == Addressing::one;
  return round_up(flow.place().bytes, fixed ? kLine : 8);
}

std::uint64_t tracks_of(const PlannedAgent& agent, const Flow& flow) {
  return flow.window_per == WindowPer::qp ? std::uint64_t(flow.window) * agent.qps.size() : flow.window;
}

std::uint64_t track_bytes(const Flow& flow) { return round_up(Flow::kLockBytes + flow.longest().bytes, kLine); }

std::uint64_t frame_slot(const Flow& flow) {
  return round_up(std::max(flow.longest().bytes, flow.place().bytes), kLine);
}

std::uint64_t ping_pong_landing(const Flow& flow) { return round_up(flow.longest().bytes, kPage.bytes); }

Plan make_plan(Workload& workload, const Config& config) { return Planner(workload, config).make(); }

}  // namespace rnicsim::sim::bench
