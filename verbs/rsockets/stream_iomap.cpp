// SPDX-License-Identifier: Apache-2.0
// Memory to which the peer may write by offset: riomap, riounmap, riowrite.
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "verbs/rsockets/stream.h"

namespace rnicsim::rsockets {

// Lowest free entry of the peer's list.
std::optional<std::uint32_t> Stream::free_mapping_index() const {
  for (std::uint32_t index = 0; index < peer_mapping_list_.length; ++index) {
    if (std::ranges::none_of(mappings_, [&](const LocalMapping& mapping) { return mapping.index == index; })) {
      return index;
    }
  }
  return std::nullopt;
}

Answer Stream::map(void* buffer, std::size_t length, int protection, std::int64_t offset) {
  const Lock lock(mutex_);
  if (endpoint_ == nullptr || (protection & ~PROT_WRITE) != 0) return -EINVAL;
  const bool remote = (protection & PROT_WRITE) != 0;
  const auto index = remote ? free_mapping_index() : std::nullopt;
  if (remote && !index) return -ENOMEM;
  const int access = IBV_ACCESS_LOCAL_WRITE | (remote ? IBV_ACCESS_REMOTE_WRITE : 0);
  ibv_mr* region = ibv_reg_mr(endpoint_->pd(), buffer, length, access);
  if (region == nullptr) return -errno;
  if (offset == -1) offset = std::int64_t(reinterpret_cast<std::uintptr_t>(buffer));
  mappings_.push_back({region, std::uint64_t(offset), index, !remote});
  return offset;
}

Answer Stream::unmap(void* buffer, std::size_t length) {
  const Lock lock(mutex_);
  const auto found = std::ranges::find_if(mappings_, [&](const LocalMapping& mapping) {
    return mapping.region->addr == buffer && mapping.region->length == length;
  });
  if (found == mappings_.end()) return -EINVAL;
  ibv_dereg_mr(found->region);
  mappings_.erase(found);
  return 0;
}

void Stream::release_mappings() {
  for (const LocalMapping& mapping : mappings_) ibv_dereg_mr(mapping.region);
  mappings_.clear();
}

// Mappings made since the last send are sent before the next data.
int Stream::tell_mappings(Lock& lock, bool waits) {
  for (;;) {
    if (std::ranges::all_of(mappings_, &LocalMapping::told)) return 0;
    if (const int error = wait_to_post(lock, waits, false)) return error;
    // During the sleep another thread may have unmapped the buffer.
    const auto next = std::ranges::find(mappings_, false, &LocalMapping::told);
    if (next == mappings_.end()) return 0;
    next->told = true;
    const Extent extent{reinterpret_cast<std::uintptr_t>(next->region->addr), next->region->rkey,
                        std::uint32_t(next->region->length)};
    WireMapping entry = encode(Mapping{next->offset, extent}, swapped_);
    const iovec piece{&entry, sizeof entry};
    Source source({&piece, 1});
    window_.sent();
    post_bytes(source, {Op::iomap, *next->index}, true,
               {peer_mapping_list_.address + sizeof entry * *next->index, peer_mapping_list_.key, sizeof entry});
  }
}

// The peer has written entry `index` of this side's list. The message used a place of the window.
void Stream::take_mapping(std::uint32_t index) {
  receive_window_.consumed();
  const std::span<WireMapping> list = endpoint_->mappings();
  if (index >= list.size()) return broke(EPROTO);
  peer_mappings_.resize(list.size());
  peer_mappings_[index] = decode(list[index]);
}

const Mapping* Stream::peer_mapping(std::uint64_t offset) const {
  const auto found = std::ranges::find_if(peer_mappings_, [&](const Mapping& mapping) {
    return offset >= mapping.offset && offset - mapping.offset < mapping.extent.length;
  });
  return found == peer_mappings_.end() ? nullptr : &*found;
}

Answer Stream::write_mapped(const void* buffer, std::size_t length, std::int64_t offset, int flags) {
  const std::lock_guard calls(send_mutex_);
  Lock lock(mutex_);
  const bool waiting = waits(flags);
  if (const int error = ready_for_data(lock, waiting)) return -error;
  int error = may_send();
  if (error == 0) error = tell_mappings(lock, waiting);
  const iovec piece{const_cast<void*>(buffer), length};
  Source source({&piece, 1});
  Overlap overlap;
  std::size_t done = 0;
  while (error == 0 && done < length) {
    error = wait_to_post(lock, waiting, true);
    if (error != 0) break;
    const std::uint64_t position = std::uint64_t(offset) + done;
    if (peer_mapping(position) == nullptr) process();
    const Mapping* mapping = peer_mapping(position);
    if (mapping == nullptr) break;  // the rest of the range is not mapped
    const auto within = std::uint32_t(position - mapping->offset);
    const std::uint32_t part =
        std::min({overlap.next(length - done), send_ring_.available(), mapping->extent.length - within});
    post_bytes(source, {Op::direct_write, part}, false, {mapping->extent.address + within, mapping->extent.key, part});
    done += part;
  }
  return sent_or(done, error);
}

}  // namespace rnicsim::rsockets
