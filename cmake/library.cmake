# The shared library: everything in one file, rules and targets too. Its objects are those of the program. And what
# `cmake --install` puts beside it: headers, find_package(ascend_fuse), pkg-config.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
include(cmake/headers.cmake)

file(GLOB C_SOURCES CONFIGURE_DEPENDS tools/c/*.cc)
add_library(ascend_fuse SHARED ${C_SOURCES} $<TARGET_OBJECTS:af_proto> $<TARGET_OBJECTS:af_ir>
            $<TARGET_OBJECTS:af_patterns> $<TARGET_OBJECTS:af_patterns_objects> $<TARGET_OBJECTS:af_passes>)
set(ABSL_OF_HEADERS absl::status absl::statusor absl::flat_hash_map absl::flat_hash_set absl::inlined_vector absl::span
    absl::function_ref)
set(EXPORTS ${CMAKE_SOURCE_DIR}/tools/c/exports.map)
set(OF_HEADERS PUBLIC)
if(ASCEND_FUSE_PORTABLE)
  set(EXPORTS ${CMAKE_SOURCE_DIR}/tools/c/c_exports.map)
  set(OF_HEADERS PRIVATE)
endif()
target_link_libraries(ascend_fuse ${OF_HEADERS} ${ABSL_OF_HEADERS} PRIVATE $<BUILD_INTERFACE:af_options> protobuf::libprotobuf fmt::fmt
                      Threads::Threads)
target_include_directories(ascend_fuse INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}> $<BUILD_INTERFACE:${CMAKE_BINARY_DIR}/generated>
                           $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/ascend_fuse>
                           $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(ascend_fuse INTERFACE cxx_std_20)
target_link_options(ascend_fuse PRIVATE LINKER:--version-script,${EXPORTS})
if(NOT ASCEND_FUSE_SANITIZE)  # a sanitizer's own functions come with the program
  target_link_options(ascend_fuse PRIVATE LINKER:--no-undefined)
endif()
# A library of another 0.x has other classes: the C++ interface promises nothing across them.
set_target_properties(ascend_fuse PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
                      LINK_DEPENDS ${EXPORTS})
if(ASCEND_FUSE_PORTABLE)  # tools/release packs what is built
  return()
endif()

public_headers(PUBLIC_HEADERS passes/optimize.h passes/option_names.h passes/core/pass.h passes/core/workspace.h passes/optimize_passes.h passes/report/report.h passes/report/report_html.h
               passes/analyze_model.h passes/check_model.h passes/report/atc_command.h ir/onnx/load.h ir/onnx/save.h ir/text/parser.h ir/text/printer.h patterns/codes.h)
foreach(header IN LISTS PUBLIC_HEADERS)
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ascend_fuse/${folder})
endforeach()
install(FILES ${CMAKE_BINARY_DIR}/generated/ascend_fuse_version.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ascend_fuse)
install(FILES tools/c/ascend_fuse.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS ascend_fuse EXPORT ascend_fuse LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
set(PACKAGE_FOLDER ${CMAKE_INSTALL_LIBDIR}/cmake/ascend_fuse)
install(EXPORT ascend_fuse NAMESPACE ascend_fuse:: DESTINATION ${PACKAGE_FOLDER})
configure_package_config_file(cmake/ascend_fuse-config.cmake.in ascend_fuse-config.cmake INSTALL_DESTINATION ${PACKAGE_FOLDER})
write_basic_package_version_file(ascend_fuse-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/ascend_fuse-config.cmake ${CMAKE_BINARY_DIR}/ascend_fuse-config-version.cmake
        DESTINATION ${PACKAGE_FOLDER})
# For pkg-config: ascend_fuse is the interface in C, ascend_fuse_cxx the one in C++, which needs Abseil.
list(TRANSFORM ABSL_OF_HEADERS REPLACE "absl::" "absl_" OUTPUT_VARIABLE PC_REQUIRES)
string(REPLACE ";" " " PC_REQUIRES "${PC_REQUIRES}")
file(RELATIVE_PATH PC_TO_INCLUDE /${CMAKE_INSTALL_LIBDIR}/pkgconfig /${CMAKE_INSTALL_INCLUDEDIR})
foreach(name ascend_fuse ascend_fuse_cxx)
  configure_file(cmake/${name}.pc.in ${name}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()

# The man page and completions, by the program itself.
set(DOCUMENTS ${CMAKE_BINARY_DIR}/documents)
file(MAKE_DIRECTORY ${DOCUMENTS})
add_custom_command(TARGET ascend-fuse POST_BUILD
                   COMMAND ascend-fuse man > ${DOCUMENTS}/ascend-fuse.1
                   COMMAND ascend-fuse completion bash > ${DOCUMENTS}/ascend-fuse
                   COMMAND ascend-fuse completion zsh > ${DOCUMENTS}/_ascend-fuse
                   COMMAND ascend-fuse completion fish > ${DOCUMENTS}/ascend-fuse.fish)
install(FILES ${DOCUMENTS}/ascend-fuse.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${DOCUMENTS}/ascend-fuse DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${DOCUMENTS}/_ascend-fuse DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
install(FILES ${DOCUMENTS}/ascend-fuse.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

install(TARGETS ascend-fuse RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY tools/python/ascend_fuse DESTINATION ${CMAKE_INSTALL_DATADIR}/ascend-fuse/python FILES_MATCHING PATTERN "*.py")

# `cpack` in the build folder: a Debian package of all that is installed.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME ascend-fuse)
set(CPACK_PACKAGE_CONTACT "the authors of ascend-fuse <ascend-fuse@example.org>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "exported ONNX in, the same model with Ascend NPU nodes out")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libabsl-dev, python3")  # headers in C++; verify
include(CPack)
