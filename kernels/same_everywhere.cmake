# cmake -DPTX=FILE -DROOT=FOLDER -P same_everywhere.cmake
# Make an image the same wherever it is built.  nvcc writes absolute paths into .file lines: make
# them relative to the source root, and the toolkit's own headers to its include folder.  And it
# names inlined functions with a hash of the source's path in them: drop those names, which only a
# debugger reads; file and line of each .loc stay.
file(READ ${PTX} text)
string(REPLACE "\"${ROOT}/kernels/" "\"kernels/" text "${text}")
string(REPLACE "\"${ROOT}/tests/" "\"tests/" text "${text}")
string(REGEX REPLACE "\"/[^\"\n]*/include/" "\"" text "${text}")
string(REGEX REPLACE ", function_name [^\n]*" "" text "${text}")
string(REGEX REPLACE "\t\\.section\t\\.debug_str\n\t{[^}]*}\n" "" text "${text}")
file(WRITE ${PTX} "${text}")
