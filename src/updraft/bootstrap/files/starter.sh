#!/bin/sh
# HTCondor's starter, for an account of the slot's own. The startd runs this as root before each job; it takes
# away what the last job of this account has left, and where it can't, no job starts. Nothing that a job says
# or does changes that. HTCondor itself gives each job a /tmp, /var/tmp and /dev/shm, and ends all processes of
# the account with it.
set -u
# Its own, as systemd's: find does nothing (-execdir) where a part of it is empty or no whole path.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
SCRIPTS=/usr/local/lib/updraft

refuse() {
    echo "updraft-starter: $1"
    { echo "updraft-starter: $1" >/dev/console; } 2>/dev/null || :
    exit 1
}

# So it asks, at its start, what this starter can do.
[ "$*" != -classad ] || exec condor_starter -classad

slot='' before=''
for word in "$@"; do
    [ "$before" != -a ] || slot=$word
    before=$word
done
case $slot in
*[!slot0-9_]*) refuse "the slot '$slot' can have no account" ;;
esac
account=updraft-$slot
grep -q "^$account:" /etc/passwd || sh $SCRIPTS/accounts "$slot" ||
    refuse "the slot '$slot' can have no account"
id=$(sed -n "s/^$account:[^:]*:\([0-9]*\):.*/\1/p" /etc/passwd)
[ -n "$id" ] || refuse "the account of the slot '$slot' has no number"
as_it() {
    setpriv --reuid "$id" --regid "$id" --clear-groups --no-new-privs -- "$@"
}

# All that it may signal are its own, at once: none can start another in between. They may take a while to end.
# The dead (Z, X) start nothing, whether somebody has asked for their status or not.
tries=100
while as_it sh -c 'kill -KILL -1' 2>/dev/null
    grep -s -l "^Uid:.*$id" /proc/[0-9]*/status | xargs grep -s -q '^State:.[^ZX]'; do
    tries=$((tries - 1))
    [ $tries -gt 0 ] || refuse "processes that an earlier job has left cannot be ended"
    sleep 0.1
done
if grep -q -s "^ *$id:" /proc/key-users; then
    as_it python3 -I $SCRIPTS/forget-keys || refuse "keys that an earlier job has left cannot be removed"
fi
rm -rf "/run/user/$id" "/var/lib/systemd/linger/$account" /var/lib/systemd/coredump/core.*."$id".* 2>/dev/null
# From within its folder (-execdir): a job that still runs may put a link in the place of one on the way.
scratch=${_CONDOR_EXECUTE:-$(condor_config_val EXECUTE)}
find "$scratch/" -ignore_readdir_race -mindepth 1 -maxdepth 2 -user "$id" -prune -execdir rm -rf -- {} + ||
    refuse "what an earlier job has left in $scratch cannot be removed"
# Where everybody may write, on common systems.
for folder in /tmp /var/tmp /dev/shm /dev/mqueue /run /run/lock /var/lock /var/crash; do
    [ ! -d $folder ] || find $folder/ -ignore_readdir_race -xdev -user "$id" -prune -execdir rm -rf -- {} + ||
        refuse "what an earlier job has left in $folder cannot be removed"
done

export _condor_NOBODY_SLOT_USER="$account"
# System V's shared memory, semaphores and queues, and POSIX's: the job's own, and gone with it. No job gains
# rights by a program that another one, of whatever account, has left with a setuid bit.
exec setpriv --no-new-privs unshare --ipc condor_starter "$@"
