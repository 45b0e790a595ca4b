// SPDX-License-Identifier: Apache-2.0
#include "model/host/xrc_domains.h"

#include <algorithm>
#include <cerrno>

namespace rnicsim::host {

std::optional<std::uint32_t> XrcDomains::domain_of(const std::optional<ContextFile>& file) const {
  const auto found = std::ranges::find_if(files_, [&](const auto& entry) { return file && entry.second == file; });
  return found != files_.end() ? std::optional(found->first) : std::nullopt;
}

int XrcDomains::open(Pasid process, const std::optional<ContextFile>& file, bool creates, bool exclusive,
                     std::uint32_t& number) {
  auto domain = domain_of(file);
  if (file && !domain && !creates) return EAGAIN;
  if (domain && exclusive) return EINVAL;
  if (!domain) {
    domain = numbers_.take();
    if (!domain) return ENOMEM;
    files_.emplace(*domain, file);
  }
  ++rights_[{*domain, process}].opens;
  number = *domain;
  return 0;
}

int XrcDomains::close(Pasid process, std::uint32_t number) {
  const auto right = rights_.find({number, process});
  if (right == rights_.end()) return ENOENT;
  if (right->second.opens == 1 && right->second.objects != 0) return EBUSY;
  if (--right->second.opens != 0) return 0;
  rights_.erase(right);
  remove_unwanted(number);
  return 0;
}

void XrcDomains::close_all(Pasid process) {
  std::erase_if(rights_, [&](const auto& entry) { return entry.first.second == process; });
  while (true) {
    const auto unwanted = std::ranges::find_if(files_, [&](const auto& entry) {
      const auto right = rights_.lower_bound({entry.first, 0});
      return right == rights_.end() || right->first.first != entry.first;
    });
    if (unwanted == files_.end()) return;
    remove_unwanted(unwanted->first);
  }
}

void XrcDomains::remove_unwanted(std::uint32_t number) {
  const auto right = rights_.lower_bound({number, 0});
  if (right != rights_.end() && right->first.first == number) return;
  files_.erase(number);
  numbers_.give_back(number);
}

}  // namespace rnicsim::host
