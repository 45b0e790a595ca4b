// A block of parameters as a flat list, made from its describe(): loading, `rnicsim describe` and the resolved
// configuration all read it.
#pragma once

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
  std::span<const char* const> words = {};  // a text is one of them

  std::string kind() const;        // "time", "bytes", "rate", "number", "true or false", "text"
  std::string value_text() const;  // with its unit
  bool is_number() const;

  // nullopt, or what is wrong with the text.
  std::optional<std::string> assign(std::string_view text) const;
};

class ParamList : public ParamVisitor {
 public:
  // `params` outlives the list, which refers to its members.
  template <class Params>
  explicit ParamList(Params& params) {
    params.describe(*this);
  }

  const std::vector<ParamEntry>& entries() const { return entries_; }
  const ParamEntry* find(std::string_view path) const;
  bool is_group(std::string_view path) const;
  // The path of the parameter or group that `path` may have been meant to be.
  std::optional<std::string> nearest(std::string_view path) const;
  // Of the values as they were when the list was made: "nic.pcie.read_bytes: 256 B is less than ...".
  std::optional<std::string> contradiction() const;

  void param(const char* name, Duration& value, const char* meaning, Range range) override;
  void param(const char* name, ByteCount& value, const char* meaning, Range range) override;
  void param(const char* name, BitRate& value, const char* meaning, Range range) override;
  void param(const char* name, std::uint32_t& value, const char* meaning, Range range) override;
  void param(const char* name, std::uint64_t& value, const char* meaning, Range range) override;
  void param(const char* name, double& value, const char* meaning, Range range) override;
  void param(const char* name, bool& value, const char* meaning) override;
  void param(const char* name, std::string& value, const char* meaning, std::span<const char* const> words) override;
  void refuse(bool contradiction, const char* name, const char* is, const char* other) override;

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

  std::vector<ParamEntry> entries_;
  std::optional<Contradiction> contradiction_;  // the first
  std::string prefix_;
};

// The name among `candidates` that a person who typed `name` most likely meant.
std::optional<std::string> nearest_name(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace rnicsim::sim
