// SPDX-License-Identifier: Apache-2.0
#include "sim/python/memory.h"

#include <algorithm>
#include <cstring>

namespace rnicsim::sim::python {

bool IovaSpace::map(std::uint64_t iova, std::shared_ptr<Buffer> buffer, bool writable) {
  const auto next = mappings_.lower_bound(iova);
  if (next != mappings_.end() && next->first - iova < buffer->bytes.size()) return false;
  if (find(iova) != mappings_.end()) return false;
  mappings_.emplace(iova, Mapping{std::move(buffer), writable});
  return true;
}

std::optional<IovaSpace::Mapping> IovaSpace::unmap(std::uint64_t iova) {
  const auto found = mappings_.find(iova);
  if (found == mappings_.end()) return std::nullopt;
  const auto mapping = found->second;
  mappings_.erase(found);
  return mapping;
}

IovaSpace::Mappings::const_iterator IovaSpace::find(std::uint64_t address) const {
  auto found = mappings_.upper_bound(address);
  if (found == mappings_.begin()) return mappings_.end();
  --found;
  return address - found->first < found->second.buffer->bytes.size() ? found : mappings_.end();
}

bool IovaSpace::covers(std::uint64_t address, std::size_t bytes, bool writing) const {
  for (std::size_t done = 0; done < bytes;) {
    const auto found = find(address + done);
    if (found == mappings_.end() || (writing && !found->second.writable)) return false;
    done += found->second.buffer->bytes.size() - (address + done - found->first);
  }
  return true;
}

template <class Move>
bool IovaSpace::each_piece(std::uint64_t address, std::size_t bytes, Move move) {
  for (std::size_t done = 0; done < bytes;) {
    const auto found = find(address + done);
    if (found == mappings_.end()) return false;
    const auto memory = std::span(found->second.buffer->bytes).subspan(address + done - found->first);
    const auto piece = memory.first(std::min(memory.size(), bytes - done));
    move(piece, done);
    done += piece.size();
  }
  return true;
}

bool IovaSpace::read(std::uint64_t address, std::span<std::byte> bytes) {
  return each_piece(address, bytes.size(), [&](std::span<std::byte> memory, std::size_t offset) {
    std::memcpy(bytes.data() + offset, memory.data(), memory.size());
  });
}

bool IovaSpace::write(std::uint64_t address, std::span<const std::byte> bytes) {
  return each_piece(address, bytes.size(), [&](std::span<std::byte> memory, std::size_t offset) {
    std::memcpy(memory.data(), bytes.data() + offset, memory.size());
  });
}

std::optional<host::SharedPage> IovaSpace::shared_page(std::uint64_t address) const {
  const auto found = find(address);
  if (found == mappings_.end()) return std::nullopt;
  return host::SharedPage{0, found->second.buffer->number, (address - found->first) / kPage};
}

}  // namespace rnicsim::sim::python
