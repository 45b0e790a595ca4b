#include "sim/bench/bottleneck.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "sim/counter_results.h"

namespace rnicsim::sim::bench {
namespace {

// From here on a resource is what things wait for: what a queue in front of it costs grows with 1 / (1 - use).
constexpr double kUsedUp = 0.9;

constexpr std::string_view kBusyShare = "_busy_share", kBusiestShare = "_busiest_share", kCpu = ".cpu";

std::optional<double> value_of(const std::vector<CounterResult>& results, const std::string& path) {
  const auto found = std::ranges::find(results, path, &CounterResult::path);
  return found == results.end() ? std::nullopt : std::optional(found->value);
}

std::vector<CounterResult> between(const Snapshot& before, const Snapshot& after, std::size_t host) {
  return counter_results(before.hosts[host], after.hosts[host], after.at - before.at);
}

void add_blocks(const BenchResult& result, std::size_t host, std::vector<ResourceUse>& uses) {
  const auto& runner = result.runner;
  const auto whole = between(runner.before(), runner.after(), host);
  std::vector<CounterResult> first, second;
  if (const auto* middle = runner.middle()) {
    first = between(runner.before(), *middle, host);
    second = between(*middle, runner.after(), host);
  }
  for (const auto& share : whole) {
    if (share.kind != CounterResult::Kind::share || !share.path.ends_with(kBusyShare) || share.value <= 0) continue;
    const auto resource = share.path.substr(0, share.path.size() - kBusyShare.size());
    const auto queue = resource + "_queue";
    // Work that has its unit waits for it, however idle the others are.
    const double used = value_of(whole, resource + std::string(kBusiestShare)).value_or(share.value);
    ResourceUse use{resource, result.system.adapter(host).label(), used, value_of(whole, queue), {}};
    const auto early = value_of(first, queue), late = value_of(second, queue);
    if (early && late) use.growth = *late - *early;
    uses.push_back(std::move(use));
  }
}

// The mean of a flow's agents on a host, at one of its ends.
void add_cpus(const BenchResult& result, std::vector<ResourceUse>& uses) {
  std::map<std::tuple<std::uint32_t, bool, std::uint32_t>, std::pair<double, std::size_t>> shares;
  for (std::size_t i = 0; i < result.plan.agents.size(); ++i) {
    const auto& agent = result.plan.agents[i];
    if (const auto share = result.runner.busy_share(i)) {
      auto& [sum, count] = shares[{agent.flow, agent.sends, agent.host}];
      sum += *share;
      ++count;
    }
  }
  for (const auto& [key, of] : shares) {
    const auto& [flow, sends, host] = key;
    uses.push_back({fmt::format("flow[{}].{}{}", flow, sends ? "from" : "to", kCpu),
                    result.system.adapter(host).label(),
                    of.first / static_cast<double>(of.second),
                    {},
                    {}});
  }
}

// Slots are held for as long as a read of host memory takes: where its link is used up, that is why they are.
bool waits_for(const ResourceUse& slots, const ResourceUse& link) {
  return slots.resource.ends_with(".slots") && link.resource.starts_with("nic.dma.") && slots.host == link.host &&
         link.use >= kUsedUp;
}

}  // namespace

std::vector<ResourceUse> resource_uses(const BenchResult& result) {
  std::vector<ResourceUse> uses;
  for (std::size_t host = 0; host < result.system.adapters(); ++host) add_blocks(result, host, uses);
  add_cpus(result, uses);
  std::ranges::stable_sort(uses, std::ranges::greater{}, &ResourceUse::use);
  return uses;
}

ResourceUse limit_of(const BenchResult& result, const std::vector<ResourceUse>& uses) {
  if (!uses.empty() && uses.front().use >= kUsedUp) {
    const auto link = std::ranges::find_if(uses, [&](const auto& use) { return waits_for(uses.front(), use); });
    return link == uses.end() ? uses.front() : *link;
  }
  const bool paced = std::ranges::all_of(result.workload.flows, [](const Flow& flow) { return flow.pace.has_value(); });
  ResourceUse limit{paced ? "pace" : "latency", {}, 0, {}, {}};
  if (!uses.empty()) limit.use = uses.front().use;
  return limit;
}

// "h0 nic.port.tx 98 %, 12.3 waiting (+0.1)"; "h0's CPU, 99 % busy (flow[0].from)"
std::string limit_text(const ResourceUse& limit) {
  if (limit.host.empty())
    return fmt::format("{}: no resource is used up, the busiest {:.0f} %", limit.resource, 100 * limit.use);
  if (limit.resource.ends_with(kCpu))
    return fmt::format("{}'s CPU, {:.0f} % busy ({})", limit.host, 100 * limit.use,
                       limit.resource.substr(0, limit.resource.size() - kCpu.size()));
  auto text = fmt::format("{} {} {:.0f} %", limit.host, limit.resource, 100 * limit.use);
  if (limit.queue) text += fmt::format(", {:.3g} waiting", *limit.queue);
  if (limit.growth) text += fmt::format(" ({:+.2g})", *limit.growth);
  return text;
}

nlohmann::ordered_json use_json(const ResourceUse& use) {
  nlohmann::ordered_json json = {{"resource", use.resource}, {"host", use.host}, {"use", use.use}};
  if (use.queue) json["queue"] = *use.queue;
  if (use.growth) json["growth"] = *use.growth;
  return json;
}

}  // namespace rnicsim::sim::bench
