// SPDX-License-Identifier: Apache-2.0
// A callable that is stored in place; std::function allocates heap memory for captures of more than two words. An
// InlineFunction can be moved, not copied. A callable that is too large does not compile.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace rnicsim {

template <class Signature, std::size_t kCapacity = 48>
class InlineFunction;

template <class Result, class... Arguments, std::size_t kCapacity>
class InlineFunction<Result(Arguments...), kCapacity> {
 public:
  InlineFunction() = default;
  InlineFunction(std::nullptr_t) {}
  template <class Callable>
  requires(!std::same_as<std::remove_cvref_t<Callable>, InlineFunction>) InlineFunction(Callable&& callable) {
    using Held = std::remove_cvref_t<Callable>;
    static_assert(sizeof(Held) <= kCapacity && alignof(Held) <= kAlignment);
    static_assert(std::is_nothrow_move_constructible_v<Held>);
    ::new (static_cast<void*>(place_)) Held(std::forward<Callable>(callable));
    call_ = [](void* held, Arguments... arguments) -> Result {
      return (*static_cast<Held*>(held))(std::forward<Arguments>(arguments)...);
    };
    if constexpr (!std::is_trivially_copyable_v<Held>) {
      move_ = [](void* to, void* from) {
        if (to != nullptr) ::new (to) Held(std::move(*static_cast<Held*>(from)));
        static_cast<Held*>(from)->~Held();
      };
    }
  }
  InlineFunction(InlineFunction&& other) noexcept { take(other); }
  InlineFunction& operator=(InlineFunction&& other) noexcept {
    if (this == &other) return *this;
    clear();
    take(other);
    return *this;
  }
  InlineFunction& operator=(std::nullptr_t) noexcept {
    clear();
    return *this;
  }
  ~InlineFunction() { clear(); }

  explicit operator bool() const { return call_ != nullptr; }
  Result operator()(Arguments... arguments) { return call_(place_, std::forward<Arguments>(arguments)...); }

 private:
  static constexpr std::size_t kAlignment = std::min(kCapacity, alignof(std::max_align_t));

  void take(InlineFunction& other) {
    call_ = std::exchange(other.call_, nullptr);
    move_ = std::exchange(other.move_, nullptr);
    if (move_ != nullptr)
      move_(place_, other.place_);
    else if (call_ != nullptr)
      std::memcpy(place_, other.place_, kCapacity);
  }
  void clear() {
    if (move_ != nullptr) move_(nullptr, place_);
    call_ = nullptr;
    move_ = nullptr;
  }

  Result (*call_)(void*, Arguments...) = nullptr;
  void (*move_)(void* to, void* from) = nullptr;  // moves and destroys the source; nullptr: memcpy does
  alignas(kAlignment) std::byte place_[kCapacity];
};

// An InlineFunction of one word, for lambdas that capture only their module: there are so many of them that their size
// counts. A larger callable is allocated on the heap.
template <class Signature>
class Callback;

template <class Result, class... Arguments>
class Callback<Result(Arguments...)> : public InlineFunction<Result(Arguments...), sizeof(void*)> {
  using Base = InlineFunction<Result(Arguments...), sizeof(void*)>;

 public:
  Callback() = default;
  template <class Callable>
  requires(!std::same_as<std::remove_cvref_t<Callable>, Callback> && sizeof(Callable) <= sizeof(void*))
      Callback(Callable&& callable)
      : Base(std::forward<Callable>(callable)) {}
  template <class Callable>
  requires(!std::same_as<std::remove_cvref_t<Callable>, Callback> && sizeof(Callable) > sizeof(void*))
      Callback(Callable&& callable)
      : Base([kept = std::make_unique<std::remove_cvref_t<Callable>>(std::forward<Callable>(callable))](
                 Arguments... arguments) -> Result { return (*kept)(std::forward<Arguments>(arguments)...); }) {}
};

}  // namespace rnicsim
