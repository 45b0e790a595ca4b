// SPDX-License-Identifier: Apache-2.0
// A flat list of parameters, filled by a block's describe(). Used for loading, for `rnicsim describe` and for the
// resolved configuration.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model/base/params.h"

namespace rnicsim::sim {

struct ParamEntry {
  using Value =
      std::variant<Duration*, ByteCount*, BitRate*, std::uint32_t*, std::uint64_t*, double*, bool*, std::string*>;
  std::string path;  // "nic.pcie.read_latency"
  std::string meaning;
  Value value;
  Range range;
  std::span<const char* const> words = {};  // allowed texts; empty: any

  std::string kind() const;        // "time", "bytes", "rate", "number", "true or false", "text"
  std::string value_text() const;  // with unit
  bool is_number() const;

  // Sets the value; nullopt: done, else an error message.
  std::optional<std::string> assign(std::string_view text) const;
};

class ParamList : public ParamVisitor {
 public:
  // The list refers to members of `params`, which must outlive it.
  template <class Params>
  explicit ParamList(Params& params) {
    params.describe(*this);
  }

  const std::vector<ParamEntry>& entries() const { return entries_; }
  const ParamEntry* find(std::string_view path) const;
  bool is_group(std::string_view path) const;
  // Path of the parameter or group that is spelt most like `path`; nullopt: none is close.
  std::optional<std::string> nearest(std::string_view path) const;
  // Contradiction of the values at the time when the list was made: "nic.pcie.read_bytes: 256 B is less than ...".
  std::optional<std::string> contradiction() const;
  // Reason why the parameter had no effect when the list was made: "switch.ecn.priorities is 0"; nullopt: none.
  std::optional<std::string> idle_reason(std::string_view path) const;

  void param(const char* name, Duration& value, const char* meaning, Range range) override;
  void param(const char* name, ByteCount& value, const char* meaning, Range range) override;
  void param(const char* name, BitRate& value, const char* meaning, Range range) override;
  void param(const char* name, std::uint32_t& value, const char* meaning, Range range) override;
  void param(const char* name, std::uint64_t& value, const char* meaning, Range range) override;
  void param(const char* name, double& value, const char* meaning, Range range) override;
  void param(const char* name, bool& value, const char* meaning) override;
  void param(const char* name, std::string& value, const char* meaning, std::span<const char* const> words) override;
  void refuse(bool contradiction, const char* name, const char* is, const char* other) override;
  void idle(bool idle, std::initializer_list<const char*> names, const char* why) override;

 protected:
  void enter(const char* name) override;
  void leave() override;

 private:
  void add(const char* name, ParamEntry::Value value, const char* meaning, Range range);

  struct Contradiction {
    std::string path;
    std::string is;
    std::string other;  // empty: none
  };

  struct Idle {
    std::string path;  // of a parameter or a group
    std::string why;   // path of a parameter, if there is one
    std::string text;
  };

  std::vector<ParamEntry> entries_;
  std::vector<Idle> idle_;
  std::optional<Contradiction> contradiction_;  // the first that was found
  std::string prefix_;
};

// Candidate that is spelt most like `name`; nullopt: none is close.
std::optional<std::string> nearest_name(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace rnicsim::sim
