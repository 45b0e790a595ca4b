// SPDX-License-Identifier: Apache-2.0
#include "sim/config/own_files.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include "sim/config/config_error.h"

namespace rnicsim::sim {
namespace {

namespace fs = std::filesystem;

// Finds `folder` with `file` in it, in the nearest folder above the image.
fs::path beside_image(const fs::path& folder, const char* file, const char* remedy) {
  const fs::path image = own_image();
  std::error_code none;
  fs::path above = image;
  do {
    above = above.parent_path();
    if (fs::exists(above / folder / file, none)) return fs::canonical(above / folder);
  } while (above.has_relative_path());
  throw ConfigError(
      fmt::format("no folder above {} has {}: {}", shown(image.string()), (folder / file).string(), remedy));
}

}  // namespace

fs::path own_image() {
  Dl_info info;
  link_map* map = nullptr;
  const bool found =
      ::dladdr1(reinterpret_cast<void*>(&own_image), &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) != 0;
  const bool is_program = !found || map->l_name[0] == '\0';
  std::error_code none;
  return is_program ? fs::read_symlink("/proc/self/exe", none) : fs::canonical(map->l_name, none);
}

fs::path library_folder() {
  return beside_image("lib/rnicsim", "librnicsim_os.so", "was the program copied alone? docs/install.md");
}

fs::path share_folder() {
  return beside_image("share/rnicsim", "nics",
                      "was the program copied alone? Or name that folder in RNICSIM_DATA; docs/install.md");
}

}  // namespace rnicsim::sim
