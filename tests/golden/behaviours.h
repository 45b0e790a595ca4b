// What the golden traces show: short programs on two hosts, each one behaviour of the NIC.
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

// What not every engine has.
struct Capability {
  const char* parameter = "";
  bool nic::CapabilityParams::*present = nullptr;
};

struct Behaviour {
  using Program = std::function<void(Endpoint&)>;
  std::string name;  // of the file in traces/golden
  std::string title;
  EndpointOptions requester{};  // h0's end
  EndpointOptions responder{};  // h1's
  // Instead of an ordinary one.
  std::function<std::shared_ptr<Endpoint>(const EndpointOptions&)> make_responder{};
  std::vector<std::string> faults{};
  Program prepare{};    // h1: connected, before h0 begins
  Program work{};       // h0
  Program meanwhile{};  // h1: while h0 works
  // Or both by librdmacm, and no endpoints.
  std::function<void(CmProgram&)> connects{};  // h0
  std::function<void(CmProgram&)> listens{};   // h1
  Capability needs{};
};

std::span<const Behaviour> behaviours();
// Those of them that are the connection manager's.
std::vector<Behaviour> connections();

inline const std::filesystem::path kGoldenFolder = RNICSIM_SOURCE_DIR "/traces/golden";
inline std::filesystem::path golden_trace(const Behaviour& behaviour) {
  return kGoldenFolder / (behaviour.name + ".trace");
}

// Runs one behaviour. One a process, as SystemC simulates once.
class BehaviourRun : public TwoHosts {
 public:
  explicit BehaviourRun(const Behaviour& behaviour, const std::vector<std::string>& sets = {})
      : TwoHosts(sets, behaviour.faults), behaviour_(behaviour) {}

  // The file of its trace.
  std::string record();
  // The same; nullopt: the device lacks what it needs.
  static std::optional<std::string> record_here(const Behaviour& behaviour, const std::vector<std::string>& sets = {});
  // As `rnicsim run --record FILE --record-software` does.
  static void record_software(const Behaviour& behaviour, const std::filesystem::path& file);
  // In a process of its own; the test fails when that does.
  static std::optional<std::string> record_apart(const Behaviour& behaviour, const std::vector<std::string>& sets = {});

 private:
  void TestBody() override {}
  void run_behaviour();
  bool possible() const { return behaviour_.needs.present == nullptr || capabilities().*behaviour_.needs.present; }

  const Behaviour& behaviour_;
};

}  // namespace rnicsim::testing
