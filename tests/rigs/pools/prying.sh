#!/bin/sh
# Runs as a job: looks for a word of another user's job in all that it can read and may ask for. The word comes
# in two halves, so that no place has it from this script's own arguments. A line for each place that has it.
# The startd's address, if one is given, is that of a machine on which the other job still runs.
word=$1$2 head=$3 startd=${4:-}
unset _CONDOR_JOB_AD _CONDOR_MACHINE_AD
found() {
    if grep -q -e "$word"; then echo "found by $1"; fi
}
find /var/log /var/lib /var/spool /var/tmp /tmp /run /etc -xdev -type f -readable 2>/dev/null |
    while read -r file; do found "reading $file" 2>/dev/null <"$file"; done
condor_history -name "$head" -af Environment Args 2>&1 | found condor_history
condor_q -name "$head" -allusers -af Environment Args 2>&1 | found condor_q
condor_history -startd -af Environment Args 2>&1 | found "condor_history -startd"
condor_ping -type COLLECTOR READ 2>&1 | grep -q "READ command using.*succeeded" && echo "READ at the collector"
condor_status -any -af Name 2>/dev/null | grep -q . && echo "condor_status -any"
condor_status -direct "$(condor_config_val FULL_HOSTNAME)" -any -l 2>/dev/null | found "condor_status -direct"
# This machine's daemons, by their sockets: who may WRITE to a starter takes its job over (CA_RECONNECT_JOB).
here=$(ip -4 -o addr show scope global | sed -n '1s|.* inet \([0-9.]*\)/.*|\1|p')
sed -n 's|.* @[0-9a-f]*/||p' /proc/net/unix | sort -u | while read -r name; do
    for right in READ WRITE DAEMON ADMINISTRATOR; do
        condor_ping -addr "<$here:9618?sock=$name>" "$right" 2>&1 | grep -q "command using.*succeeded" &&
            echo "$right at $name"
    done
done
# Also with other tools than this machine's, whatever they show or refuse to show.
snapshot() {
    condor_status -direct "$startd" -snapshot -l 2>&1 | found "condor_status -snapshot"
    condor_status -direct "$startd" -any -snapshot -l 2>&1 | found "condor_status -any -snapshot"
}
if [ -n "$startd" ]; then
    snapshot
    export _CONDOR_SEC_CLIENT_AUTHENTICATION _CONDOR_SEC_CLIENT_ENCRYPTION _CONDOR_SEC_CLIENT_INTEGRITY
    for wanted in OPTIONAL NEVER; do
        _CONDOR_SEC_CLIENT_AUTHENTICATION=$wanted _CONDOR_SEC_CLIENT_ENCRYPTION=$wanted
        _CONDOR_SEC_CLIENT_INTEGRITY=$wanted
        snapshot
    done
    unset _CONDOR_SEC_CLIENT_ENCRYPTION _CONDOR_SEC_CLIENT_INTEGRITY
    _CONDOR_SEC_CLIENT_AUTHENTICATION=REQUIRED
    export _CONDOR_SEC_CLIENT_AUTHENTICATION_METHODS
    for _CONDOR_SEC_CLIENT_AUTHENTICATION_METHODS in FS IDTOKENS SSL CLAIMTOBE ANONYMOUS; do
        snapshot
    done
fi
echo "looked as $(id -u)"
