add_compile_options(-Wall -Wextra -Wpedantic -Wno-missing-field-initializers)
if(RNICSIM_SANITIZE)
  # Only what runs inside the simulator: a sanitized library cannot be preloaded into a stock program.
  set(RNICSIM_SANITIZER_FLAGS -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
endif()
