// Kernel and initramfs of the guests, in memory: no file is left behind, however the launcher ends.
#pragma once

#include <string>
#include <vector>

#include "sim/descriptor.h"

namespace rnicsim::sim {

struct ImageOptions {
  std::string cache;              // the folder of images that were made; empty: the user's
  std::string kernel;             // release; empty: Debian's present one
  std::vector<std::string> with;  // sections of sim/guest/image/contents
  std::vector<std::string> add;   // "PATH[=WHERE]"
  std::string driver = "rnic";    // or "none"
  bool renew = false;
};

struct GuestImage {
  Descriptor kernel, initramfs;
};

// The maker of images, sim/guest/image/make_image, has said in a line what was missing.
struct ImageFailed {
  int status;
};

// Throws ImageFailed; ConfigError when the maker cannot be started.
GuestImage make_guest_image(const ImageOptions& options);

}  // namespace rnicsim::sim
