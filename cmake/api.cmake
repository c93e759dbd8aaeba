# The C interface, generated from its manifest. Targets that link sardonyx_c_api can include
# "sardonyx/c_api.h"; those inside the library also "capi/api_declarations.h" and
# "capi/api_tables.h". The function tables themselves are SARDONYX_API_TABLES.
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)

set(SARDONYX_API_FOLDER ${PROJECT_BINARY_DIR}/generated)
set(SARDONYX_API_TABLES ${SARDONYX_API_FOLDER}/capi/api_tables.cpp)
set(api_headers
  ${SARDONYX_API_FOLDER}/include/sardonyx/c_api.h
  ${SARDONYX_API_FOLDER}/capi/api_declarations.h
  ${SARDONYX_API_FOLDER}/capi/api_tables.h)
set(api_manifest ${PROJECT_SOURCE_DIR}/src/capi/api.manifest)

add_custom_command(
  OUTPUT ${SARDONYX_API_FOLDER}/api.stamp
  BYPRODUCTS ${api_headers} ${SARDONYX_API_TABLES}
  COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/tools/gen_api.py
    ${api_manifest} ${SARDONYX_API_FOLDER}
  COMMAND ${CMAKE_COMMAND} -E touch ${SARDONYX_API_FOLDER}/api.stamp
  DEPENDS ${api_manifest} ${PROJECT_SOURCE_DIR}/tools/gen_api.py
  COMMENT "Making the C interface from its manifest"
  VERBATIM)
add_custom_target(sardonyx_api_files DEPENDS ${SARDONYX_API_FOLDER}/api.stamp)

add_library(sardonyx_c_api INTERFACE)
add_dependencies(sardonyx_c_api sardonyx_api_files)
target_include_directories(sardonyx_c_api INTERFACE
  ${SARDONYX_API_FOLDER}/include ${SARDONYX_API_FOLDER})
