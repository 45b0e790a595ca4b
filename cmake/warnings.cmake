# SPDX-License-Identifier: Apache-2.0
add_compile_options(-Wall -Wextra -Wpedantic -Wno-missing-field-initializers)
# CI must see each warning. Another compiler has other warnings, which must not stop a user's build.
option(RNICSIM_WARNINGS_ARE_ERRORS "Fail at warnings of GCC 12, the compiler of CI" OFF)
if(RNICSIM_WARNINGS_ARE_ERRORS AND CMAKE_CXX_COMPILER_ID STREQUAL GNU
    AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12 AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  add_compile_options(-Werror)
endif()
# Paths in asserts and reports are relative to the project: installed files do not contain the build's path.
add_compile_options(-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
if(RNICSIM_SANITIZE)
  # Only code inside the simulator: a sanitized library cannot be preloaded into a stock program.
  set(RNICSIM_SANITIZER_FLAGS -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
endif()
