#!/bin/sh
# The last step of a first boot: what HTCondor needs is looked at, HTCondor is started and waited for.
# Its one line on the console (updraft-boot: ok, or updraft-boot: FAILED: why) is what people search for.
set -u

EXPECT=  # names of the daemons that must come up
PATIENCE=60  # seconds to wait for them
KEYS=  # signing keys to make, where they aren't there
UNITS=  # units to start once HTCondor runs
. /etc/updraft/boot.conf

say() {
    echo "updraft-boot: $1"
    if [ -c /dev/console ]; then
        echo "updraft-boot: $1" 2>/dev/null >/dev/console || :
    fi
}

fail() {
    why=$1
    { LC_ALL=C head -c 65536 /dev/zero >/var/lib/updraft/room; } 2>&1 | grep -q 'No space' && why="$why (the disk is full)"
    rm -f /var/lib/updraft/room
    mkdir -p /run/updraft
    echo "$why" >/run/updraft/failed
    say "FAILED: $why"
    exit 1
}

runs() {
    # The kernel keeps 15 letters of a name.
    cat /proc/[0-9]*/comm 2>/dev/null | grep -q -x "$(printf %.15s "$1")"
}

make_key() {
    [ -s "$1" ] && return
    { mkdir -p "${1%/*}" && chmod 700 "${1%/*}"; } || fail "no folder for the signing key"
    # Text, because a key with a zero byte in it is cut there by older releases.
    (umask 077 && head -c 64 /dev/urandom | base64 -w 0 >"$1.new" && mv "$1.new" "$1") ||
        fail "the signing key cannot be made"
}

wait_for() {
    tries=$((PATIENCE * 5))
    while ! runs "$1"; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || fail "$1 did not start within $PATIENCE s"
        sleep 0.2
    done
}

if [ -e /usr/local/lib/updraft/install ]; then
    sh /usr/local/lib/updraft/install || fail "$(cat /run/updraft/why 2>/dev/null || echo 'the installation failed')"
fi
if [ -e /usr/local/lib/updraft/cvmfs ]; then
    sh /usr/local/lib/updraft/cvmfs || fail "$(cat /run/updraft/why 2>/dev/null || echo 'no repository was mounted')"
fi
command -v condor_master >/dev/null || fail "the image has no HTCondor (condor_master is not there)"
[ -s /etc/condor/config.d/91-updraft-instance.conf ] || fail "cloud-init knows no usable instance id"
why=$(sh /usr/local/lib/updraft/close-metadata) || fail "the metadata address cannot be closed to jobs: $why"
if [ -e /usr/local/lib/updraft/close-drives ]; then
    why=$(sh /usr/local/lib/updraft/close-drives) || fail "a drive with the user-data is open to jobs: $why"
fi
systemctl enable updraft-door.service || fail "the service updraft-door cannot be enabled"
systemctl start updraft-door.service || fail "the service updraft-door does not start"
if [ -e /usr/local/lib/updraft/public-address ]; then
    python3 -I /usr/local/lib/updraft/public-address || fail "the cloud's metadata tells no public address"
fi
log=$(condor_config_val LOG) || fail "HTCondor cannot read its configuration"
chmod 700 /etc/condor/tokens.d 2>/dev/null
for key in $KEYS; do
    make_key "$key"
done
# Where systemd-tmpfiles doesn't run, these are nobody's work.
install -d -o condor -g condor -m 775 /run/condor /run/lock/condor || fail "the user condor is not there"
# An image is often made with its logs taken out, folders and all; no daemon starts without this one.
[ -d "$log" ] || install -d -o condor -g condor "$log" || fail "no folder $log for HTCondor's logs"
[ ! -e /usr/local/lib/updraft/accounts ] || sh /usr/local/lib/updraft/accounts ||
    fail "the accounts of the slots cannot be made, nor $log closed to them"
if [ -e /usr/local/lib/updraft/handover ]; then
    why=$(python3 -I /usr/local/lib/updraft/handover) || fail "no token of its own: $why"
fi

# Not by ":", at whose failure a shell ends without a word.
{ mkdir -p /var/lib/updraft && touch /var/lib/updraft/booted; } || fail "nothing can be written to /var/lib/updraft"
systemctl enable condor.service || :
systemctl start condor.service || fail "the service condor does not start"
for daemon in $EXPECT; do
    wait_for "$daemon"
done
for unit in $UNITS; do
    systemctl enable "$unit" || fail "the service $unit cannot be enabled"
    systemctl start "$unit" || fail "the service $unit does not start"
done
say ok
