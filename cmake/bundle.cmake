# cmake -D PROGRAM=FILE -D LIB=FOLDER -P bundle.cmake
# Copy into FOLDER all shared libraries that the program needs, except those of glibc.

file(REMOVE_RECURSE ${LIB}) # or the program would find, and keep, the copies of last time
file(MAKE_DIRECTORY ${LIB})
file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${PROGRAM} RESOLVED_DEPENDENCIES_VAR libraries
    PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|mvec|dl|rt|pthread|resolv|util)\\.so")
foreach(library IN LISTS libraries)
    get_filename_component(name ${library} NAME) # the soname: it may be a link to another name
    file(COPY_FILE ${library} ${LIB}/${name})
endforeach()
