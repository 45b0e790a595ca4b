// SPDX-License-Identifier: Apache-2.0
// Verbs objects and memory of a connected stream.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <memory>
#include <span>

#include "verbs/rsockets/completion_queue.h"
#include "verbs/rsockets/flow.h"
#include "verbs/rsockets/socket.h"

namespace rnicsim::rsockets {

// Zeroed memory with a memory region.
class RegisteredMemory {
 public:
  RegisteredMemory() = default;
  ~RegisteredMemory();
  RegisteredMemory(const RegisteredMemory&) = delete;
  RegisteredMemory& operator=(const RegisteredMemory&) = delete;

  int make(ibv_pd* pd, std::size_t length, int access);
  std::byte* data() const { return data_.get(); }
  std::uint64_t address() const { return reinterpret_cast<std::uintptr_t>(data_.get()); }
  std::uint32_t lkey() const { return region_->lkey; }
  std::uint32_t rkey() const { return region_->rkey; }

 private:
  std::unique_ptr<std::byte[]> data_;
  ibv_mr* region_ = nullptr;
};

// Limits the queue sizes to those that the device supports.
void limit_queues(ibv_context* context, Sizes& sizes);

class Endpoint {
 public:
  explicit Endpoint(rdma_cm_id* id) : id_(id) {}
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  // Creates the QP and posts receives. `sizes` are set to the granted sizes. Returns 0 or a positive errno.
  int make(Sizes& sizes);

  CompletionQueue& completions() { return completions_; }
  ibv_pd* pd() const { return id_->qp->pd; }

  // Connection data that describe this side's memory.
  ConnectionData describe(const Sizes& sizes) const;

  std::byte* send_bytes() const { return send_.data(); }
  std::byte* control_bytes(std::uint32_t place) const {
    return send_.data() + control_offset_ + sizeof(WireExtent) * place;
  }
  std::byte* receive_bytes() const { return receive_.data(); }
  Extent receive_extent(std::uint32_t offset, std::uint32_t length) const {
    return {receive_.address() + offset, receive_.rkey(), length};
  }
  std::span<WireExtent, Targets::kEntries> targets() const;
  std::span<WireMapping> mappings() const;

  ibv_sge sge(const std::byte* bytes, std::uint32_t length) const {
    return {reinterpret_cast<std::uintptr_t>(bytes), length, send_.lkey()};
  }

  // The calls return 0 or a positive errno.
  int post_receives(std::uint32_t count);
  // Posts an RDMA WRITE of the pieces to `target`, with the message as immediate data or without. The message is the
  // wr_id.
  int post(Message message, bool immediate, std::span<ibv_sge> pieces, bool inlined, const Extent& target);
  // Moves the QP to ERR, which flushes all posted work.
  void stop();

 private:
  int make_queue_pair(Sizes& sizes);

  rdma_cm_id* id_;
  RegisteredMemory send_;
  RegisteredMemory receive_;
  RegisteredMemory lists_;
  std::size_t control_offset_ = 0;
  std::size_t mapping_entries_ = 0;
  CompletionQueue completions_;
};

// Bit of a wr_id that marks receives.
inline constexpr std::uint64_t kReceiveWork = 1ull << 63;

}  // namespace rnicsim::rsockets
