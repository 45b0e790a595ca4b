# SPDX-License-Identifier: Apache-2.0
add_compile_options(-Wall -Wextra -Wpedantic -Wno-missing-field-initializers)
# Paths in asserts and reports are relative to the project: installed files do not contain the build's path.
add_compile_options(-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
if(RNICSIM_SANITIZE)
  # Only code inside the simulator: a sanitized library cannot be preloaded into a stock program.
  set(RNICSIM_SANITIZER_FLAGS -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
endif()
