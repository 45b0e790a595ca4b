# Several sources as one translation unit, in the release build: most of a compiler's time there is their headers'.
#
#   rnicsim_join(TARGETS attached check ... [APART snapshot.cpp ...] [BATCH 8] [WHOLE [WITH roce ...]])
#
# All sources of a target are one unit, or so many at a time (BATCH). APART: sources whose local names are those of
# others. WHOLE: for the compiler to see through the blocks of the data path. WITH: those of these libraries, too, which
# the target links; a linker takes from them only what it has not found in the target, which is nothing. Call it where
# the targets are made.
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
    # Boost's lists and pointers would look at themselves at every step.
    foreach(target IN LISTS arg_TARGETS)
      target_compile_definitions(${target} PRIVATE BOOST_DISABLE_ASSERTS)
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
