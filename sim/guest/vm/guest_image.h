// SPDX-License-Identifier: Apache-2.0
// Kernel and initramfs of the guests in memory files: no file remains, in whatever way the launcher ends.
#pragma once

#include <string>
#include <vector>

#include "sim/os/descriptor.h"

namespace rnicsim::sim {

struct ImageOptions {
  std::string cache;              // folder of the cached images; empty: the user's cache folder
  std::string kernel;             // release; empty: Debian's current kernel
  std::vector<std::string> with;  // sections of sim/guest/image/contents
  std::vector<std::string> add;   // "PATH[=WHERE]"
  std::string driver = "rnic";    // or "none"
  bool renew = false;
};

struct GuestImage {
  Descriptor kernel, initramfs;
};

// sim/guest/image/make_image failed, and has printed the reason.
struct ImageFailed {
  int status;
};

// ImageFailed; ConfigError: make_image cannot be started.
GuestImage make_guest_image(const ImageOptions& options);

}  // namespace rnicsim::sim
