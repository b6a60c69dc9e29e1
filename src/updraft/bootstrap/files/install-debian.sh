# shellcheck shell=sh
# Debian and Ubuntu. Read by the install script, whose words it uses.
# Its words are read.
export DEBIAN_FRONTEND=noninteractive LC_ALL=C

apt() {
    # Images update themselves at their first boot, and hold the lock meanwhile.
    logged apt-get -q -y -o DPkg::Lock::Timeout=600 -o Acquire::Retries=5 \
        -o Dpkg::Options::=--force-confold "$@"
}

update() {
    tries=10
    echo "fetching lists" >>$LOG
    until apt update; do
        # The lists have a lock of their own, for which nothing waits.
        if tail -n 3 $LOG | grep -q -i 'could not get lock' && [ $tries -gt 0 ]; then
            tries=$((tries - 1))
            sleep 5
        else
            again || give_up "apt-get update failed: $(last_error)"
        fi
    done
    # It succeeds also where it could fetch nothing: only its words tell.
    UNFETCHED=$(awk '/^fetching lists/ { u = "" } /^W: Failed to fetch/ && !u { u = $0 } END { print u }' $LOG)
    UPDATED=yes
}

get() {
    # Packages, which may not be known only because a list could not be fetched.
    until apt install "$@"; do
        { [ -n "$UNFETCHED" ] && again; } || return 1
        update
    done
}

versions() {
    apt-cache madison condor 2>/dev/null | awk -F '[| ]+' '$2 == "condor" { print $3 }'
}

add_repository() {
    ring=/etc/apt/keyrings/updraft-htcondor.asc
    # shellcheck disable=SC2086 # as many words as there are fingerprints
    pin "$REPOSITORY/keys/HTCondor-$SERIES-Key" $ring $KEYS
    [ -n "${VERSION_CODENAME:-}" ] || give_up "/etc/os-release has no VERSION_CODENAME"
    echo "deb [arch=$(dpkg --print-architecture) signed-by=$ring]" \
        "$REPOSITORY/$ID/$SERIES $VERSION_CODENAME main" >/etc/apt/sources.list.d/updraft-htcondor.list
}

install_condor() {
    [ -z "$MIRROR" ] || add_repository
    update
    found=$(versions | pick)
    if [ -z "$found" ] && [ -z "$MIRROR" ]; then
        add_repository
        update
        found=$(versions | pick)
    fi
    while [ -z "$found" ] && [ -n "$UNFETCHED" ] && again; do
        update
        found=$(versions | pick)
    done
    [ -n "$found" ] || none_fits "$(versions)" "$REPOSITORY/$ID/$SERIES"
    get --no-install-recommends "condor=$found" ||
        give_up "condor $found cannot be installed: $(last_error)"
}

install_nft() {
    [ -n "${UPDATED:-}" ] || update
    get --no-install-recommends nftables
}

install_docker() {
    update
    get --no-install-recommends docker.io
}

install_apptainer() {
    update
    get apptainer
}

install_cvmfs() {
    ring=/etc/apt/keyrings/updraft-cernvm.asc
    # shellcheck disable=SC2086 # as many words as there are fingerprints
    pin "$CVMFS_SOURCE/yum/RPM-GPG-KEY-CernVM-2048" $ring $CVMFS_PINS
    [ -n "${VERSION_CODENAME:-}" ] || give_up "/etc/os-release has no VERSION_CODENAME"
    echo "deb [arch=$(dpkg --print-architecture) signed-by=$ring]" \
        "$CVMFS_SOURCE/apt $VERSION_CODENAME-prod main" >/etc/apt/sources.list.d/updraft-cernvm.list
    update
    get --no-install-recommends cvmfs cvmfs-config-default
}
