// SPDX-License-Identifier: Apache-2.0
#include "sim/engine_choice.h"

#include <fmt/format.h>

#include <fstream>
#include <stdexcept>
#include <utility>

#include "model/base/kernel.h"
#include "model/nic/seam/qp_engine.h"
#include "sim/config/config_error.h"
#ifdef RNICSIM_RTL
#include "rtl/cosim/rtl_core.h"
#endif

namespace rnicsim::sim {
namespace {

[[maybe_unused]] std::filesystem::path with_name(const std::filesystem::path& path, const std::string& name) {
  if (name.empty()) return path;
  auto named = path;
  return named.replace_filename(fmt::format("{}-{}{}", path.stem().string(), name, path.extension().string()));
}

}  // namespace

Engines::Engines(const EngineParams& params, std::filesystem::path waves) : params_(params), waves_(std::move(waves)) {
  if (!waves_.empty() && params_.is_model())
    throw ConfigError("--fst: the C++ engine has no signals: --fst needs --engine rtl or --engine lockstep");
}

nic::EngineFactory Engines::factory([[maybe_unused]] const std::string& host, const EngineParams& own) {
  if (own.is_model()) return nic::make_model_engine;
#ifdef RNICSIM_RTL
  rtl::RtlOptions options{.lockstep = own.kind == "lockstep", .waves = {}, .clock = own.clock, .mismatch = {}};
  if (!waves_.empty()) {
    options.waves = with_name(waves_, host).string();
    if (!std::ofstream(options.waves)) throw ConfigError(fmt::format("{}: cannot be written", options.waves));
  }
  options.mismatch = [this, host](const std::string& histories) { mismatched(host, histories); };
  return [options](const nic::QpLimits& limits) {
    try {
      return rtl::make_rtl_engine(limits, options);
    } catch (const std::runtime_error& error) {
      throw ConfigError(error.what());
    }
  };
#else
  refuse_rtl(own.kind);
#endif
}

void Engines::mismatched(const std::string& host, const std::string& histories) {
  if (!mismatch_.empty()) return;  // report the first mismatch only: later ones mean nothing
  mismatch_ = fmt::format("{}{}the RTL and the C++ core differ\n{}", host, host.empty() ? "" : ": ", histories);
  fmt::print(stderr, "rnicsim: {}\n", mismatch_);
  pause_run();
}

void Engines::check() const {
  if (!mismatch_.empty()) throw EngineMismatch("ended: the RTL and the C++ core differ");
}

}  // namespace rnicsim::sim
