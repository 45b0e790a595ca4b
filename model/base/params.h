// SPDX-License-Identifier: Apache-2.0
// Parameters: plain structs, each with one describe() that lists names, members, meanings and forbidden combinations.
// The list drives loading, `rnicsim describe` and the documentation. The member's type gives the unit.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "model/base/units.h"

namespace rnicsim {

struct Range {
  double least = 0;
  double most = 1e300;
  std::span<const double> choices = {};  // static storage; empty: every value in the range
};

class ParamVisitor {
 public:
  virtual ~ParamVisitor() = default;
  virtual void param(const char* name, Duration& value, const char* meaning, Range range = {}) = 0;
  virtual void param(const char* name, ByteCount& value, const char* meaning, Range range = {}) = 0;
  virtual void param(const char* name, BitRate& value, const char* meaning, Range range = {}) = 0;
  virtual void param(const char* name, std::uint32_t& value, const char* meaning, Range range = {}) = 0;
  virtual void param(const char* name, std::uint64_t& value, const char* meaning, Range range = {}) = 0;
  virtual void param(const char* name, double& value, const char* meaning, Range range = {}) = 0;
  virtual void param(const char* name, bool& value, const char* meaning) = 0;
  // A text that is one of `words` (static storage); any text if `words` is empty.
  virtual void param(const char* name, std::string& value, const char* meaning,
                     std::span<const char* const> words = {}) = 0;

  // A forbidden combination. If `contradiction` is true, the error reads: `name` `is` `other`, as "a" "is less than"
  // "b"; `other` may be absent. Names are relative to this block.
  virtual void refuse(bool /*contradiction*/, const char* /*name*/, const char* /*is*/,
                      const char* /*other*/ = nullptr) {}
  // Parameters that have no effect at the present values. If `idle` is true, `why` makes the parameters and groups
  // `names` ineffective. `why`: another parameter, or a text such as "the topology has no switch". Names are relative
  // to this block.
  virtual void idle(bool /*idle*/, std::initializer_list<const char*> /*names*/, const char* /*why*/) {}

  // A nested block: its names get the prefix `name.`.
  template <class Params>
  void group(const char* name, Params& params) {
    enter(name);
    params.describe(*this);
    leave();
  }

 protected:
  virtual void enter(const char* name) = 0;
  virtual void leave() = 0;
};

}  // namespace rnicsim
