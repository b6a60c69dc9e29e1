#!/bin/sh
# Makes an account for each of the slots that are named, where it isn't there: nobody logs in to it, and it has
# no group but its own. Without names: for all slots that this machine will have, and as many again, because a
# slot that ends may still be there when the next one begins. All in one go: useradd takes its time for each.
# What must be closed to all of them is closed first.
set -u

# Numbers that no distribution, directory or container gives away; a shared file system may know lower ones.
FIRST=2100000000

if [ $# -eq 0 ]; then
    cpus=$(condor_config_val NUM_CPUS 2>/dev/null)
    case $cpus in
    "" | *[!0-9]*) cpus=$(nproc) ;;
    esac
    number=1
    while [ $number -le $((2 * cpus)) ]; do
        set -- "$@" "slot$number" "slot1_$number"
        number=$((number + 1))
    done
fi
# HTCondor writes into its logs what jobs are told: arguments, and with its histories their environment.
chmod 750 "$(condor_config_val LOG)" || exit 1
printf '%s\n' "$@" | grep -q -v -x -E 'slot[1-9][0-9]{0,2}(_[1-9][0-9]{0,3})?' && exit 1
# What a job may open, it may lock: it would keep all others waiting.
(umask 077 && : >>/run/updraft-accounts)
(
    flock 9 || exit 1
    known=" $(grep -o '^updraft-slot[0-9_]*' /etc/passwd | tr '\n' ' ')"
    users='' groups='' names=''
    for slot in "$@"; do
        name=updraft-$slot
        case $known in
        *" $name "*) continue ;;
        esac
        slot=${slot#slot}_0
        part=${slot#*_}
        id=$((FIRST + ${slot%%_*} * 10000 + ${part%%_*}))
        users="$users$name:*:$id:$id::/nonexistent:/usr/sbin/nologin
" groups="$groups$name:*:$id:
" names="$names$name
"
    done
    # What a job told cron or at to run would run beside the next. Without its file, at runs nobody's.
    for denied in /etc/cron.deny /etc/at.deny; do
        [ $denied = /etc/at.deny ] && [ ! -e $denied ] || printf %s "$names" >>$denied || exit 1
    done
    printf %s "$groups" >>/etc/group && printf %s "$users" >>/etc/passwd
) 9>/run/updraft-accounts
