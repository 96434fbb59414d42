# A room is a folder with one job and one library.  Its doors are the headers that other rooms may include, as
# <weightmill/ROOM/HEADER.h>; everything else in the folder is on nobody else's include path, so the build itself keeps
# the floors of docs/floor-plan.md.
#
#   weightmill_room(codec DOORS codec.h SOURCES decoder.cpp … ROOMS base kernels LINK fmt::fmt-header-only
#                   TESTS decoder_test.cpp … BENCHES codec_bench.cpp)
#
# Makes the static library `weightmill_codec`, the test program `codec_test` and the benchmark program `codec_bench`.
function(weightmill_room name)
  cmake_parse_arguments(ROOM "" "" "DOORS;SOURCES;ROOMS;LINK;PRIVATE_LINK;TESTS;TEST_LINK;BENCHES" ${ARGN})
  set(doors "${PROJECT_BINARY_DIR}/doors/${name}")
  foreach(door IN LISTS ROOM_DOORS)
    file(CONFIGURE OUTPUT "${doors}/weightmill/${name}/${door}"
         CONTENT "#pragma once\n#include \"${CMAKE_CURRENT_SOURCE_DIR}/${door}\"\n" @ONLY)
  endforeach()
  if(ROOM_SOURCES)
    set(scope PUBLIC)
    add_library(weightmill_${name} STATIC ${ROOM_SOURCES})
    target_include_directories(weightmill_${name} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
    target_link_libraries(weightmill_${name} PRIVATE weightmill_flags ${ROOM_PRIVATE_LINK})
  else()
    set(scope INTERFACE)
    add_library(weightmill_${name} INTERFACE)
  endif()
  target_include_directories(weightmill_${name} ${scope} "${doors}")
  list(TRANSFORM ROOM_ROOMS PREPEND weightmill_)
  target_link_libraries(weightmill_${name} ${scope} ${ROOM_ROOMS} ${ROOM_LINK})
  if(WEIGHTMILL_TESTS AND ROOM_TESTS)
    weightmill_test(${name}_test SOURCES ${ROOM_TESTS} LINK weightmill_${name} ${ROOM_PRIVATE_LINK} ${ROOM_TEST_LINK})
    target_include_directories(${name}_test PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
  endif()
  if(WEIGHTMILL_BENCHES AND ROOM_BENCHES)
    add_executable(${name}_bench ${ROOM_BENCHES})
    target_include_directories(${name}_bench PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
    target_link_libraries(${name}_bench PRIVATE weightmill_${name} ${ROOM_PRIVATE_LINK} weightmill_testkit weightmill_flags
                                                benchmark::benchmark_main)
  endif()
endfunction()

# A GoogleTest program that ctest knows case by case.
function(weightmill_test name)
  cmake_parse_arguments(TEST "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${TEST_SOURCES})
  target_link_libraries(${name} PRIVATE ${TEST_LINK} weightmill_testkit weightmill_flags GTest::gmock_main)
  target_compile_definitions(${name} PRIVATE WEIGHTMILL_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 600)
endfunction()

# A libFuzzer target (preset `fuzz`, clang) or, with any other compiler, a program that replays the files it is given.
function(weightmill_fuzz name)
  cmake_parse_arguments(FUZZ "" "" "SOURCES;LINK" ${ARGN})
  add_executable(fuzz_${name} ${FUZZ_SOURCES})
  target_link_libraries(fuzz_${name} PRIVATE ${FUZZ_LINK} weightmill_flags)
  if(WEIGHTMILL_FUZZ)
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(fuzz_${name} PRIVATE "${PROJECT_SOURCE_DIR}/fuzz/replay_main.cpp")
    if(WEIGHTMILL_TESTS)
      add_test(NAME fuzz_replay_${name} COMMAND fuzz_${name} "${PROJECT_SOURCE_DIR}/fuzz/seeds/${name}")
    endif()
  endif()
endfunction()
