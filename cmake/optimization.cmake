# SPDX-License-Identifier: Apache-2.0
# Code that a run executes once: less optimization, which costs a quarter of the compile time.
function(rnicsim_optimize_less)
  foreach(target IN LISTS ARGV)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  endforeach()
endfunction()
