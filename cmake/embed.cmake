# embed_message(TARGET SYMBOL FILE PROTO MESSAGE): the text of a protobuf message, encoded when the program is built, as
# the one file of ascend_fuse::embedded::SYMBOL. Text that does not parse is an error of the build, with its line.
function(embed_message target symbol file proto message)
  set(directory ${CMAKE_BINARY_DIR}/generated/embedded)
  file(MAKE_DIRECTORY ${directory})
  add_custom_command(
    OUTPUT ${directory}/${symbol}.cc ${directory}/${symbol}.h
    COMMAND protobuf::protoc -I${CMAKE_SOURCE_DIR} --encode=${message} ${CMAKE_SOURCE_DIR}/${proto}
            < ${CMAKE_SOURCE_DIR}/${file} > ${directory}/${symbol}.bin
    COMMAND ${CMAKE_COMMAND} -DROOT=${directory} -DFILES=${symbol}.bin -DSYMBOL=${symbol} -DDIRECTORY=${directory}
            -P ${CMAKE_SOURCE_DIR}/cmake/embed_script.cmake
    DEPENDS ${CMAKE_SOURCE_DIR}/${file} ${CMAKE_SOURCE_DIR}/${proto} ${CMAKE_SOURCE_DIR}/cmake/embed_script.cmake
    VERBATIM)
  target_sources(${target} PRIVATE ${directory}/${symbol}.cc ${directory}/${symbol}.h)
  target_include_directories(${target} PRIVATE ${CMAKE_BINARY_DIR}/generated)
endfunction()

# embed_files(TARGET SYMBOL GLOBS...): the files that match, as an array of {path, text} named
# ascend_fuse::embedded::SYMBOL, declared in the generated header "embedded/SYMBOL.h".
function(embed_files target symbol)
  file(GLOB files CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR} ${ARGN})
  set(paths)
  foreach(file IN LISTS files)
    list(APPEND paths ${CMAKE_SOURCE_DIR}/${file})
  endforeach()
  set(directory ${CMAKE_BINARY_DIR}/generated/embedded)
  file(MAKE_DIRECTORY ${directory})
  string(REPLACE ";" "|" joined "${files}")
  add_custom_command(
    OUTPUT ${directory}/${symbol}.cc ${directory}/${symbol}.h
    COMMAND ${CMAKE_COMMAND} -DROOT=${CMAKE_SOURCE_DIR} "-DFILES=${joined}" -DSYMBOL=${symbol}
            -DDIRECTORY=${directory} -P ${CMAKE_SOURCE_DIR}/cmake/embed_script.cmake
    DEPENDS ${paths} ${CMAKE_SOURCE_DIR}/cmake/embed_script.cmake
    VERBATIM)
  target_sources(${target} PRIVATE ${directory}/${symbol}.cc ${directory}/${symbol}.h)
  target_include_directories(${target} PRIVATE ${CMAKE_BINARY_DIR}/generated)
endfunction()
