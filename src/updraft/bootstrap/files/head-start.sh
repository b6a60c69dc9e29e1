#!/bin/sh
# Before each start of HTCondor on a head: what a restart or another address has changed is put right. With
# "start" as its argument it starts HTCondor and updraft, too, where no service manager does that.
METADATA= # close: the cloud's metadata address is for root alone
PUBLIC=   # metadata: connections come to the public address that the cloud's metadata tells
RUN=      # the command of updraft's service
SCRIPTS=/usr/local/lib/updraft
. /etc/updraft/head.conf

keep() {
    # $1: where its process id is noted, $2: where its output goes, $3: a word of its command line, the rest:
    # what is to run from now on
    note=$1 log=$2 word=$3
    shift 3
    pid=$(cat "$note" 2>/dev/null)
    # By then the number may be another's.
    if [ -z "$pid" ] || ! grep -q -a -F -e "$word" "/proc/$pid/cmdline" 2>/dev/null; then
        setsid "$@" </dev/null >>"$log" 2>&1 &
        echo $! >"$note"
    fi
}

if [ "$METADATA" = close ]; then
    why=$(sh $SCRIPTS/close-metadata) || echo "updraft: the metadata address cannot be closed to users: $why" >&2
fi
if [ "$PUBLIC" = metadata ]; then
    python3 -I $SCRIPTS/public-address
fi
# Where systemd-tmpfiles doesn't run, these are nobody's work.
install -d -o condor -g condor -m 775 /run/condor /run/lock/condor
[ "${1:-}" = start ] || exit 0

[ "$METADATA" != close ] || keep /run/updraft-door.pid /var/log/updraft-door.log updraft/door python3 -I $SCRIPTS/door
keep /run/updraft-condor.pid /dev/null condor_master condor_master -f
[ -n "$RUN" ] || exit 0
# shellcheck disable=SC2086 # a program and its arguments
keep /run/updraft-head.pid /var/log/updraft.log updraft $RUN
