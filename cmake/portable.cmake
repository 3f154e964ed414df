# The preset `static`: a program that runs on another x86-64 Linux, with a glibc at least as new and
# none of Assay's packages.  glibc itself stays shared: the CUDA driver is opened with dlopen, and
# that has to meet the machine's own libc.  All that has to be carried there, in one folder:
#   cmake --preset static && cmake --build --preset static
#   cmake --install build/static --prefix FOLDER

if(ASSAY_PORTABLE)
    # Archives where the distribution has them; what it has only shared is bundled below.
    list(INSERT CMAKE_FIND_LIBRARY_SUFFIXES 0 .a)
endif()

# assay_portable(TARGET): make this program carry its libraries in lib/ beside itself.
function(assay_portable target)
    if(NOT ASSAY_PORTABLE)
        return()
    endif()
    # The old tag, DT_RPATH, holds for the libraries that the bundled ones need in turn as well.
    target_link_options(${target} PRIVATE -Wl,--disable-new-dtags)
    set_target_properties(${target} PROPERTIES
        BUILD_RPATH "$ORIGIN/lib" INSTALL_RPATH "$ORIGIN/lib")
    add_custom_command(TARGET ${target} POST_BUILD
        COMMAND ${CMAKE_COMMAND} -D PROGRAM=$<TARGET_FILE:${target}>
            -D LIB=$<TARGET_FILE_DIR:${target}>/lib
            -P ${PROJECT_SOURCE_DIR}/cmake/bundle.cmake
        VERBATIM)
    install(TARGETS ${target} DESTINATION .)
    install(DIRECTORY ${CMAKE_BINARY_DIR}/lib ${CMAKE_BINARY_DIR}/corpus DESTINATION .)
    install(DIRECTORY ${CMAKE_BINARY_DIR}/kernels DESTINATION . FILES_MATCHING
        PATTERN *.ptx PATTERN manifest.yaml PATTERN budgets.txt PATTERN CMakeFiles EXCLUDE)
endfunction()

# assay_data(FOLDER): the source's FOLDER, beside the program as well, where it looks for its data:
# a link, or a copy if the program is to be carried elsewhere.
function(assay_data folder)
    if(ASSAY_PORTABLE)
        add_custom_target(data_${folder} ALL
            COMMAND ${CMAKE_COMMAND} -E copy_directory
                ${PROJECT_SOURCE_DIR}/${folder} ${CMAKE_BINARY_DIR}/${folder}
            VERBATIM)
    else()
        file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${folder} ${CMAKE_BINARY_DIR}/${folder} SYMBOLIC)
    endif()
endfunction()
