# Several sources as one translation unit, in the release build: most of a compiler's time there is their headers'.
#
#   rnicsim_join(TARGETS attached check ... [APART snapshot.cpp ...])
#
# APART: sources whose local names are those of others. WHOLE: all others of a target, so that the compiler sees through
# the blocks of the data path. Call it where the targets are made.
function(rnicsim_join)
  cmake_parse_arguments(PARSE_ARGV 0 arg "WHOLE" "" "TARGETS;APART")
  if(NOT CMAKE_BUILD_TYPE STREQUAL "Release")
    return()
  endif()
  set_target_properties(${arg_TARGETS} PROPERTIES UNITY_BUILD ON)
  if(arg_WHOLE)
    set_target_properties(${arg_TARGETS} PROPERTIES UNITY_BUILD_BATCH_SIZE 0)
  endif()
  set_source_files_properties(${arg_APART} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
