#!/bin/sh
# The last step of a boot that becomes a seed image: HTCondor and updraft are put in, and rest until a head's
# user-data says what for; then the machine is cleaned and looked through.
# Its one line on the console where it fails (updraft-boot: FAILED: why) is what its maker waits for.
set -u

fail() {
    echo "updraft-boot: FAILED: $1"
    if [ -c /dev/console ]; then
        echo "updraft-boot: FAILED: $1" 2>/dev/null >/dev/console || :
    fi
    exit 1
}

if [ -e /usr/local/lib/updraft/install ]; then
    sh /usr/local/lib/updraft/install || fail "$(cat /run/updraft/why 2>/dev/null || echo 'the installation failed')"
fi
command -v condor_master >/dev/null || fail "the image has no HTCondor (condor_master is not there)"
sh /usr/local/lib/updraft/get-updraft || exit 1
systemctl disable condor.service || :
systemctl stop condor.service || :
systemctl start --no-block updraft-bake.service || fail "the machine cannot be cleaned"
