// SPDX-License-Identifier: Apache-2.0
// XRC domains: processes that have the same domain open share its receive queues and receiving queue pairs. Processes
// that open a domain by the same file share the domain. A domain without a file belongs to the process that made it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "model/base/pcie.h"
#include "model/host/context_file.h"
#include "model/host/number_pool.h"

namespace rnicsim::host {

class XrcDomains {
 public:
  // 0 or errno, as ib_uverbs_open_xrcd. EAGAIN: no domain has this file, and `creates` is false; EINVAL: the domain
  // exists, and `exclusive` is true.
  int open(Pasid process, const std::optional<ContextFile>& file, bool creates, bool exclusive, std::uint32_t& number);
  // EBUSY: this is the last open of the process, and one of its objects uses the domain.
  int close(Pasid process, std::uint32_t number);
  // Closes the domains of a dead process, whose objects are destroyed.
  void close_all(Pasid process);

  bool has(Pasid process, std::uint32_t number) const { return rights_.contains({number, process}); }
  // Counts an object of the process in the domain.
  void enter(Pasid process, std::uint32_t number) { ++rights_.at({number, process}).objects; }
  void leave(Pasid process, std::uint32_t number) { --rights_.at({number, process}).objects; }

 private:
  static constexpr std::uint32_t kEnd = 1u << 16;

  struct Right {
    std::uint32_t opens = 0;
    std::uint32_t objects = 0;
  };

  std::optional<std::uint32_t> domain_of(const std::optional<ContextFile>& file) const;
  void remove_unwanted(std::uint32_t number);

  std::map<std::uint32_t, std::optional<ContextFile>> files_;  // by domain
  std::map<std::pair<std::uint32_t, Pasid>, Right> rights_;
  NumberPool numbers_{1, kEnd};
};

}  // namespace rnicsim::host
