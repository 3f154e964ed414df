#!/bin/sh
# check_imports.sh ROOT: fail on an #include against the direction in which rooms may know others.
#
# A room is a top-level folder; device/ptx is one of its own.  The truth (oracle) and the subject's
# machine (device) must have nothing in common but base: a shared mistake would cancel out.
set -eu
cd "$1"

find . -name .git -prune -o -name build -prune -o -type f -print | sed 's,^\./,,' | sort |
    awk '
BEGIN {
    may["base"] = ""
    may["oracle"] = "base"
    may["device"] = "base"
    may["device/ptx"] = "base device"
    may["kernels"] = "base oracle device"
    may["gate"] = "base oracle device kernels"
    may["cli"] = may["fuzz"] = "base oracle device device/ptx kernels gate"
    may["tests"] = "base oracle device device/ptx kernels gate cli fuzz"

    # One file that may do more than its room: entries and parameters of an image for the driver are
    # read by the parser of device/ptx, so that both devices describe an image in the same way.
    except["device/cuda.c", "device/ptx/ptx.h"] = 1
}

function room_of(path) {
    if (path ~ /^device\/ptx\//)
        return "device/ptx"
    return path ~ /\// ? substr(path, 1, index(path, "/") - 1) : "."
}

function folder_of(path) {
    return path ~ /\// ? substr(path, 1, match(path, /\/[^\/]*$/)) : ""
}

# a/./b/../c as a/c
function normal(path,    part, n, i, kept, k) {
    n = split(path, part, "/")
    k = 0
    for (i = 1; i <= n; i++) {
        if (part[i] == ".." && k > 0)
            k--
        else if (part[i] != "." && part[i] != "")
            kept[++k] = part[i]
    }
    path = kept[1]
    for (i = 2; i <= k; i++)
        path = path "/" kept[i]
    return path
}

# The file of the tree that the compiler takes, or the name itself where the tree has no such file.
function resolve(from, name, quoted) {
    if (quoted && (normal(folder_of(from) name) in tree))
        return normal(folder_of(from) name)
    return normal(name)
}

function bad(message) {
    print file ":" line ": " message
    failed = 1
}

function check_include(text,    name, quoted, target, from, to) {
    sub(/^[ \t]*#[ \t]*include[ \t]*/, "", text)
    quoted = text ~ /^"/
    if (!quoted && text !~ /^</) {
        bad("an #include of a macro hides what it includes")
        return
    }
    name = substr(text, 2, match(substr(text, 2), /[">]/) - 1)
    if (name == "cuda.h" && file != "device/cuda.c")
        bad("only device/cuda.c may include cuda.h: all else builds and runs without a GPU")
    target = resolve(file, name, quoted)
    if (!quoted && !(target in tree))
        return
    from = room_of(file)
    to = room_of(target)
    if (from == to || to == "." || !(to in may) || (file, target) in except)
        return
    if (index(" " may[from] " ", " " to " ") == 0)
        bad(from " must not include " target)
}

{
    tree[$0] = 1
    if ($0 ~ /\.(c|h|cu|cuh|def|inc)$/)
        sources[++count] = $0
}

END {
    for (i = 1; i <= count; i++) {
        file = sources[i]
        line = 0
        if (!(room_of(file) in may)) {
            bad("no room for this file: give its folder a line in check_imports.sh")
            continue
        }
        while ((got = (getline text < file)) > 0) {
            line++
            if (text ~ /^[ \t]*#[ \t]*include/)
                check_include(text)
            if (text ~ /"libcuda/ && file != "device/cuda.c" && room_of(file) != "tests")
                bad("only device/cuda.c may name libcuda")
        }
        if (got < 0)
            bad("cannot be read")
        close(file)
    }
    if (count == 0) {
        print "no sources found"
        failed = 1
    }
    print count + 0 " sources " (failed ? "break" : "keep") " the import direction"
    exit failed
}'
