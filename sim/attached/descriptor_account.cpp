// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/descriptor_account.h"

#include <fmt/format.h>

#include <cerrno>

#include "model/host/log.h"

namespace rnicsim::sim {

// Descriptors of a process: socket, pidfd, control region, DMA memory.
bool DescriptorAccount::has_room(Guest& guest, std::uint32_t host) {
  constexpr std::size_t kPerProcess = 4;
  if (budget_.take_for_process(kPerProcess)) return true;
  const std::string why = budget_.shortage();
  host::log_error(fmt::format("{}: {} is refused: {}", hosts_[host].name, guest.hello.program, why));
  AttachServer::refuse(guest, EMFILE, why);
  return false;
}

bool DescriptorAccount::lacks(const Process& process, const char* what) {
  if (budget_.take_for_object(1)) return false;
  std::string text = fmt::format("{}: {} is refused a {}", hosts_.of(process).name, process.label(), what);
  if (shortages_.insert(text).second) host::log_error(fmt::format("{}: {}", text, budget_.shortage()));
  return true;
}

}  // namespace rnicsim::sim
