// SPDX-License-Identifier: Apache-2.0
// Flow control of a stream: how much a side may send, and where the bytes are placed. Pure arithmetic, without verbs.
//
// Invariants, for every order of calls that the preconditions allow:
// - SendRing: bytes taken and not released never exceed the size, and no two such pieces overlap.
// - SendWindow, ReceiveWindow: data messages that arrived and were not consumed never exceed the receive queue's size.
// - ReceiveRing: space that is published and not filled yet never overlaps bytes that the reader has not read.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "verbs/rsockets/wire.h"

namespace rnicsim::rsockets {

// Sender's view of the receiver's places for data messages. The counts have 16 bits and wrap.
class SendWindow {
 public:
  explicit SendWindow(std::uint16_t credits = 0) : granted_(credits) {}
  bool open() const { return sent_ != granted_; }
  void sent() { ++sent_; }
  void granted(std::uint16_t limit) { granted_ = limit; }

 private:
  std::uint16_t sent_ = 0;
  std::uint16_t granted_;
};

// Receiver's side of the window. A new grant is due when half of the places were used since the last grant.
class ReceiveWindow {
 public:
  explicit ReceiveWindow(std::uint16_t places = 0) : places_(places), due_at_(places / 2) {}
  void consumed() { ++consumed_; }
  bool due() const { return std::int16_t(std::uint16_t(consumed_ - due_at_)) >= 0; }
  // The limit to send to the sender.
  std::uint16_t grant() {
    due_at_ = std::uint16_t(consumed_ + places_ / 2);
    return std::uint16_t(consumed_ + places_);
  }

 private:
  std::uint16_t consumed_ = 0;
  std::uint16_t places_;
  std::uint16_t due_at_;
};

// Places of the send queue that are reserved for messages without a window (grants, controls).
inline constexpr std::uint32_t kControlPlaces = 4;

class ControlPlaces {
 public:
  bool available() const { return used_ != kControlPlaces; }
  // Returns the number of a place, which holds a message's bytes until done(). Messages complete in the order of
  // sending.
  std::uint32_t take() {
    ++used_;
    return next_++ % kControlPlaces;
  }
  void done() { --used_; }
  bool idle() const { return used_ == 0; }

 private:
  std::uint32_t used_ = 0;
  std::uint32_t next_ = 0;
};

struct Piece {
  std::uint32_t offset = 0;
  std::uint32_t length = 0;
};

// Buffer of bytes that are sent and not acknowledged, in order.
class SendRing {
 public:
  explicit SendRing(std::uint32_t size = 0) : size_(size), available_(size) {}
  std::uint32_t available() const { return available_; }
  // Precondition: length <= available(). Returns two pieces if the range wraps around the end; otherwise the second is
  // empty.
  std::array<Piece, 2> take(std::uint32_t length) {
    available_ -= length;
    const std::uint32_t first = std::min(length, size_ - head_);
    const std::array<Piece, 2> pieces{Piece{head_, first}, Piece{0, length - first}};
    head_ = first == length ? (head_ + first) % size_ : length - first;
    return pieces;
  }
  // For inline data, which is in the WQE and not in the buffer, but counts against its size.
  void count(std::uint32_t length) { available_ -= length; }
  void release(std::uint32_t length) { available_ += length; }

 private:
  std::uint32_t size_;
  std::uint32_t available_;
  std::uint32_t head_ = 0;
};

// Receive buffers of the peer, each filled completely before the next. The peer writes them by RDMA into the entries
// of a list in this side's memory, in turn.
class Targets {
 public:
  static constexpr std::uint32_t kEntries = 2;

  explicit Targets(const Extent& first = {}) { entries_[0] = first; }
  std::uint32_t room() const { return entries_[current_].length; }
  // Precondition: length <= room(). Returns the memory for the next bytes.
  Extent take(std::uint32_t length) {
    Extent& entry = entries_[current_];
    const Extent taken{entry.address, entry.key, length};
    entry.address += length;
    entry.length -= length;
    if (entry.length == 0) current_ = (current_ + 1) % kEntries;
    return taken;
  }
  // Called when the peer may have written a list entry.
  void look(std::span<WireExtent, kEntries> list) {
    WireExtent& written = list[next_];
    if (written.length == 0 || entries_[next_].length != 0) return;
    entries_[next_] = decode(written);
    written = {};
    next_ = (next_ + 1) % kEntries;
  }

 private:
  std::array<Extent, kEntries> entries_{};
  std::uint32_t current_ = 0;
  std::uint32_t next_ = 1;
};

// The receive buffer. Its two halves are published to the peer when they become free.
class ReceiveRing {
 public:
  // The first half is published at once.
  explicit ReceiveRing(std::uint32_t half = 0) : half_(half), announced_(half), free_(half), next_half_(half) {}
  // False: the peer sent more than was published.
  bool arrived(std::uint32_t length) {
    if (length > announced_) return false;
    announced_ -= length;
    messages_.push_back(length);
    return true;
  }
  bool empty() const { return messages_.empty(); }
  std::size_t messages() const { return messages_.size(); }

  bool half_free() const { return free_ >= half_; }
  // Publishes the next half; returns its offset.
  std::uint32_t publish() {
    const std::uint32_t offset = next_half_;
    free_ -= half_;
    announced_ += half_;
    next_half_ = half_ - next_half_;
    return offset;
  }

  // Calls `copy` for pieces of the received data, at most `wanted` bytes in total. Reports completely read messages to
  // `window`.
  template <class Copy>
  std::uint32_t read(std::uint32_t wanted, ReceiveWindow& window, Copy&& copy) {
    std::uint32_t done = 0;
    while (done < wanted && !messages_.empty()) {
      std::uint32_t& message = messages_.front();
      const std::uint32_t length = std::min({message, wanted - done, 2 * half_ - offset_});
      if (length != 0) copy(Piece{offset_, length});
      done += length;
      offset_ = (offset_ + length) % (2 * half_);
      free_ += length;
      message -= length;
      if (message != 0) continue;
      messages_.pop_front();
      window.consumed();
    }
    return done;
  }
  // The same without consuming the data.
  template <class Copy>
  std::uint32_t peek(std::uint32_t wanted, Copy&& copy) const {
    std::uint32_t done = 0;
    std::uint32_t offset = offset_;
    for (std::uint32_t message : messages_) {
      while (message != 0 && done < wanted) {
        const std::uint32_t length = std::min({message, wanted - done, 2 * half_ - offset});
        copy(Piece{offset, length});
        done += length;
        message -= length;
        offset = (offset + length) % (2 * half_);
      }
    }
    return done;
  }

 private:
  std::uint32_t half_;
  std::uint32_t announced_;  // published, not filled yet
  std::uint32_t free_;       // read, not published again yet
  std::uint32_t next_half_;
  std::uint32_t offset_ = 0;  // read position
  std::deque<std::uint32_t> messages_;
};

// Lengths of the messages of one send call: small at first, so that the first bytes travel while the next are copied.
class Overlap {
 public:
  std::uint32_t next(std::size_t left) {
    if (next_ >= left) return std::uint32_t(left);
    const std::uint32_t length = next_;
    if (next_ < kLongest) next_ *= 2;
    return length;
  }

 private:
  static constexpr std::uint32_t kLongest = 65536;
  std::uint32_t next_ = 2048;
};

}  // namespace rnicsim::rsockets
