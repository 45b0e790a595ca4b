// SPDX-License-Identifier: Apache-2.0
#include "sim/guest/vm/guest_image.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "sim/config/config_error.h"
#include "sim/config/own_files.h"
#include "sim/guest/vm/child.h"
#include "sim/os/throw_errno.h"

namespace rnicsim::sim {
namespace {

Descriptor memory_file(const char* name) {
  Descriptor file(::memfd_create(name, MFD_CLOEXEC));
  if (!file) throw_errno("memfd_create");
  return file;
}

std::string path_of(const Descriptor& file) { return fmt::format("/proc/self/fd/{}", file.get()); }

// The folder with the sources of the Linux driver. In an installation it is beside the image's maker.
std::filesystem::path driver_folder() {
  const auto installed = share_folder() / "linux";
  return std::filesystem::exists(installed) ? installed : share_folder() / "../verbs/linux";
}

}  // namespace

GuestImage make_guest_image(const ImageOptions& options) {
  GuestImage image{memory_file("kernel"), memory_file("initramfs")};
  ChildProgram maker;
  maker.command = {"python3",        (share_folder() / "guest/image/make_image").string(),
                   "--agent",        (library_folder() / "rnicsim_guest_agent").string(),
                   "--kernel-to",    path_of(image.kernel),
                   "--initramfs-to", path_of(image.initramfs)};
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) maker.command.push_back(fmt::format("{}={}", option, value));
  };
  add("--cache", options.cache);
  add("--kernel", options.kernel);
  for (const auto& section : options.with) add("--with", section);
  for (const auto& file : options.add) add("--add", file);
  if (options.driver == "rnic") {
    add("--driver", driver_folder().string());
    add("--provider", (library_folder() / "guest/librnic-rdmav34.so").string());
  }
  if (options.renew) maker.command.emplace_back("--renew");
  maker.last_signal = SIGTERM;  // make_image removes its unfinished files then
  maker.inherited = {image.kernel.get(), image.initramfs.get()};
  try {
    const int status = Child(maker).wait();
    if (status != 0) throw ImageFailed{WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)};
  } catch (const std::system_error& error) {
    throw ConfigError(
        fmt::format("python3, which makes the guests' image, cannot be started: {}", error.code().message()));
  }
  return image;
}

}  // namespace rnicsim::sim
