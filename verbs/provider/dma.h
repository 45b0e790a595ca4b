// SPDX-License-Identifier: Apache-2.0
// Memory shared by driver and device, and the order in which each sees the other's stores.
//
// The device may access this memory from another process or thread. Words that pass ownership are atomic: publish()
// (release) makes all earlier stores visible before the word, observe() (acquire) makes all later loads see what was
// stored before the word. All other fields are plain.
#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "model/abi/big_endian.h"

namespace rnicsim::provider {

// `bus_address`: where the device finds `memory`. Equal to the pointer for a process, different for kernel memory.
struct DmaBuffer {
  std::byte* memory = nullptr;
  std::uint64_t bus_address = 0;

  DmaBuffer at(std::size_t offset) const { return {memory + offset, bus_address + offset}; }
};

template <class T>
T observe(const T& word) {
  using Plain = std::remove_const_t<T>;
  return std::atomic_ref<Plain>(const_cast<Plain&>(word)).load(std::memory_order_acquire);
}

template <class T>
void publish(T& word, std::type_identity_t<T> value) {
  std::atomic_ref<T>(word).store(value, std::memory_order_release);
}

template <std::unsigned_integral T>
void publish_be(abi::BigEndian<T>& word, T value) {
  publish(word, abi::BigEndian<T>(value));
}

template <class T>
std::span<const std::byte> bytes_of(const T& object) {
  return std::as_bytes(std::span(&object, 1));
}

}  // namespace rnicsim::provider
