# Several sources as one translation unit, in the release build: most of a compiler's time there is their headers'.
#
#   rnicsim_join(TARGETS attached check ... [APART snapshot.cpp ...] [WHOLE [WITH roce ...]])
#
# APART: sources whose local names are those of others. WHOLE: all others of a target, so that the compiler sees through
# the blocks of the data path. WITH: those of these libraries, too, which the target links; a linker takes from them
# only what it has not found in the target, which is nothing. Call it where the targets are made.
function(rnicsim_join)
  cmake_parse_arguments(PARSE_ARGV 0 arg "WHOLE" "" "TARGETS;APART;WITH")
  if(NOT CMAKE_BUILD_TYPE STREQUAL "Release")
    return()
  endif()
  set_target_properties(${arg_TARGETS} PROPERTIES UNITY_BUILD ON)
  if(arg_WHOLE)
    set_target_properties(${arg_TARGETS} PROPERTIES UNITY_BUILD_BATCH_SIZE 0)
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
