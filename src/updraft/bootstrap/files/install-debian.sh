# shellcheck shell=sh
# Debian and Ubuntu. Read by the install script, whose words it uses.
export DEBIAN_FRONTEND=noninteractive

apt() {
    # Images update themselves at their first boot, and hold the lock meanwhile.
    logged apt-get -q -y -o DPkg::Lock::Timeout=600 -o Acquire::Retries=5 \
        -o Dpkg::Options::=--force-confold "$@"
}

update() {
    tries=10
    until apt update; do
        tries=$((tries - 1))
        # The lists have a lock of their own, for which nothing waits.
        if [ $tries -eq 0 ] || ! tail -n 3 "$LOG" | grep -q -i 'could not get lock'; then
            give_up "apt-get update failed: $(last_error)"
        fi
        sleep 5
    done
    UPDATED=yes
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
    [ -n "$found" ] || none_fits "$(versions)" "$REPOSITORY/$ID/$SERIES"
    apt install --no-install-recommends "condor=$found" ||
        give_up "condor $found cannot be installed: $(last_error)"
}

install_nft() {
    [ -n "${UPDATED:-}" ] || update
    apt install --no-install-recommends nftables
}

install_docker() {
    update
    apt install --no-install-recommends docker.io
}

install_apptainer() {
    update
    apt install apptainer
}

install_cvmfs() {
    ring=/etc/apt/keyrings/updraft-cernvm.asc
    # shellcheck disable=SC2086 # as many words as there are fingerprints
    pin "$CVMFS_SOURCE/yum/RPM-GPG-KEY-CernVM-2048" $ring $CVMFS_PINS
    [ -n "${VERSION_CODENAME:-}" ] || give_up "/etc/os-release has no VERSION_CODENAME"
    echo "deb [arch=$(dpkg --print-architecture) signed-by=$ring]" \
        "$CVMFS_SOURCE/apt $VERSION_CODENAME-prod main" >/etc/apt/sources.list.d/updraft-cernvm.list
    update
    apt install --no-install-recommends cvmfs cvmfs-config-default
}
