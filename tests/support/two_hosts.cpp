// SPDX-License-Identifier: Apache-2.0
#include "tests/support/two_hosts.h"

#include <spdlog/spdlog.h>

#include <cstdlib>
#include <sstream>
#include <systemc>

#include "model/base/kernel.h"
#include "model/host/kernel_agent.h"
#include "model/host/software_process.h"
#include "model/nic/nic.h"
#include "model/nic/packets/packet.h"
#include "model/nic/packets/port.h"
#include "model/roce/packet.h"
#include "sim/adapter.h"
#include "sim/config/config.h"
#include "sim/engine_choice.h"
#include "sim/recording/counter_audit.h"
#include "sim/system.h"

namespace rnicsim::testing {
namespace {

// The packet object that a receiver takes by reference must equal the parsed bytes of the frame.
void expect_its_bytes(const Frame& frame, const std::vector<std::byte>& bytes) {
  const auto* packet = frame.as<nic::Packet>();
  if (packet == nullptr && roce::is_foreign(bytes)) return;  // a raw packet of a program has bytes only
  ASSERT_NE(packet, nullptr);
  EXPECT_EQ(bytes.size(), frame.size());
  const auto parsed = roce::parse_frame(bytes, bytes.size());
  EXPECT_EQ(parsed.error, roce::ParseError::none);
  EXPECT_EQ(parsed.headers, packet->headers);
  EXPECT_EQ(parsed.addresses.source, packet->addresses.source);
  EXPECT_EQ(parsed.addresses.destination, packet->addresses.destination);
  EXPECT_EQ(parsed.addresses.destination_mac, packet->addresses.destination_mac);
  EXPECT_EQ(parsed.payload_bytes, frame.payload().size());
}

}  // namespace

std::vector<std::string> with_sets_of_environment(const std::vector<std::string>& sets) {
  std::vector<std::string> all;
  if (const char* engine = std::getenv("RNICSIM_TEST_ENGINE")) sim::EngineOptions{engine, {}}.add_to(all);
  const char* given = std::getenv("RNICSIM_TEST_SETS");
  std::istringstream list(given != nullptr ? given : "");
  for (std::string set; std::getline(list, set, ',');)
    if (!set.empty()) all.push_back(set);
  all.insert(all.end(), sets.begin(), sets.end());
  return all;
}

struct Signal::Event {
  explicit Event(const char* name) : event(name) {}
  sc_core::sc_event event;
};

Signal::Signal(const char* name) : event_(std::make_unique<Event>(name)) {}
Signal::~Signal() = default;
void Signal::wake_all() { wake(event_->event); }
void Signal::wait() { sleep_on(event_->event); }

TwoHosts::TwoHosts(const std::vector<std::string>& sets, const std::vector<std::string>& faults, std::uint64_t seed)
    : system_(std::make_unique<sim::System>(
          "system", sim::load_config("cx5-100g", "back-to-back", with_sets_of_environment(sets), faults), seed)),
      audit_(std::make_unique<sim::CounterAudit>(*system_)) {
  // Many tests use bad input, and the log would report it.
  spdlog::set_level(spdlog::level::off);
  for (std::uint32_t from = 0; from < 2; ++from)
    system_->adapter(from).nic().blocks().port.sent.subscribe([this, from](const Frame& frame) {
      WireFrame copy{now(), from, {}};
      frame.append_to(copy.bytes);
      expect_its_bytes(frame, copy.bytes);
      wire_.push_back(std::move(copy));
    });
}

TwoHosts::~TwoHosts() {
  if (const auto& mismatch = system_->engines().mismatch(); !mismatch.empty()) {
    ADD_FAILURE() << mismatch;
    return;  // counters are meaningless after a mismatch
  }
  for (const auto& line : audit_->disagreements()) ADD_FAILURE() << "counters' audit: " << line;
}

sim::Adapter& TwoHosts::host(std::size_t index) { return system_->adapter(index); }
const nic::CapabilityParams& TwoHosts::capabilities() const { return system_->config().nic.capabilities; }
bool TwoHosts::invalidates() const { return capabilities().invalidate; }
bool TwoHosts::windows() const { return capabilities().windows; }
bool TwoHosts::shares_receives() const { return capabilities().srq; }
void TwoHosts::settle(std::size_t process) { processes_[process]->port().settle(); }

void TwoHosts::run(std::function<void()> on_h0, std::function<void()> on_h1, Duration most) {
  const std::array bodies{std::move(on_h0), std::move(on_h1)};
  for (std::size_t i = 0; i < 2; ++i) {
    auto& host = system_->adapter(i);
    processes_.push_back(std::make_unique<host::SoftwareProcess>(i == 0 ? "process0" : "process1",
                                                                 system_->config().host, host.agent(), bodies[i]));
  }
  system_->start();
  const auto running = [&] { return !processes_[0]->finished() || !processes_[1]->finished(); };
  const auto agreed = [&] { return system_->engines().mismatch().empty(); };
  while (running() && agreed() && now() < most && sc_core::sc_pending_activity())
    sc_core::sc_start(sc_core::sc_time_to_pending_activity());
  for (std::size_t i = 0; i < 2 && agreed(); ++i)
    EXPECT_TRUE(processes_[i]->finished()) << "the thread on h" << i << " still waits at " << to_string(now());
}

void TwoHosts::meet(std::size_t me) {
  settle(me);
  const std::uint32_t meeting = ++meetings_[me];
  met_.wake_all();
  while (meetings_[1 - me] < meeting) met_.wait();
}

}  // namespace rnicsim::testing
