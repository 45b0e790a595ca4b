// A context's objects of one kind by handle. A caller's pointer is believed only when the handle it carries leads back
// to it. The mutex is never held across a call of the port.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace rnicsim::verbs {

template <class T>
class Registry {
 public:
  // By reference: callers take the handle from the object in the same breath.
  void add(std::uint32_t handle, std::unique_ptr<T>&& object) {
    std::lock_guard guard(mutex_);
    objects_[handle] = std::move(object);
  }

  bool holds(std::uint32_t handle, const T* object) const {
    std::lock_guard guard(mutex_);
    const auto found = objects_.find(handle);
    return found != objects_.end() && found->second.get() == object;
  }

  // Runs `action` on the object while it can't be taken; false when there is none.
  template <class Action>
  bool with(std::uint32_t handle, Action&& action) {
    std::lock_guard guard(mutex_);
    const auto found = objects_.find(handle);
    if (found == objects_.end()) return false;
    action(*found->second);
    return true;
  }

  template <class Predicate>
  bool any_of(Predicate&& predicate) const {
    std::lock_guard guard(mutex_);
    for (const auto& entry : objects_)
      if (predicate(*entry.second)) return true;
    return false;
  }

  std::unique_ptr<T> take(std::uint32_t handle) {
    std::lock_guard guard(mutex_);
    auto node = objects_.extract(handle);
    return node.empty() ? nullptr : std::move(node.mapped());
  }

  std::unique_ptr<T> take_any() {
    std::lock_guard guard(mutex_);
    return objects_.empty() ? nullptr : std::move(objects_.extract(objects_.begin()).mapped());
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::uint32_t, std::unique_ptr<T>> objects_;
};

}  // namespace rnicsim::verbs
