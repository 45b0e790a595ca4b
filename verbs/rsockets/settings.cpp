// SPDX-License-Identifier: Apache-2.0
#include "verbs/rsockets/settings.h"

#include <algorithm>
#include <fstream>
#include <limits>

#include "verbs/rsockets/wire.h"

namespace rnicsim::rsockets {

namespace {

// Leaves `value` unchanged if the file is missing or has no number.
template <class Number>
void read_number(const std::string& folder, const char* name, Number& value) {
  std::ifstream file(folder + '/' + name);
  long long number;
  if (file >> number && number >= 0 && number <= (long long)(std::numeric_limits<Number>::max())) {
    value = Number(number);
  }
}

template <class Duration>
void read_duration(const std::string& folder, const char* name, Duration& value) {
  auto count = std::uint32_t(value.count());
  read_number(folder, name, count);
  value = Duration(count);
}

}  // namespace

Settings Settings::read(const std::string& folder) {
  Settings result;
  read_duration(folder, "polling_time", result.polling_time);
  read_duration(folder, "wake_up_interval", result.wake_up_interval);
  read_number(folder, "inline_default", result.inline_bytes);
  read_number(folder, "sqsize_default", result.send_queue);
  read_number(folder, "rqsize_default", result.receive_queue);
  read_number(folder, "mem_default", result.receive_bytes);
  read_number(folder, "wmem_default", result.send_bytes);
  read_number(folder, "iomap_size", result.iomap_entries);
  result.receive_bytes = std::max(result.receive_bytes, 2u);
  if (result.send_bytes < kLowWater) result.send_bytes = 2 * kLowWater;
  result.iomap_entries = round_iomap_entries(result.iomap_entries);
  return result;
}

const Settings& settings() {
  static const Settings read = Settings::read(kSettingsFolder);
  return read;
}

}  // namespace rnicsim::rsockets
