# cmake -DINPUT=a -DOUTPUT=b -P bytes.cmake: the bytes of a file as the elements of a C array.
file(READ ${INPUT} hex HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
file(WRITE ${OUTPUT} "${bytes}\n")
