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

mount_one() {
    mkdir -p $ROOT/"$1"
    mountpoint -q $ROOT/"$1" || said=$(timeout 120 mount -t cvmfs "$1" $ROOT/"$1" 2>&1) ||
        give_up "CernVM-FS cannot mount $1: $(echo "$said" | tail -n 1)"
}

config_repository() {
    # Where the client's configuration of other people's repositories is: a repository too, if there is one.
    for repository in $REPOSITORIES; do
        [ -e /etc/cvmfs/config.d/"$repository".local ] && continue # ours: it needs nothing from there
        sed -n 's/^CVMFS_CONFIG_REPOSITORY=//p' /etc/cvmfs/default.d/*.conf 2>/dev/null | tail -n 1
        return
    done
}

mount_all() {
    # The client mounts as its own user, for everybody.
    grep -q -x user_allow_other /etc/fuse.conf 2>/dev/null || echo user_allow_other >>/etc/fuse.conf
    for repository in $(config_repository) $REPOSITORIES; do
        mount_one "$repository"
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
