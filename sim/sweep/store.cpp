// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/store.h"

#include <fmt/format.h>
#include <isa-l/crc.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>

#include "sim/config/config_error.h"
#include "sim/results/file_json.h"
#include "sim/results/results_json.h"
#include "sim/results/staged_file.h"

namespace rnicsim::sim::sweep {
namespace {

namespace fs = std::filesystem;
constexpr const char* kPlan = "plan.json";
constexpr const char* kError = ".error";

std::string stem_of(const Run& run) { return fmt::format("points/{}-{}", run.point, run.seed); }

std::optional<std::string> read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  return std::string{std::istreambuf_iterator<char>(in), {}};
}

// Adds the CRC-32 of all preceding bytes as the last member, to detect a file that was changed later.
std::string sealed(std::string_view text) {
  const auto end = text.find_last_not_of(" \n", text.rfind('}') - 1);
  const auto body = text.substr(0, end + 1);
  return fmt::format("{},\n \"crc32\": \"{:08x}\"\n}}\n", body,
                     crc32_gzip_refl(0, reinterpret_cast<const unsigned char*>(body.data()), body.size()));
}

bool is_sealed(std::string_view text) {
  const auto seal = text.rfind(",\n \"crc32\": ");
  return seal != text.npos && seal != 0 && sealed(std::string(text.substr(0, seal)) + "\n}\n") == text;
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw ConfigError(fmt::format("{}: {}", folder.string(), error.message()));
}

Json parsed(const fs::path& path, const std::string& text) {
  try {
    return Json::parse(text);
  } catch (const JsonError&) {
    throw ConfigError(fmt::format("{}: not JSON, or not whole", path.string()));
  }
}

void check_origin(const fs::path& path, const Json& json, const char* command) {
  const auto ours = results_of_command(command);
  for (const char* key : {"schema", "command", "rnicsim"}) {
    const auto found = json.is_object() ? json.value(key, Json()) : Json();
    if (found != ours.at(key))
      throw ConfigError(fmt::format("{}: {} is {}, not {}: another version wrote this file", path.string(), key,
                                    found.dump(), ours.at(key).dump()));
  }
}

struct SavedPlan {
  SweepPlan plan;
  std::vector<std::string> invocation;
  Json files;
};

SavedPlan read_plan(const fs::path& path) {
  const auto text = read(path);
  if (!text)
    throw ConfigError(
        fmt::format("{}: {}; is this folder the output of a sweep?", path.string(), std::strerror(errno)));
  const auto json = parsed(path, *text);
  check_origin(path, json, "sweep");
  try {
    return {plan_of(json.at("plan")), json.at("invocation").get<std::vector<std::string>>(), json.at("files")};
  } catch (const JsonError& error) {
    throw ConfigError(fmt::format("{}: not a sweep's plan: {}", path.string(), error.what()));
  }
}

Json files_json(const SweepPlan& plan) {
  Json files = Json::array();
  for (const auto& path : plan.files()) files.push_back(file_json(path));
  return files;
}

}  // namespace

Store::Store(fs::path folder, SweepPlan plan, const std::vector<std::string>& invocation)
    : folder_(std::move(folder)), plan_(std::move(plan)), invocation_(invocation) {
  make_folder(folder_ / "points");
  std::error_code none;
  if (fs::exists(folder_ / kPlan, none)) {
    const auto saved = read_plan(folder_ / kPlan);
    if (plan_json(saved.plan) != plan_json(plan_))
      throw ConfigError(fmt::format(
          "{}: the folder has the results of another sweep; choose another folder by --out, or remove this folder",
          folder_.string()));
    invocation_ = saved.invocation;
    files_ = saved.files;
    check_files();
    return;
  }
  Json json = results_of_command("sweep");
  json["invocation"] = invocation_;
  json["plan"] = plan_json(plan_);
  json["files"] = files_json(plan_);
  write(kPlan, json.dump(2) + '\n');
}

Store::Store(fs::path folder) : folder_(std::move(folder)) {
  auto saved = read_plan(folder_ / kPlan);
  plan_ = std::move(saved.plan);
  invocation_ = std::move(saved.invocation);
  files_ = std::move(saved.files);
}

// A sweep must not mix runs of changed files with earlier runs.
void Store::check_files() const {
  const auto present = files_json(plan_);
  if (present == files_) return;
  std::string what = "a file";
  for (const auto& file : files_)
    if (file.is_object() && std::ranges::find(present, file) == present.end()) {
      what = file.value("file", what);
      break;
    }
  throw ConfigError(
      fmt::format("{}: {} has changed since this sweep began; choose another folder by --out, or remove this folder",
                  folder_.string(), what));
}

bool Store::done(const Run& run) const {
  std::error_code none;
  return fs::exists(folder_ / file_of(run), none);
}

std::optional<std::string> Store::failure(const Run& run) const { return read(folder_ / (stem_of(run) + kError)); }

Json Store::results(const Run& run) const {
  const auto path = folder_ / file_of(run);
  const auto text = read(path);
  if (!text) throw ConfigError(fmt::format("{}: {}", path.string(), std::strerror(errno)));
  auto json = parsed(path, *text);
  check_origin(path, json, plan_.is_of_recording() ? "replay" : "bench");
  if (!is_sealed(*text))
    throw ConfigError(
        fmt::format("{}: the file was changed after its run (its CRC-32 is wrong); remove the file to repeat the run",
                    path.string()));
  return json;
}

std::string Store::file_of(const Run& run) { return stem_of(run) + ".json"; }

void Store::put(const Run& run, const std::string& results) const {
  write(file_of(run), sealed(results));
  std::error_code none;
  fs::remove(folder_ / (stem_of(run) + kError), none);
}

void Store::put_failure(const Run& run, const std::string& why) const { write(stem_of(run) + kError, why); }

void Store::write(const std::string& name, const std::string& text) const {
  StagedFile file(folder_ / name);
  file.write(text);
  file.commit();
}

}  // namespace rnicsim::sim::sweep
