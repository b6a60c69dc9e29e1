#!/bin/sh
# On a head, ahead of the last step of its first boot: updraft is in the image, or it is installed now.
# Its one line on the console (updraft-boot: FAILED: why) is what people search for.
set -u

UPDRAFT=/usr/local/bin/updraft # where the program has to be
SOURCE=                        # the address of updraft's wheel, with its hash: …#sha256=…
INDEX=                         # the package index to use, or file:///FOLDER with wheels; empty: pip's own
HOME_OF_IT=/opt/updraft        # the virtual environment that it goes into
SAID=/run/updraft/pip          # what pip said last
. /etc/updraft/boot.conf

fail() {
    mkdir -p /run/updraft
    echo "$1" >/run/updraft/failed
    echo "updraft-boot: FAILED: $1"
    if [ -c /dev/console ]; then
        echo "updraft-boot: FAILED: $1" 2>/dev/null >/dev/console || :
    fi
    exit 1
}

find_python() {
    for PYTHON in python3 python3.14 python3.13 python3.12 python3.11; do
        "$PYTHON" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && return
    done
    return 1
}

get_python() {
    export DEBIAN_FRONTEND=noninteractive
    if command -v apt-get >/dev/null; then
        apt-get update -qq
        apt-get install -y -qq python3-venv
        find_python || apt-get install -y -qq python3.11-venv
    else
        dnf install -y -q python3.11 python3.11-pip
    fi
}

# get WHAT ARGUMENTS: pip takes only files whose hash was said before, and builds nothing.
get() {
    WHAT=$1
    shift
    "$HOME_OF_IT/bin/pip" install --quiet --disable-pip-version-check --no-input \
        --require-hashes --no-deps --only-binary=:all: "$@" 2>"$SAID" && return
    cat "$SAID" >&2
    if grep -q 'DO NOT MATCH THE HASHES' "$SAID"; then
        fail "$WHAT is not what was asked for: its hash (sha256) is another one, and it was not installed"
    fi
    fail "pip cannot install $WHAT"
}

[ -x "$UPDRAFT" ] && exit 0
[ -n "$SOURCE" ] || fail "the image has no updraft ($UPDRAFT), and nothing was said of where to get it"
find_python || get_python
find_python || fail "there is no Python of 3.11 or newer with venv, and none could be installed"
mkdir -p "${SAID%/*}" "${UPDRAFT%/*}"
"$PYTHON" -m venv "$HOME_OF_IT" || fail "no virtual environment can be made in $HOME_OF_IT"
get "${SOURCE%%[?#]*}" "$SOURCE"
case $INDEX in
'') set -- ;;
file:*) set -- --no-index --find-links "$INDEX" ;;
*) set -- --index-url "$INDEX" ;;
esac
# The wheel has brought the hashes of all that it needs.
get "one of the packages that updraft needs" "$@" -r "$HOME_OF_IT"/lib/python3*/site-packages/updraft/run.lock
ln -sf "$HOME_OF_IT/bin/updraft" "$UPDRAFT"
"$UPDRAFT" --version || fail "updraft was installed and does not run"
