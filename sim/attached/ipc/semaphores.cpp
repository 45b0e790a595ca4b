// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/ipc/semaphores.h"

#include <utility>

namespace rnicsim::sim {

int Semaphores::get(key_t key, std::int64_t count, int flags, const IpcCaller& caller, std::uint64_t& number) {
  if (count < 0 || count > kMostOfASet) return EINVAL;
  const auto fits = [&](const Set& set) { return count > std::int64_t(set.semaphores.size()) ? EINVAL : 0; };
  const auto make = [&](std::optional<Set>& made) {
    if (count == 0) return EINVAL;
    made.emplace(Set{.owner = {key, flags, caller},
                     .semaphores = std::vector<Semaphore>(std::size_t(count)),
                     .changed = caller.time});
    return 0;
  };
  return sets_.get(key, flags, caller, fits, make, number);
}

// The operation that must wait; nullptr: none.
const sembuf* Semaphores::holds_up(const Set& set, std::span<const sembuf> operations) {
  std::map<std::uint16_t, int> changed;
  for (const sembuf& operation : operations) {
    int& value = changed.try_emplace(operation.sem_num, set.semaphores[operation.sem_num].value).first->second;
    if (operation.sem_op == 0 ? value != 0 : value + operation.sem_op < 0) return &operation;
    value += operation.sem_op;
    if (value > kMostValue) return nullptr;
  }
  return nullptr;
}

// Executes all operations or none. Returns 0, kWaits or an errno.
int Semaphores::try_to(Set& set, std::span<const sembuf> operations, const IpcCaller& caller) {
  if (const sembuf* blocked = holds_up(set, operations)) return (blocked->sem_flg & IPC_NOWAIT) != 0 ? EAGAIN : kWaits;
  std::map<std::uint16_t, int> values, undo;
  for (const sembuf& operation : operations) {
    int& value = values.try_emplace(operation.sem_num, set.semaphores[operation.sem_num].value).first->second;
    value += operation.sem_op;
    if (value > kMostValue) return ERANGE;
    if ((operation.sem_flg & SEM_UNDO) == 0) continue;
    int& back = undo.try_emplace(operation.sem_num, set.undo[caller.process][operation.sem_num]).first->second;
    back -= operation.sem_op;
    if (back < -kMostValue - 1 || back > kMostValue) return ERANGE;
  }
  for (const auto& [which, value] : values) set.semaphores[which] = {value, caller.process};
  for (const auto& [which, back] : undo) set.undo[caller.process][which] = back;
  set.operated = caller.time;
  return 0;
}

// After a change: executes waiting calls in order of arrival. A call that still cannot run does not stop later ones.
void Semaphores::look_again(Set& set) {
  std::erase_if(set.waiting, [this](const Waiting& each) { return !goes_on(each.wait); });
  for (std::size_t i = 0; i < set.waiting.size();) {
    const Waiting& first = set.waiting[i];
    const int result = try_to(set, first.operations, first.caller);
    if (result == kWaits) {
      ++i;
      continue;
    }
    const IpcWait wait = first.wait;
    set.waiting.erase(set.waiting.begin() + std::ptrdiff_t(i));
    ended(wait, result);
    i = 0;
  }
}

int Semaphores::operate(std::uint64_t number, std::span<const sembuf> operations, const IpcCaller& caller,
                        IpcWait wait) {
  if (operations.empty()) return EINVAL;
  if (operations.size() > kMostOperations) return E2BIG;
  Set* set = sets_.find(number);
  if (set == nullptr) return EINVAL;
  bool alters = false;
  for (const sembuf& operation : operations) {
    if (operation.sem_num >= set->semaphores.size()) return EFBIG;
    alters |= operation.sem_op != 0;
  }
  if (const int error = set->owner.may(alters ? kIpcAlter : kIpcRead, caller); error != 0) return error;
  const int result = try_to(*set, operations, caller);
  if (result == 0 && alters) look_again(*set);
  if (result == kWaits) set->waiting.push_back({wait, caller, {operations.begin(), operations.end()}});
  return result;
}

int Semaphores::value(std::uint64_t number, std::uint64_t which, int operation, const IpcCaller& caller,
                      std::uint64_t& value) {
  Set* set = sets_.find(number);
  if (set == nullptr) return EINVAL;
  if (const int error = set->owner.may(kIpcRead, caller); error != 0) return error;
  if (which >= set->semaphores.size()) return EINVAL;
  const Semaphore& semaphore = set->semaphores[which];
  const auto waiting = [&](bool for_zero) {
    return std::uint64_t(std::ranges::count_if(set->waiting, [&](const Waiting& each) {
      const sembuf* blocked = goes_on(each.wait) ? holds_up(*set, each.operations) : nullptr;
      return blocked != nullptr && blocked->sem_num == which && (blocked->sem_op == 0) == for_zero;
    }));
  };
  switch (operation) {
    case GETVAL: value = std::uint64_t(semaphore.value); break;
    case GETPID: value = semaphore.last_process; break;
    case GETNCNT: value = waiting(false); break;
    default: value = waiting(true);
  }
  return 0;
}

int Semaphores::set_value(std::uint64_t number, std::uint64_t which, std::int64_t value, const IpcCaller& caller) {
  if (value < 0 || value > kMostValue) return ERANGE;
  Set* set = sets_.find(number);
  if (set == nullptr) return EINVAL;
  if (which >= set->semaphores.size()) return EINVAL;
  if (const int error = set->owner.may(kIpcAlter, caller); error != 0) return error;
  set->semaphores[which] = {int(value), caller.process};
  for (auto& [process, undo] : set->undo) undo.erase(std::uint16_t(which));
  set->changed = caller.time;
  look_again(*set);
  return 0;
}

int Semaphores::values(std::uint64_t number, const IpcCaller& caller, std::vector<std::uint16_t>& values) {
  Set* set = sets_.find(number);
  if (set == nullptr) return EINVAL;
  if (const int error = set->owner.may(kIpcRead, caller); error != 0) return error;
  for (const Semaphore& semaphore : set->semaphores) values.push_back(std::uint16_t(semaphore.value));
  return 0;
}

int Semaphores::count(std::uint64_t number, const IpcCaller& caller, std::uint64_t& count) {
  Set* set = sets_.find(number);
  if (set == nullptr) return EINVAL;
  count = set->semaphores.size();
  return set->owner.may(kIpcAlter, caller);
}

int Semaphores::set_values(std::uint64_t number, std::span<const std::uint16_t> values, const IpcCaller& caller) {
  Set* set = sets_.find(number);
  if (set == nullptr) return EINVAL;
  if (const int error = set->owner.may(kIpcAlter, caller); error != 0) return error;
  if (values.size() < set->semaphores.size()) return EINVAL;
  if (std::ranges::any_of(values.first(set->semaphores.size()), [](auto value) { return value > kMostValue; }))
    return ERANGE;
  for (std::size_t i = 0; i < set->semaphores.size(); ++i) set->semaphores[i] = {values[i], caller.process};
  set->undo.clear();
  set->changed = caller.time;
  look_again(*set);
  return 0;
}

int Semaphores::stat(std::uint64_t number, const IpcCaller& caller, semid_ds& told) {
  Set* set = sets_.find(number);
  if (set == nullptr) return EINVAL;
  if (const int error = set->owner.may(kIpcRead, caller); error != 0) return error;
  told.sem_perm = set->owner.told();
  told.sem_otime = set->operated;
  told.sem_ctime = set->changed;
  told.sem_nsems = set->semaphores.size();
  return 0;
}

int Semaphores::set_owner(std::uint64_t number, const semid_ds& wanted, const IpcCaller& caller) {
  Set* set = sets_.find(number);
  if (set == nullptr) return EINVAL;
  if (const int error = set->owner.may_change(caller); error != 0) return error;
  set->owner.change(wanted.sem_perm);
  set->changed = caller.time;
  return 0;
}

int Semaphores::remove(std::uint64_t number, const IpcCaller& caller) {
  Set* set = sets_.find(number);
  if (set == nullptr) return EINVAL;
  if (const int error = set->owner.may_change(caller); error != 0) return error;
  const auto waiting = std::move(set->waiting);
  sets_.remove(number);
  for (const Waiting& each : waiting)
    if (goes_on(each.wait)) ended(each.wait, EIDRM);
  return 0;
}

seminfo Semaphores::info(bool used) const {
  seminfo info{};
  info.semmni = int(kMostSets);
  info.semmsl = kMostOfASet;
  info.semmns = info.semmap = info.semmnu = int(kMostSets) * kMostOfASet;
  info.semopm = info.semume = kMostOperations;
  info.semvmx = info.semaem = kMostValue;
  info.semusz = 20;
  if (!used) return info;
  info.semusz = int(sets_.size());
  info.semaem = 0;
  for (const auto& [number, set] : sets_) info.semaem += int(set.semaphores.size());
  return info;
}

// A result outside the range of values is clamped, as on Linux.
void Semaphores::process_ended(std::uint32_t process, std::int64_t time) {
  for (auto& [number, set] : sets_) {
    const auto found = set.undo.find(process);
    if (found == set.undo.end()) continue;
    for (const auto& [which, back] : found->second) {
      if (back == 0) continue;
      Semaphore& semaphore = set.semaphores[which];
      semaphore = {std::clamp(semaphore.value + back, 0, kMostValue), process};
    }
    set.undo.erase(found);
    set.operated = time;
    look_again(set);
  }
}

}  // namespace rnicsim::sim
