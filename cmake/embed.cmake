# embed_files(TARGET SYMBOL GLOBS...): the files that match, as an array of {path, text} named
# ascend_fuse::embedded::SYMBOL, declared in the generated header "embedded/SYMBOL.h".
function(embed_files target symbol)
  file(GLOB files CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR} ${ARGN})
  set(paths)
  foreach(file IN LISTS files)
    list(APPEND paths ${CMAKE_SOURCE_DIR}/${file})
  endforeach()
  embed(${target} ${symbol} ${CMAKE_SOURCE_DIR} "${files}" "${paths}")
endfunction()

# The files, relative to `root`; `paths` are the same, in full.
function(embed target symbol root files paths)
  set(directory ${CMAKE_BINARY_DIR}/generated/embedded)
  file(MAKE_DIRECTORY ${directory})
  string(REPLACE ";" "|" joined "${files}")
  add_custom_command(
    OUTPUT ${directory}/${symbol}.cc ${directory}/${symbol}.h
    COMMAND ${CMAKE_COMMAND} -DROOT=${root} "-DFILES=${joined}" -DSYMBOL=${symbol}
            -DDIRECTORY=${directory} -P ${CMAKE_SOURCE_DIR}/cmake/embed_script.cmake
    DEPENDS ${paths} ${CMAKE_SOURCE_DIR}/cmake/embed_script.cmake
    VERBATIM)
  target_sources(${target} PRIVATE ${directory}/${symbol}.cc ${directory}/${symbol}.h)
  target_include_directories(${target} PRIVATE ${CMAKE_BINARY_DIR}/generated)
endfunction()

# embed_messages(TARGET SYMBOL PROTO GLOBS...): the same of files in protobuf's text format, each encoded as the message
# that its line "# proto-message:" names. A file that does not parse stops the build, and loading costs no parsing.
function(embed_messages target symbol proto)
  file(GLOB files CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR} ${ARGN})
  set(root ${CMAKE_BINARY_DIR}/generated/encoded)
  set(encoded)
  foreach(file IN LISTS files)
    set(source ${CMAKE_SOURCE_DIR}/${file})
    get_filename_component(folder ${root}/${file} DIRECTORY)
    file(MAKE_DIRECTORY ${folder})
    add_custom_command(
      OUTPUT ${root}/${file}
      COMMAND ${CMAKE_COMMAND} -DPROTOC=$<TARGET_FILE:protobuf::protoc> -DROOT=${CMAKE_SOURCE_DIR} -DPROTO=${proto}
              -DSOURCE=${source} -DOUTPUT=${root}/${file} -P ${CMAKE_SOURCE_DIR}/cmake/encode_script.cmake
      DEPENDS ${source} ${CMAKE_SOURCE_DIR}/${proto} ${CMAKE_SOURCE_DIR}/cmake/encode_script.cmake
      VERBATIM)
    list(APPEND encoded ${root}/${file})
  endforeach()
  embed(${target} ${symbol} ${root} "${files}" "${encoded}")
endfunction()
