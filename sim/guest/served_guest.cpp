#include "sim/guest/served_guest.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/nic/nic.h"
#include "sim/adapter.h"
#include "sim/config/config_error.h"
#include "sim/config/topology.h"
#include "sim/guest/guest_connection.h"
#include "sim/host.h"
#include "sim/system.h"

namespace rnicsim::sim {

void refuse_second_nic(std::uint32_t host, const Topology& topology) {
  if (std::ranges::count(topology.interfaces, host, &abi::NetworkInterface::host) > 1)
    throw ConfigError(fmt::format("{} has several NICs, and a guest is given one", topology.interfaces[host].name));
}

ServedGuest::ServedGuest(System& system, std::uint32_t host)
    : host_(host),
      adapter_(*system.host(host).adapters().front()),
      port_(fmt::format("guest{}", host).c_str(), adapter_) {}

void ServedGuest::watch(std::vector<pollfd>& watched) const {
  if (client_) client_->watch(watched);
}

void ServedGuest::serve() try {
  if (client_) client_->serve();
} catch (const ConnectionLost& lost) {
  client_.reset();
  port_.clear();
  port_.say(fmt::format("{}: {}; the device is reset", port_.label(), lost.what()));
}

std::string ServedGuest::state() const {
  const auto& counters = port_.counters();
  auto text = fmt::format("  {}: {}, {} BAR accesses, {} of configuration space, {} interrupts, {} DMA requests "
                          "refused\n",
                          port_.label(), is_connected() ? "connected" : "nobody is connected", counters.bar_accesses,
                          counters.config_accesses, counters.interrupts, counters.dma_refused);
  adapter_.nic().describe_state(text);
  return text;
}

}  // namespace rnicsim::sim
