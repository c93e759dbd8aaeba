# sardonyx_module(NAME [LIBRARIES ...]): the object library of the folder src/NAME. Files below a
# folder named after an instruction set (avx2, avx512, neon) are compiled for it, and only they.
function(sardonyx_module name)
  cmake_parse_arguments(module "" "" "LIBRARIES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cpp)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    file(GLOB avx2 CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/avx2/*.cpp)
    file(GLOB avx512 CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/avx512/*.cpp)
    set_source_files_properties(${avx2} PROPERTIES COMPILE_OPTIONS "-mavx2;-mfma;-mf16c;-mbmi2")
    # gcc 12 takes the deliberately undefined operand inside its own intrinsics for a mistake.
    set_source_files_properties(${avx512} PROPERTIES COMPILE_OPTIONS
      "-mavx2;-mfma;-mf16c;-mbmi2;-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mavx512vnni;-Wno-maybe-uninitialized")
    list(APPEND sources ${avx2} ${avx512})
  endif()
  if(NOT sources)
    return()
  endif()
  add_library(sardonyx_${name} OBJECT ${sources})
  target_include_directories(sardonyx_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(sardonyx_${name} PUBLIC sardonyx_options ${module_LIBRARIES})
  set_property(GLOBAL APPEND PROPERTY SARDONYX_MODULES sardonyx_${name})
endfunction()

# sardonyx_test(NAME SOURCES ... [LABELS ...]): one doctest program, run by ctest.
function(sardonyx_test name)
  cmake_parse_arguments(test "" "" "SOURCES;LABELS" ${ARGN})
  add_executable(${name} ${test_SOURCES} ${PROJECT_SOURCE_DIR}/tests/unit/main.cpp)
  target_link_libraries(${name} PRIVATE sardonyx_all)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  add_test(NAME ${name} COMMAND ${name})
  if(test_LABELS)
    set_tests_properties(${name} PROPERTIES LABELS "${test_LABELS}")
  endif()
endfunction()
