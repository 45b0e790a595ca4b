// SPDX-License-Identifier: Apache-2.0
// Objects of one kind in a context, by handle. A pointer from the program is used only if the handle in the object
// leads back to the same pointer. The mutex is never held during a call of the port.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace rnicsim::verbs {

template <class T>
class Registry {
 public:
  // Reference to the pointer, since callers read the handle from the object in the same call.
  void add(std::uint32_t handle, std::unique_ptr<T>&& object) {
    std::lock_guard guard(mutex_);
    objects_[handle] = std::move(object);
  }

  bool holds(std::uint32_t handle, const T* object) const {
    std::lock_guard guard(mutex_);
    const auto found = objects_.find(handle);
    return found != objects_.end() && found->second.get() == object;
  }

  // Calls `action` with the object, which cannot be taken meanwhile. False: no such object.
  template <class Action>
  bool with(std::uint32_t handle, Action&& action) {
    std::lock_guard guard(mutex_);
    const auto found = objects_.find(handle);
    if (found == objects_.end()) return false;
    action(*found->second);
    return true;
  }

  // Calls `action` with the object that better(one, other) prefers among those for which `predicate` is true. False:
  // none.
  template <class Predicate, class Better, class Action>
  bool with_best(Predicate&& predicate, Better&& better, Action&& action) {
    std::lock_guard guard(mutex_);
    T* best = nullptr;
    for (const auto& entry : objects_)
      if (predicate(*entry.second) && (best == nullptr || better(*entry.second, *best))) best = entry.second.get();
    if (best == nullptr) return false;
    action(*best);
    return true;
  }

  template <class Predicate>
  bool any_of(Predicate&& predicate) const {
    std::lock_guard guard(mutex_);
    for (const auto& entry : objects_)
      if (predicate(*entry.second)) return true;
    return false;
  }

  std::size_t size() const {
    std::lock_guard guard(mutex_);
    return objects_.size();
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

// Objects of which several may stand for the same kernel object: the original one, by handle, and imports, by a number
// of the library's own (T::import). When another importer has destroyed the kernel object, an original whose handle is
// used again becomes an import.
template <class T>
class ImportableRegistry : public Registry<T> {
 public:
  void add(std::uint32_t handle, std::unique_ptr<T>&& object) {
    if (auto stale = this->take(handle)) add_import(std::move(stale));
    Registry<T>::add(handle, std::move(object));
  }
  void add_import(std::unique_ptr<T>&& object) {
    object->import = ++last_import_;
    imports_.add(object->import, std::move(object));
  }
  bool holds(std::uint32_t handle, const T* object) const {
    return Registry<T>::holds(handle, object) || (object->import != 0 && imports_.holds(object->import, object));
  }
  std::unique_ptr<T> take(T& object) {
    return Registry<T>::holds(object.handle, &object) ? Registry<T>::take(object.handle) : imports_.take(object.import);
  }
  using Registry<T>::take;

 private:
  std::atomic<std::uint32_t> last_import_{0};
  Registry<T> imports_;
};

}  // namespace rnicsim::verbs
