# Close the cloud's metadata address to everyone but root, and to whatever is forwarded through this machine
# (containers have their own user ids, and reach it through us). Routing rules, because they need no
# netfilter; they are lost at a reboot, so this runs at each boot, before HTCondor starts.
close_metadata() {
    # $1: address family, $2: address. "iif lo" is what this machine itself sends. (A rule with "not" would
    # turn round all of what it matches, the address included.) A rule that is already there makes the
    # command fail: so all three are looked for afterwards instead.
    ip "$1" rule add pref 60 to "$2" uidrange 1-4294967294 prohibit 2>/dev/null
    ip "$1" rule add pref 61 to "$2" iif lo lookup main 2>/dev/null
    ip "$1" rule add pref 62 to "$2" prohibit 2>/dev/null
    [ "$(ip "$1" rule show 2>/dev/null | grep -c "^6[012]:.* to ${2%/*} ")" -eq 3 ]
}

close_metadata -4 169.254.169.254/32
closed=$?
if [ -e /proc/net/if_inet6 ]; then
    for address in fd00:ec2::254 fe80::a9fe:a9fe; do # Amazon's, and OpenStack's
        close_metadata -6 "$address/128" || closed=1
    done
fi
[ $closed -eq 0 ]
