# Writes OUTPUT: the message in the text file INPUT, of type MESSAGE of the file PROTO, in protobuf's binary form. Run by
# embed_message.
execute_process(COMMAND ${PROTOC} --encode=${MESSAGE} -I${ROOT} ${ROOT}/${PROTO} INPUT_FILE ${ROOT}/${INPUT}
                OUTPUT_FILE ${OUTPUT} RESULT_VARIABLE result ERROR_VARIABLE error)
if(NOT result EQUAL 0)
  file(REMOVE ${OUTPUT})
  message(FATAL_ERROR "${INPUT} is no ${MESSAGE}: ${error}")
endif()
