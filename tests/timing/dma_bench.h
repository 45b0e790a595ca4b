// SPDX-License-Identifier: Apache-2.0
// The DMA unit alone over a flat memory: accesses at given times, and the times at which each was issued, sampled and
// completed.
#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "model/base/event_queue.h"
#include "model/nic/pcie/dma.h"

namespace rnicsim::nic::test {

class DmaBench : HostMemory {
 public:
  static constexpr std::uint32_t kSlotBytes = 64;
  static constexpr Pasid kProgram = 1;
  struct Access {
    bool write;
    Duration asked;
    Duration done;
    int times_done = 0;
  };
  struct Issued {
    bool write;
    std::uint64_t address;
    Duration at;
    Duration done;
  };

  explicit DmaBench(const DmaParams& params) : board_(std::make_unique<Board>(params)), memory_(1 << 20) {
    dma().reach(*this);
    dma().issued.subscribe([this](const DmaIssued& access) {
      issued.push_back({access.write, access.address, now(), now() + access.done});
    });
  }
  ~DmaBench() {
    board_.reset();
    sc_core::sc_get_curr_simcontext()->reset();
  }

  Dma& dma() { return board_->dma; }
  void at(Duration time, std::function<void()> action) { board_->actions.push(time, std::move(action)); }
  void run() {
    if (!board_->actions.empty()) sc_core::sc_start(to_sc_time({1'000'000'000'000}), sc_core::SC_EXIT_ON_STARVATION);
  }

  // Returns the number of the access. The offset is used as the address, too.
  std::size_t read(std::uint64_t address, std::uint32_t bytes, bool ordered = false) {
    const auto number = begin(false);
    dma().read({kProgram, address, address}, bytes, ends(number), {.ordered = ordered});
    return number;
  }
  std::size_t read_relaxed(std::uint64_t address, std::uint32_t bytes, bool relaxed) {
    const auto number = begin(false);
    dma().read({kProgram, address, address}, bytes, ends(number), {.relaxed = relaxed});
    return number;
  }
  std::size_t read_payload(std::uint64_t address, std::uint32_t bytes) {
    const auto number = begin(false);
    dma().read({kProgram, address, address}, bytes, ends(number), {.payload = true});
    return number;
  }
  std::size_t write(std::uint64_t address, std::uint32_t bytes, bool relaxed = false) {
    const auto number = begin(true);
    Payload data(bytes);
    std::ranges::fill(data.writable(), std::byte{1});
    dma().write({kProgram, address, address}, std::move(data), ends(number), {.relaxed = relaxed});
    return number;
  }
  // Slots are 64 bytes and hold a number.
  void write_slot(std::uint32_t slot, std::uint32_t value, bool more, bool relaxed = false) {
    const auto number = begin(true);
    Payload data(kSlotBytes);
    std::ranges::fill(data.writable(), std::byte{0});
    std::memcpy(data.writable().data(), &value, sizeof value);
    const std::uint64_t address = std::uint64_t{slot} * kSlotBytes;
    dma().write({kProgram, address, address}, std::move(data), ends(number), {.more = more, .relaxed = relaxed});
  }
  void expect_no_older(std::uint32_t slot, std::uint32_t least, bool relaxed = false) {
    const auto number = begin(false);
    const std::uint64_t address = std::uint64_t{slot} * kSlotBytes;
    auto done = [this, number, least](AccessResult, const Payload& data) {
      std::uint32_t value;
      std::memcpy(&value, data.bytes().data(), sizeof value);
      if (value < least) ++too_old;
      end(number);
    };
    dma().read({kProgram, address, address}, kSlotBytes, dma().closure(std::move(done)), {.relaxed = relaxed});
  }

  std::size_t unfinished() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(accesses, [](const auto& access) { return access.times_done != 1; }));
  }

  std::vector<Access> accesses;  // in the order of the requests
  std::vector<Issued> issued;
  int too_old = 0;

 private:
  struct Board : sc_core::sc_module {
    explicit Board(const DmaParams& params) : sc_module(sc_core::sc_module_name("board")), dma("dma", params) {}
    void act() {
      std::function<void()> action;
      while (actions.pop_due(action)) action();
    }
    Dma dma;
    EventQueue<std::function<void()>> actions{[this] { act(); }};
  };

  bool read(Pasid, std::uint64_t address, std::span<std::byte> bytes) override {
    std::memcpy(bytes.data(), memory_.data() + address, bytes.size());
    return true;
  }
  bool write(Pasid, std::uint64_t address, std::span<const std::byte> bytes) override {
    std::memcpy(memory_.data() + address, bytes.data(), bytes.size());
    return true;
  }

  std::size_t begin(bool write) {
    accesses.push_back({write, now(), {}, 0});
    return accesses.size() - 1;
  }
  void end(std::size_t number) {
    accesses[number].done = now();
    ++accesses[number].times_done;
  }
  DmaReply ends(std::size_t number) {
    return dma().closure([this, number](AccessResult, const Payload&) { end(number); });
  }

  std::unique_ptr<Board> board_;
  std::vector<std::byte> memory_;
};

}  // namespace rnicsim::nic::test
