# shellcheck shell=sh
# Enterprise Linux 8, 9 and 10: RHEL, AlmaLinux, Rocky, CentOS Stream. Read by the install script, whose words
# it uses.
MAJOR=${VERSION_ID%%.*}
PKI=/etc/pki/rpm-gpg

packages() {
    logged dnf -q -y --setopt=retries=5 "$@"
}

epel_fingerprint() {
    case $MAJOR in
    8) echo 94E279EB8D8F25B21810ADF121EA45AB2F86D6A1 ;;
    9) echo FF8AD1344597106ECE813B918A3872BF3228467C ;;
    10) echo 7D8D15CBFC4E62688591FB2633D98517E37ED158 ;;
    *) give_up "there is no recipe for Enterprise Linux $MAJOR: use an image that has what it needs" ;;
    esac
}

add_epel() {
    [ -z "${EPEL_READY:-}" ] || return 0
    print=$(epel_fingerprint)
    [ -n "$print" ] || exit 1
    packages install dnf-plugins-core || give_up "dnf cannot install its plugins: $(last_error)"
    if [ "$ID" = rhel ]; then
        site=https://dl.fedoraproject.org/pub/epel
        pin "$site/RPM-GPG-KEY-EPEL-$MAJOR" "$PKI/RPM-GPG-KEY-EPEL-$MAJOR" "$print"
        logged rpm --import "$PKI/RPM-GPG-KEY-EPEL-$MAJOR" || give_up "EPEL's key cannot be imported"
        packages --setopt=localpkg_gpgcheck=1 install "$site/epel-release-latest-$MAJOR.noarch.rpm" ||
            give_up "EPEL cannot be added: $(last_error)"
    else
        # The distribution's own package, signed by the distribution.
        packages install epel-release || give_up "EPEL cannot be added: $(last_error)"
    fi
    # Whoever brought it: no other key may sign what comes from there.
    pin "file://$PKI/RPM-GPG-KEY-EPEL-$MAJOR" "$PKI/RPM-GPG-KEY-EPEL-$MAJOR" "$print"
    logged crb enable || give_up "the CRB (PowerTools) repository cannot be enabled: $(last_error)"
    EPEL_READY=yes
}

add_repository() {
    # $1: its name, $2: where it is, $3: where its key is, the rest: the key's fingerprints
    name=$1 base=$2 key_at=$3
    shift 3
    pin "$key_at" "$PKI/RPM-GPG-KEY-$name" "$@"
    cat >"/etc/yum.repos.d/$name.repo" <<END
[$name]
name=$name
baseurl=$base
enabled=1
gpgcheck=1
gpgkey=file://$PKI/RPM-GPG-KEY-$name
sslverify=1
priority=90
END
}

versions() {
    # A repository that can't be fetched is an error here, whatever the image's settings are.
    dnf -q repoquery --disablerepo='*' --enablerepo=updraft-htcondor \
        --setopt=updraft-htcondor.skip_if_unavailable=0 --queryformat '%{version}\n' condor \
        >$SCRATCH/versions 2>>$LOG && sort -r -u -V $SCRATCH/versions
}

install_condor() {
    add_epel
    # shellcheck disable=SC2016,SC2086 # dnf's own variable; as many words as there are fingerprints
    add_repository updraft-htcondor "$REPOSITORY/$SERIES/el$MAJOR/"'$basearch/release' \
        "$REPOSITORY/keys/HTCondor-$SERIES-Key" $KEYS
    until offered=$(versions); do
        again || give_up "the list of packages of $REPOSITORY/$SERIES cannot be fetched: $(last_error)"
    done
    found=$(echo "$offered" | pick)
    [ -n "$found" ] || none_fits "$offered" "$REPOSITORY/$SERIES/el$MAJOR"
    packages install "condor-$found" || give_up "condor $found cannot be installed: $(last_error)"
}

install_nft() {
    packages install nftables
}

install_docker() {
    site=https://download.docker.com/linux/centos
    [ "$ID" != rhel ] || site=https://download.docker.com/linux/rhel
    # shellcheck disable=SC2016 # dnf's own variable
    add_repository updraft-docker "$site/$MAJOR/"'$basearch/stable' "$site/gpg" \
        060A61C51B558A7F742B77AAC52FEB6B621E9F35
    packages install docker-ce
}

install_apptainer() {
    add_epel
    packages install apptainer
}

install_cvmfs() {
    # shellcheck disable=SC2016,SC2086 # dnf's own variable; as many words as there are fingerprints
    add_repository updraft-cernvm "$CVMFS_SOURCE/yum/cvmfs/EL/$MAJOR/"'$basearch/' \
        "$CVMFS_SOURCE/yum/RPM-GPG-KEY-CernVM-2048" $CVMFS_PINS
    packages install cvmfs cvmfs-config-default
}
