// XRC domains: processes that have one open share its receive queues and receiving queue pairs. Who opens a domain by a
// file shares it with all who open the same file; one without a file is its maker's alone.
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
  // 0 or errno, as ib_uverbs_open_xrcd has them. EAGAIN: there is none of that file, and none is to be made; EINVAL:
  // there is one, and it was to be new.
  int open(Pasid process, const std::optional<ContextFile>& file, bool creates, bool exclusive, std::uint32_t& number);
  // EBUSY while an object of the process uses it, and it is open once.
  int close(Pasid process, std::uint32_t number);
  // The process has died, and its objects are gone.
  void close_all(Pasid process);

  bool has(Pasid process, std::uint32_t number) const { return rights_.contains({number, process}); }
  // An object of the process in the domain comes, or goes.
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

  std::map<std::uint32_t, std::optional<ContextFile>> files_;          // by domain
  std::map<std::pair<std::uint32_t, Pasid>, Right> rights_;
  NumberPool numbers_{1, kEnd};
};

}  // namespace rnicsim::host
