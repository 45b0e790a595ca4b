// SPDX-License-Identifier: Apache-2.0
// System V semaphores of a host, as Linux keeps them (semop(2)).
#pragma once

#include <sys/sem.h>

#include <deque>
#include <span>
#include <vector>

#include "sim/attached/ipc/ipc_object.h"

namespace rnicsim::sim {

class Semaphores {
 public:
  static constexpr int kMostOfASet = 4096, kMostOperations = 500, kMostValue = 32767;
  static constexpr std::size_t kMostSets = 32000;
  static constexpr int kWaits = -1;

  // Callbacks: goes_on() says whether a thread still waits. ended() ends a wait with 0 or an errno.
  std::function<bool(IpcWait)> goes_on;
  std::function<void(IpcWait, int error)> ended;

  // The calls return 0, an errno, or kWaits: the thread waits as `wait` until ended() is called.
  int get(key_t key, std::int64_t count, int flags, const IpcCaller& caller, std::uint64_t& number);
  int operate(std::uint64_t number, std::span<const sembuf> operations, const IpcCaller& caller, IpcWait wait);
  int value(std::uint64_t number, std::uint64_t which, int operation, const IpcCaller& caller, std::uint64_t& value);
  int set_value(std::uint64_t number, std::uint64_t which, std::int64_t value, const IpcCaller& caller);
  int values(std::uint64_t number, const IpcCaller& caller, std::vector<std::uint16_t>& values);
  // Number of semaphores in the set, for SETALL: needs write permission.
  int count(std::uint64_t number, const IpcCaller& caller, std::uint64_t& count);
  int set_values(std::uint64_t number, std::span<const std::uint16_t> values, const IpcCaller& caller);
  int stat(std::uint64_t number, const IpcCaller& caller, semid_ds& told);
  int set_owner(std::uint64_t number, const semid_ds& wanted, const IpcCaller& caller);
  int remove(std::uint64_t number, const IpcCaller& caller);
  seminfo info(bool used) const;
  std::size_t size() const { return sets_.size(); }
  // Number of the set at position `index`; nullopt: too few sets.
  std::optional<int> at(std::uint64_t index) const { return sets_.at(index); }
  // Applies the process's SEM_UNDO adjustments.
  void process_ended(std::uint32_t process, std::int64_t time);

 private:
  struct Waiting {
    IpcWait wait;
    IpcCaller caller;
    std::vector<sembuf> operations;
  };
  struct Semaphore {
    int value = 0;
    std::uint32_t last_process = 0;
  };
  struct Set {
    IpcOwner owner;
    std::vector<Semaphore> semaphores;
    std::int64_t operated = 0, changed = 0;                        // seconds since 1970
    std::deque<Waiting> waiting{};                                 // in order of arrival
    std::map<std::uint32_t, std::map<std::uint16_t, int>> undo{};  // SEM_UNDO adjustments, by process and semaphore
  };

  int try_to(Set& set, std::span<const sembuf> operations, const IpcCaller& caller);
  static const sembuf* holds_up(const Set& set, std::span<const sembuf> operations);
  void look_again(Set& set);

  IpcObjects<Set> sets_{kMostSets};
};

}  // namespace rnicsim::sim
