// SPDX-License-Identifier: Apache-2.0
// Iterates over the iovec pieces of a message.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

namespace rnicsim::rsockets {

class Pieces {
 public:
  explicit Pieces(std::span<const iovec> pieces) : pieces_(pieces) { skip_empty(); }

  // Address of the next bytes, and their number up to the end of the piece.
  std::byte* next() const { return static_cast<std::byte*>(pieces_.front().iov_base) + offset_; }
  std::size_t contiguous() const { return pieces_.empty() ? 0 : pieces_.front().iov_len - offset_; }
  void skip(std::size_t length) {
    offset_ += length;
    skip_empty();
  }

 private:
  void skip_empty() {
    while (!pieces_.empty() && pieces_.front().iov_len == offset_) {
      pieces_ = pieces_.subspan(1);
      offset_ = 0;
    }
  }

  std::span<const iovec> pieces_;
  std::size_t offset_ = 0;
};

// Pieces to send.
class Source : public Pieces {
 public:
  using Pieces::Pieces;
  void copy(std::byte* into, std::size_t length) {
    while (length != 0) {
      const std::size_t part = std::min(length, contiguous());
      std::memcpy(into, next(), part);
      skip(part);
      into += part;
      length -= part;
    }
  }
};

// Pieces to receive into.
class Sink : public Pieces {
 public:
  using Pieces::Pieces;
  void copy(const std::byte* from, std::size_t length) {
    while (length != 0) {
      const std::size_t part = std::min(length, contiguous());
      std::memcpy(next(), from, part);
      skip(part);
      from += part;
      length -= part;
    }
  }
};

}  // namespace rnicsim::rsockets
