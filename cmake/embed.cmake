# Data files become constants of a library: arrays of {path, text}.

# embed_files(TARGET SYMBOL GLOBS...): the files that match, as an array of {path, text} named
# ascend_fuse::embedded::SYMBOL, declared in the generated header "embedded/SYMBOL.h".
function(embed_files target symbol)
  file(GLOB files CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR} ${ARGN})
  embed_in(${target} ${symbol} ${CMAKE_SOURCE_DIR} ${files})
endfunction()

# embed_message(TARGET SYMBOL INPUT PROTO MESSAGE): the message in the text file INPUT, encoded when the program is built:
# to read protobuf's text form takes ten times as long as the binary one, in every run of the program. The path in the
# array is that of INPUT with .binpb for its ending.
function(embed_message target symbol input proto message)
  string(REGEX REPLACE "[.][^.]*$" ".binpb" output ${input})
  set(directory ${CMAKE_BINARY_DIR}/generated/encoded)
  get_filename_component(folder ${directory}/${output} DIRECTORY)
  file(MAKE_DIRECTORY ${folder})
  add_custom_command(
    OUTPUT ${directory}/${output}
    COMMAND ${CMAKE_COMMAND} -DROOT=${CMAKE_SOURCE_DIR} -DINPUT=${input} -DPROTO=${proto} -DMESSAGE=${message}
            -DPROTOC=$<TARGET_FILE:protobuf::protoc> -DOUTPUT=${directory}/${output}
            -P ${CMAKE_SOURCE_DIR}/cmake/encode_script.cmake
    DEPENDS ${CMAKE_SOURCE_DIR}/${input} ${CMAKE_SOURCE_DIR}/${proto} ${CMAKE_SOURCE_DIR}/cmake/encode_script.cmake
    VERBATIM)
  embed_in(${target} ${symbol} ${directory} ${output})
endfunction()

# embed_in(TARGET SYMBOL ROOT FILES...): the files, named relative to ROOT.
function(embed_in target symbol root)
  set(paths)
  foreach(file IN LISTS ARGN)
    list(APPEND paths ${root}/${file})
  endforeach()
  set(directory ${CMAKE_BINARY_DIR}/generated/embedded)
  file(MAKE_DIRECTORY ${directory})
  string(REPLACE ";" "|" joined "${ARGN}")
  add_custom_command(
    OUTPUT ${directory}/${symbol}.cc ${directory}/${symbol}.h
    COMMAND ${CMAKE_COMMAND} -DROOT=${root} "-DFILES=${joined}" -DSYMBOL=${symbol}
            -DDIRECTORY=${directory} -P ${CMAKE_SOURCE_DIR}/cmake/embed_script.cmake
    DEPENDS ${paths} ${CMAKE_SOURCE_DIR}/cmake/embed_script.cmake
    VERBATIM)
  target_sources(${target} PRIVATE ${directory}/${symbol}.cc ${directory}/${symbol}.h)
  target_include_directories(${target} PRIVATE ${CMAKE_BINARY_DIR}/generated)
endfunction()
