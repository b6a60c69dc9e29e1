#!/bin/sh
# Installs at the first boot what the image lacks: HTCondor, nftables, what the universes asked for need, CernVM-FS.
# Why it failed is left as one line in /run/updraft/why; the boot script puts it on the console.
set -u

CONDOR=     # yes: HTCondor is to be installed, unless it is there
WANTED=     # its versions, the dearest first; each stands for all that begin with it
# shellcheck disable=SC2034 # the family's script reads it
SERIES=     # HTCondor's repository that has them: 25.0, 25.x
# shellcheck disable=SC2034 # the family's script reads it
REPOSITORY= # its base, https:// or file:///
# shellcheck disable=SC2034 # the family's script reads it
MIRROR=     # yes: that is a site's own, and goes before the distribution's package
# shellcheck disable=SC2034 # the family's script reads it
KEYS=       # fingerprints: the repository's key must have one of them
UNIVERSES=  # docker, apptainer
CVMFS=      # the client of CernVM-FS: package, cvmfsexec
CVMFS_SOURCE= # the base of its packages' repositories, or the address of cvmfsexec's file
CVMFS_PINS= # fingerprints of the repositories' key, or the file's SHA-256
SCRIPTS=/usr/local/lib/updraft
. /etc/updraft/install.conf
. /etc/os-release

SCRATCH=/run/updraft/install
LOG=/var/log/updraft-install.log
UNFETCHED= # the first list of packages that couldn't be fetched, as apt says it
LOOKS=2    # times that such lists are fetched again
mkdir -p $SCRATCH
PYTHON=$(command -v python3 || echo /usr/libexec/platform-python) # the latter is what cloud-init has on EL 8

give_up() {
    echo "$*" | tr '\n' ' ' >/run/updraft/why
    exit 1
}

logged() {
    # Run it with its output in the log only; the console keeps the one line that matters.
    "$@" >>$LOG 2>&1
}

last_error() {
    echo "$(grep -i -E '^(E:|Error|error:)' $LOG | tail -n 1)${UNFETCHED:+ ($UNFETCHED)}"
}

again() {
    # Wait a little, where another look is worth it: at a first boot the network may come late.
    [ $LOOKS -gt 0 ] || return 1
    LOOKS=$((LOOKS - 1))
    sleep 20
}

fetch() {
    # $1: where from, $2: the file to write. TLS with the image's own certificates, also after a redirect.
    case $1 in
    file:///*) cp "${1#file://}" "$2" ;;
    https://*)
        if command -v curl >/dev/null; then
            logged curl -fsSL --proto =https --proto-redir =https --retry 5 --max-time 300 -o "$2" "$1"
        else
            logged /usr/lib/apt/apt-helper -o Acquire::Retries=5 download-file "$1" "$2"
        fi
        ;;
    *) return 1 ;;
    esac
}

pin() {
    # $1: where a repository's key is, $2: where it goes, then its fingerprints. What else is in there is left.
    from=$1 to=$2
    shift 2
    [ $# -gt 0 ] || give_up "no fingerprint is known of the key at $from: set condor_keys"
    fetch "$from" $SCRATCH/key || give_up "the signing key $from cannot be fetched"
    mkdir -p "${to%/*}"
    logged "$PYTHON" -I $SCRIPTS/pin-key $SCRATCH/key "$to" "$@" ||
        give_up "the key at $from is not the pinned one ($*): nothing was installed from there"
}

pick() {
    # Of the versions on the standard input, the newest first, one that begins as a wanted one does.
    offered=$(cat)
    for want in $WANTED; do
        for version in $offered; do
            case $version in
            "$want" | "$want"[!0-9]*)
                echo "$version"
                return
                ;;
            esac
        done
    done
}

none_fits() {
    # $1: what there is instead, $2: where
    have=$(echo "$1" | tr -s ' \n' '  ' | cut -c 1-120)
    give_up "${UNFETCHED:+lists of packages cannot be fetched ($UNFETCHED): }no HTCondor ${WANTED##* } for $ID ${VERSION_ID:-} in $2 (it has: ${have:-none}${have:+ })"
}

for_docker() {
    # The universe's own right: condor starts containers through docker's socket, and whoever may write to
    # that is root here. Jobs run as other users, and aren't in the group.
    command -v docker >/dev/null || give_up "docker was asked for and cannot be installed: $(last_error)"
    getent group docker >/dev/null || give_up "docker was asked for and its group is not there"
    usermod -a -G docker condor || give_up "the user condor cannot be put into docker's group"
    logged systemctl enable docker
    logged systemctl start docker || give_up "docker was asked for and does not start"
    logged docker info || give_up "docker was asked for and does not answer: $(last_error)"
}

for_apptainer() {
    command -v apptainer >/dev/null ||
        give_up "apptainer was asked for, and no repository of this image has it: $(last_error)"
    logged apptainer --version || give_up "apptainer was asked for and does not run: $(last_error)"
}

get_cvmfsexec() {
    fetch "$CVMFS_SOURCE" $SCRATCH/cvmfsexec || give_up "cvmfsexec cannot be fetched from $CVMFS_SOURCE"
    echo "$CVMFS_PINS  $SCRATCH/cvmfsexec" | logged sha256sum -c - ||
        give_up "the file at $CVMFS_SOURCE is not the pinned one ($CVMFS_PINS)"
    install -m 755 $SCRATCH/cvmfsexec $SCRIPTS/cvmfsexec || give_up "cvmfsexec cannot be put in place"
}

case " $ID ${ID_LIKE:-} " in
*" debian "* | *" ubuntu "*) FAMILY=debian ;;
*" rhel "* | *" centos "*) FAMILY=rhel ;;
*) give_up "there is no recipe to install anything on ${PRETTY_NAME:-$ID}: use an image that has it" ;;
esac
# shellcheck source=/dev/null
. "$SCRIPTS/install-$FAMILY"

if [ -n "$CONDOR" ] && ! command -v condor_master >/dev/null; then
    install_condor
    hash -r
    command -v condor_master >/dev/null || give_up "HTCondor was installed and condor_master is not there"
fi
# What closes the metadata address to jobs.
command -v nft >/dev/null || install_nft || give_up "nftables cannot be installed: $(last_error)"
for UNIVERSE in $UNIVERSES; do
    command -v "$UNIVERSE" >/dev/null || "install_$UNIVERSE"
    "for_$UNIVERSE"
done
case $CVMFS in
package)
    command -v cvmfs2 >/dev/null || install_cvmfs
    hash -r
    command -v cvmfs2 >/dev/null || give_up "CernVM-FS was asked for and cannot be installed: $(last_error)"
    ;;
cvmfsexec) get_cvmfsexec ;;
esac
