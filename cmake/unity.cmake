# SPDX-License-Identifier: Apache-2.0
# Joins sources into a single translation unit in the release build: headers take most of the compile time.
#
#   rnicsim_join(TARGETS attached check ... [APART snapshot.cpp ...] [BATCH 8] [WHOLE [WITH roce ...]])
#
# All sources of a target are one unit, or BATCH sources a unit. APART: sources whose local names clash with those of
# others. WHOLE: lets the compiler optimize across the blocks of the data path. WITH: also joins the sources of these
# libraries, which the target links; the linker then takes nothing from the libraries, because the target defines all
# symbols. Call this function in the folder that defines the targets.
function(rnicsim_join)
  cmake_parse_arguments(PARSE_ARGV 0 arg "WHOLE" "BATCH" "TARGETS;APART;WITH")
  if(NOT CMAKE_BUILD_TYPE STREQUAL "Release")
    return()
  endif()
  if(NOT arg_BATCH)
    set(arg_BATCH 0)
  endif()
  set_target_properties(${arg_TARGETS} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${arg_BATCH})
  if(arg_WHOLE)
    # Boost's intrusive containers and pointers would check themselves at every operation.
    foreach(target IN LISTS arg_TARGETS)
      target_compile_definitions(${target} PRIVATE BOOST_DISABLE_ASSERTS)
      # g++ collects garbage earlier: 1.4 GiB of memory instead of 1.7 GiB, for 6% of the time.
      target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-expand=45>)
    endforeach()
  endif()
  foreach(library IN LISTS arg_WITH)
    get_target_property(sources ${library} SOURCES)
    get_target_property(folder ${library} SOURCE_DIR)
    list(TRANSFORM sources PREPEND ${folder}/)
    target_sources(${arg_TARGETS} PRIVATE ${sources})
  endforeach()
  set_target_properties(${arg_TARGETS} PROPERTIES RNICSIM_WITH "${arg_WITH}")
  set_source_files_properties(${arg_APART} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
