#!/bin/sh
# On a head, ahead of the last step of its first boot: updraft is in the image, or it is installed now.
# Its one line on the console (updraft-boot: FAILED: why) is what people search for.
set -u

UPDRAFT=/usr/local/bin/updraft # where the program has to be
SOURCE=                        # what pip installs: a name with a version, or the address of a wheel
INDEX=                         # the package index to use; empty: pip's own
HOME_OF_IT=/opt/updraft        # the virtual environment that it goes into
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

[ -x "$UPDRAFT" ] && exit 0
[ -n "$SOURCE" ] || fail "the image has no updraft ($UPDRAFT), and nothing was said of where to get it"
find_python || get_python
find_python || fail "there is no Python of 3.11 or newer with venv, and none could be installed"
set -- --quiet --disable-pip-version-check --no-input
[ -z "$INDEX" ] || set -- "$@" --index-url "$INDEX"
"$PYTHON" -m venv "$HOME_OF_IT" || fail "no virtual environment can be made in $HOME_OF_IT"
"$HOME_OF_IT/bin/pip" install "$@" "$SOURCE" || fail "pip cannot install $SOURCE"
mkdir -p "${UPDRAFT%/*}"
ln -sf "$HOME_OF_IT/bin/updraft" "$UPDRAFT"
"$UPDRAFT" --version || fail "updraft was installed and does not run"
