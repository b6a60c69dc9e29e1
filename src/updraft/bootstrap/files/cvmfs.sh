#!/bin/sh
# Mounts the repositories below /cvmfs, looks into each as a job would, and then lets HTCondor say so.
# Runs before HTCondor's first start, and again at each later boot. Why it failed is left in /run/updraft/why.
set -u

CLIENT= REPOSITORIES=
. /etc/updraft/cvmfs.conf
ROOT=/cvmfs
SAYS=/etc/condor/config.d/92-updraft-cvmfs.conf
RUNNER=/usr/local/lib/updraft/cvmfsexec
WRAPPER=/usr/local/lib/updraft/cvmfs-job

give_up() {
    mkdir -p /run/updraft
    echo "$*" | tr '\n' ' ' >/run/updraft/why
    exit 1
}

as_nobody() {
    timeout 120 runuser -u nobody -- "$@"
}

mount_all() {
    for repository in $REPOSITORIES; do
        mkdir -p $ROOT/"$repository"
        mountpoint -q $ROOT/"$repository" ||
            said=$(timeout 120 mount -t cvmfs "$repository" $ROOT/"$repository" 2>&1) ||
            give_up "CernVM-FS cannot mount $repository: $(echo "$said" | tail -n 1)"
        # What an ordinary user sees is what a job will see.
        [ -n "$(as_nobody ls $ROOT/"$repository" 2>/dev/null)" ] ||
            give_up "CernVM-FS has mounted $repository, and there is nothing in it"
    done
}

wrap_jobs() {
    # Each job runs where the repositories are mounted for it alone, by its own user.
    printf '#!/bin/sh\nexec %s %s -- "$@"\n' $RUNNER "$REPOSITORIES" >$WRAPPER
    chmod 755 $RUNNER $WRAPPER
    here=$(mktemp -d) && chown nobody "$here" && cd "$here" || give_up "no folder to try cvmfsexec in"
    for repository in $REPOSITORIES; do
        [ -n "$(as_nobody $WRAPPER ls $ROOT/"$repository" 2>/dev/null)" ] ||
            give_up "cvmfsexec cannot mount $repository"
    done
    cd / && rm -rf "$here"
}

rm -f $SAYS
case $CLIENT in
package) mount_all ;;
cvmfsexec) wrap_jobs ;;
*) give_up "there is no recipe for the client $CLIENT of CernVM-FS" ;;
esac
cp /etc/updraft/cvmfs.condor $SAYS
[ "$CLIENT" = package ] || echo "USER_JOB_WRAPPER = $WRAPPER" >>$SAYS
