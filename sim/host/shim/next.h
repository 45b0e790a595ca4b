// SPDX-License-Identifier: Apache-2.0
// The C library's function behind an interposed one: the next definition of the name (RTLD_NEXT).
#pragma once

#include <dlfcn.h>

#define RNICSIM_EXPORT extern "C" __attribute__((visibility("default")))

namespace rnicsim::clock {

template <class Function>
class Next {
 public:
  explicit constexpr Next(const char* name, const char* version = nullptr) : name_(name), version_(version) {}
  template <class... Args>
  auto operator()(Args... args) const {
    return get()(args...);
  }
  Function* get() const {
    if (function_ == nullptr) {
      void* found = version_ != nullptr ? ::dlvsym(RTLD_NEXT, name_, version_) : ::dlsym(RTLD_NEXT, name_);
      function_ = reinterpret_cast<Function*>(found);
    }
    return function_;
  }

 private:
  const char* name_;
  const char* version_;
  mutable Function* function_ = nullptr;
};

}  // namespace rnicsim::clock

// next_read(fd, buffer, n) calls the C library's own read.
#define RNICSIM_NEXT(name) \
  static const rnicsim::clock::Next<decltype(::name)> next_##name { #name }
