# `cmake --install`: the library, its header, the command, a CMake package and a pkg-config file.
include(CMakePackageConfigHelpers)
set(CMAKE_INSTALL_LIBDIR lib CACHE PATH "Folder of libraries below the prefix")
include(GNUInstallDirs)

if(NOT TARGET onnxruntime)
  return()
endif()

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/Sardonyx)
set_target_properties(onnxruntime PROPERTIES EXPORT_NAME sardonyx)
target_include_directories(onnxruntime INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
install(TARGETS onnxruntime EXPORT SardonyxTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
foreach(program sardonyx ep_weight_sharing_ctx_gen)
  if(TARGET ${program})
    set_target_properties(${program} PROPERTIES
      INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endforeach()
if(TARGET sardonyx_plugin)
  install(TARGETS sardonyx_plugin LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(EXPORT SardonyxTargets NAMESPACE Sardonyx:: DESTINATION ${package_folder})
install(FILES ${SARDONYX_API_FOLDER}/include/sardonyx/c_api.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sardonyx)

configure_package_config_file(${PROJECT_SOURCE_DIR}/packaging/SardonyxConfig.cmake.in
  ${PROJECT_BINARY_DIR}/SardonyxConfig.cmake INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/SardonyxConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/SardonyxConfig.cmake
  ${PROJECT_BINARY_DIR}/SardonyxConfigVersion.cmake DESTINATION ${package_folder})

configure_file(${PROJECT_SOURCE_DIR}/packaging/sardonyx.pc.in
  ${PROJECT_BINARY_DIR}/sardonyx.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/sardonyx.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/THIRD_PARTY_NOTICES.md
  DESTINATION ${CMAKE_INSTALL_DOCDIR})
