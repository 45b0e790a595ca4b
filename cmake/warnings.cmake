add_compile_options(-Wall -Wextra -Wpedantic -Wno-missing-field-initializers)
# What asserts and reports name, relative to the project: nothing that is installed knows where it was built.
add_compile_options(-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
if(RNICSIM_SANITIZE)
  # Only what runs inside the simulator: a sanitized library cannot be preloaded into a stock program.
  set(RNICSIM_SANITIZER_FLAGS -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
endif()
