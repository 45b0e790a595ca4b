#include "sim/system.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "sim/config/config_error.h"
#include "sim/frame_facts.h"

namespace rnicsim::sim {

System::System(sc_core::sc_module_name name, const Config& config, std::uint64_t seed)
    : sc_module(name), config_(config), faults_(config.topology.hosts.size()) {
  for (std::uint32_t i = 0; i < config_.topology.hosts.size(); ++i)
    hosts_.push_back(std::make_unique<Host>(fmt::format("host{}", i).c_str(), config_, i));
  std::vector<bool> connected(hosts_.size());
  for (const auto& [from, to] : config_.topology.cables) {
    auto& link = *links_.emplace_back(
        std::make_unique<fabric::Link>(fmt::format("link{}", links_.size()).c_str(), config_.link,
                                       std::array{fault_rules(seed, from), fault_rules(seed, to)}));
    connect(from, link, 0);
    connect(to, link, 1);
    connected[from] = connected[to] = true;
  }
  for (std::size_t i = 0; i < hosts_.size(); ++i)
    if (!connected[i]) hosts_[i]->nic().frame_out().bind([](Frame) {});
}

void System::connect(std::uint32_t host, fabric::Link& link, std::size_t end) {
  nic::Nic& nic = hosts_[host]->nic();
  nic.frame_out().bind([&link, end](Frame frame) { link.send(end, std::move(frame)); });
  link.out(end).bind([&nic](Frame frame, Duration delay) { nic.receive(std::move(frame), delay); });
  faults_[host] = link.faults(end);
}

fabric::FaultRules System::fault_rules(std::uint64_t seed, std::uint32_t host) const {
  std::vector<fabric::FaultRule> rules;
  for (const auto& fault : config_.faults) rules.push_back(fault.rule);
  return {rules, seed, host, frame_facts};
}

HostCounters System::counters(std::size_t index) const {
  auto counters = hosts_[index]->counters();
  if (faults_[index]) counters.link = faults_[index]->counters();
  return counters;
}

void System::capture(const std::filesystem::path& path) {
  capture_file_ = std::make_unique<fabric::PcapngWriter>(path.string());
  if (!capture_file_->error().empty()) throw ConfigError(capture_file_->error());
  capture_ = std::make_unique<fabric::CaptureTap>(*capture_file_);
  // A frame is captured once, where it leaves, with a comment on what befalls it.
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    const auto interface = capture_->add_interface(hosts_[i]->entry().name);
    if (faults_[i])
      capture_->watch(interface, faults_[i]->entered, fault_comment);
    else
      capture_->watch(interface, hosts_[i]->nic().port.sent);
  }
}

void System::finish_capture() {
  if (!capture_file_) return;
  capture_file_->flush();
  if (!capture_file_->error().empty()) throw std::runtime_error(capture_file_->error());
}

void System::start() {
  const auto is_ready = [](const auto& host) { return host->kernel().ready(); };
  sc_core::sc_start(sc_core::SC_ZERO_TIME);  // elaborates: nothing is pending before
  while (!std::ranges::all_of(hosts_, is_ready)) {
    for (const auto& host : hosts_)
      if (!host->kernel().failure().empty())
        throw std::runtime_error(fmt::format("{}: {}", host->entry().name, host->kernel().failure()));
    if (!sc_core::sc_pending_activity()) throw std::runtime_error("a host's device does not become ready");
    sc_core::sc_start(sc_core::sc_time_to_pending_activity());
  }
}

}  // namespace rnicsim::sim
