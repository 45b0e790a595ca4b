// SPDX-License-Identifier: Apache-2.0
// Behaviours of the NIC that the golden traces record: short programs on two hosts, one behaviour each.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/nic/capability_params.h"
#include "tests/support/cm_program.h"
#include "tests/support/endpoint.h"
#include "tests/support/two_hosts.h"

namespace rnicsim::testing {

// A capability that some engines lack. Empty parameter: every engine has the behaviour.
struct Capability {
  const char* parameter = "";
  bool nic::CapabilityParams::*present = nullptr;
};

struct Behaviour {
  using Program = std::function<void(Endpoint&)>;
  std::string name;  // name of the trace file in traces/golden
  std::string title;
  EndpointOptions requester{};  // endpoint of h0
  EndpointOptions responder{};  // endpoint of h1
  // Makes the responder's endpoint; empty: an ordinary endpoint.
  std::function<std::shared_ptr<Endpoint>(const EndpointOptions&)> make_responder{};
  std::vector<std::string> faults{};
  Program prepare{};    // on h1, when connected, before h0 begins
  Program work{};       // on h0
  Program meanwhile{};  // on h1, while h0 works
  // Connection-manager behaviours: both hosts use librdmacm, and there are no endpoints.
  std::function<void(CmProgram&)> connects{};  // on h0
  std::function<void(CmProgram&)> listens{};   // on h1
  Capability needs{};
};

std::span<const Behaviour> behaviours();
// Only the behaviours of the connection manager.
std::vector<Behaviour> connections();

inline const std::filesystem::path kGoldenFolder = RNICSIM_SOURCE_DIR "/traces/golden";
inline std::filesystem::path golden_trace(const Behaviour& behaviour) {
  return kGoldenFolder / (behaviour.name + ".trace");
}

// Runs one behaviour. A process can hold one run, since SystemC simulates once per process.
class BehaviourRun : public TwoHosts {
 public:
  explicit BehaviourRun(const Behaviour& behaviour, const std::vector<std::string>& sets = {})
      : TwoHosts(sets, behaviour.faults), behaviour_(behaviour) {}

  // Returns the content of the trace file.
  std::string record();
  // Records in this process. Returns the trace; nullopt: the device lacks the needed capability.
  static std::optional<std::string> record_here(const Behaviour& behaviour, const std::vector<std::string>& sets = {});
  // Records as `rnicsim run --record FILE --record-software` does.
  static void record_software(const Behaviour& behaviour, const std::filesystem::path& file);
  // Records in a child process. The test fails when the child fails.
  static std::optional<std::string> record_apart(const Behaviour& behaviour, const std::vector<std::string>& sets = {});

 private:
  void TestBody() override {}
  void run_behaviour();
  bool possible() const { return behaviour_.needs.present == nullptr || capabilities().*behaviour_.needs.present; }

  const Behaviour& behaviour_;
};

}  // namespace rnicsim::testing
