#!/bin/sh
# test_run.sh RUN: the script `run` in a tree of its own, with stand-ins for all that it calls: what
# it installs, when it leaves set-up alone, how it fails, and that the program's streams and exit
# code pass through.
set -u
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failures=0
mkdir "$tree/bin" "$tree/caller"
cp "$1" "$tree/run"
echo '{}' >"$tree/CMakePresets.json"

# stand_in NAME: a command that notes how it was called, then does what stdin says.
stand_in() {
    { printf '#!/bin/sh\necho "%s $*" >>"%s/calls"\n' "$1" "$tree"; cat; } >"$tree/bin/$1"
    chmod +x "$tree/bin/$1"
}

# The packages that are installed stand in the file `installed`.
stand_in dpkg-query <<END
sed 's/^/installed /' "$tree/installed"
END
stand_in apt-get <<END
[ ! -e "$tree/offline" ] || { echo 'cannot resolve'; exit 100; }
case " \$* " in
*' install '*) for word; do echo "\$word"; done | grep -v '^-' >>"$tree/installed" ;;
esac
END
stand_in apt-cache <<END
case \$1 in
depends) printf 'clang\n  Depends: clang-17\n' ;;
policy) echo '  Candidate: 1.0' ;;
esac
END
stand_in id <<END
cat "$tree/uid"
END
stand_in sudo <<END
exit 1
END
stand_in nvcc <<END
case \$1 in
--version) echo 'Cuda compilation tools, release 13.0, V13.0.88' ;;
*) exit 0 ;;
esac
END
stand_in cmake <<END
: >"$tree/build/build.ninja"
END
# Builds a program that tells its arguments, its folder and its input, and exits with 7.
stand_in ninja <<END
case " \$* " in
*' -n '*)
    [ ! -e "$tree/build/assay" ] || [ -e "$tree/broken" ] || echo 'ninja: no work to do.'
    exit 0
    ;;
esac
[ ! -e "$tree/broken" ] || { echo 'FAILED: it.o'; echo 'it.c:1: error: no'; exit 1; }
printf '#!/bin/sh\nprintf "<%%s>" "\$@"\npwd\ncat\nexit 7\n' >"$tree/build/assay"
chmod +x "$tree/build/assay"
END
stand_in ctest <<END
exit 8
END

# go ARGUMENT...: call run from another folder; sets code, output (stdout), errors and calls.
go() {
    rm -f "$tree/calls"
    code=0
    output=$(cd "$tree/caller" && echo 'the input' |
        PATH=$tree/bin:$PATH ASSAY_NVCC=$tree/bin/nvcc "$tree/run" "$@" 2>"$tree/errors") || code=$?
    errors=$(cat "$tree/errors")
    calls=$(cat "$tree/calls" 2>/dev/null)
}

# check WHAT TEXT PATTERN: the text must match the shell pattern.
check() {
    # shellcheck disable=SC2254 # it is a pattern
    case $2 in
    $3) ;;
    *)
        printf 'FAILED: %s: expected %s, found\n%s\n' "$1" "$3" "$2"
        failures=$((failures + 1))
        ;;
    esac
}

go
check 'usage' "$code $output" '0 usage: ./run VERB*'
go --help
check 'usage' "$code $output" '0 usage: ./run VERB*'

# A user without root is told one command, and nothing is done.
echo 1000 >"$tree/uid"
: >"$tree/installed"
go gate
check 'no root: exit code' "$code" 3
check 'no root: the command' "$errors" '*: sudo apt-get update && *install *libmpfr-dev*'
check 'no root: nothing is done' "$(grep -cE '^(apt-get|cmake|ninja) ' "$tree/calls")" 0
check 'no root: no output' "$output" ''

# Root installs what is missing, and only that.
echo 0 >"$tree/uid"
printf '%s\n' gcc cmake libgmp-dev >"$tree/installed"
touch "$tree/offline"
go gate
check 'offline: exit code' "$code" 3
check 'offline: the reason' "$errors" '*cannot resolve*apt-get could not install*libmpfr-dev*'
rm "$tree/offline"
go gate -k 'a b' --json
check 'install: what is missing' "$calls" '*apt-get *install *g++ *libclang-rt-17-dev*'
check 'install: not what is there' "$(grep -c ' install .* libgmp-dev' "$tree/calls")" 0
check 'install: preset and compiler' "$calls" "*cmake *--preset dev*-DASSAY_NVCC=$tree/bin/nvcc*"
check 'program: exit code' "$code" 7
check 'program: arguments, folder, input' "$output" "<gate><-k><a b><--json>$tree/caller
the input"

# All is there: neither set-up nor build is touched, and nothing is said.
go list
check 'second run: calls' "$calls" 'ninja * -n'
check 'second run: quiet' "$errors" ''
check 'second run: program' "$code $output" '7 <list>*'
go build
check 'build: stops' "$code$output" 0
go test -L unit
check 'test: ctest' "$code $calls" '8 *ctest *--output-on-failure *-L unit'

# A change of the presets sets up again; a package that is there is not installed again.
echo '{"version": 3}' >"$tree/CMakePresets.json"
go build
check 'new presets: configures' "$code $calls" '0 *cmake *'
check 'new presets: installs nothing' "$(grep -c ' install ' "$tree/calls")" 0

# A build that fails shows why, does not run the old program, and has the set-up looked at again.
touch "$tree/broken"
go gate
check 'broken: exit code' "$code" 3
check 'broken: the message' "$errors" '*it.c:1: error: no*'
check 'broken: no output' "$output" ''
rm "$tree/broken"
go gate
check 'mended' "$code $calls" '7 *dpkg-query*cmake*ninja*'

[ "$failures" -eq 0 ] && echo 'run does what it says'
exit "$failures"
