// SPDX-License-Identifier: Apache-2.0
// Common parts of System V semaphores and message queues: number, key, owner, and the wait of a thread.
#pragma once

#include <sys/ipc.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <optional>

namespace rnicsim::sim {

struct IpcCaller {
  std::uint32_t process = 0;  // virtual
  std::uint32_t user = 0;     // effective
  std::int64_t time = 0;      // in seconds since 1970
};

// Identifies the wait of one thread; given by SystemV.
using IpcWait = std::uint64_t;

inline constexpr int kIpcRead = 4, kIpcAlter = 2;  // permission bits, as in one octal digit of a mode

// Owner and permissions, as IPC_STAT returns them. may() and may_change() return 0 or an errno.
class IpcOwner {
 public:
  IpcOwner(key_t key, int mode, const IpcCaller& maker);
  int may(int wanted, const IpcCaller& caller) const;
  int may_change(const IpcCaller& caller) const;
  void change(const ipc_perm& wanted);
  key_t key() const { return told_.__key; }
  const ipc_perm& told() const { return told_; }

 private:
  ipc_perm told_{};
};

// The objects of one kind on a host. Numbers count up from 0 and are never used again.
template <class Object>
class IpcObjects {
 public:
  explicit IpcObjects(std::size_t most) : most_(most) {}
  // Gives the number of the object with `key`, or of a new object. `make` fills a new object, `fits` checks an old
  // one; both return 0 or an errno.
  template <class Fits, class Make>
  int get(key_t key, int flags, const IpcCaller& caller, Fits fits, Make make, std::uint64_t& number) {
    if (const auto found = by_key_.find(key); found != by_key_.end()) {
      number = std::uint64_t(found->second);
      const Object& object = objects_.at(found->second);
      if ((flags & IPC_CREAT) != 0 && (flags & IPC_EXCL) != 0) return EEXIST;
      if (const int error = fits(object); error != 0) return error;
      return object.owner.may(flags >> 6 | flags >> 3 | flags, caller);
    }
    if (key != IPC_PRIVATE && (flags & IPC_CREAT) == 0) return ENOENT;
    std::optional<Object> made;
    if (const int error = make(made); error != 0) return error;
    if (objects_.size() >= most_) return ENOSPC;
    number = std::uint64_t(next_);
    if (key != IPC_PRIVATE) by_key_.emplace(key, next_);
    objects_.emplace(next_++, std::move(*made));
    return 0;
  }
  Object* find(std::uint64_t number) {
    const auto found = number <= INT32_MAX ? objects_.find(int(number)) : objects_.end();
    return found != objects_.end() ? &found->second : nullptr;
  }
  // Number of the object at position `index`, as *_STAT counts them. nullopt: too few objects.
  std::optional<int> at(std::uint64_t index) const {
    if (index >= objects_.size()) return std::nullopt;
    return std::next(objects_.begin(), std::ptrdiff_t(index))->first;
  }
  void remove(std::uint64_t number) {
    const auto found = objects_.find(int(number));
    by_key_.erase(found->second.owner.key());
    objects_.erase(found);
  }
  std::size_t size() const { return objects_.size(); }
  auto begin() { return objects_.begin(); }
  auto end() { return objects_.end(); }
  auto begin() const { return objects_.begin(); }
  auto end() const { return objects_.end(); }

 private:
  const std::size_t most_;
  std::map<int, Object> objects_;
  std::map<key_t, int> by_key_;
  int next_ = 0;
};

}  // namespace rnicsim::sim
