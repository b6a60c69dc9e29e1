# Close the cloud's metadata address to everyone but root, and to whatever is forwarded through this machine
# (containers have their own user ids, and reach it through us). By two doors. nftables drops it, by whatever
# route it goes: a socket bound to a device is sent out where routing finds no way. Routing rules refuse at
# once what nftables would let wait, and stand while somebody loads the rules of nftables anew.
# Both are lost at a reboot. So this runs at each boot, before each start of HTCondor, and whenever
# updraft-door sees that rules have changed. Why it isn't closed goes to the standard output.
MADE=/run/updraft/nft-table # how our table was listed when it was made: nft writes it in its own way

close_by_nft() {
    command -v nft >/dev/null || { echo "nftables is not installed (nft is not there)"; return 1; }
    [ -s $MADE ] && [ "$(nft list table inet updraft 2>/dev/null)" = "$(cat $MADE)" ] && return
    mkdir -p "${MADE%/*}"
    # In one step. "skuid 0" and no "skuid != 0": a packet without a socket (its program has closed it) has no
    # user, matches neither, and must not get through. (But for the kernel's own: without its neighbour
    # discovery, 135 and 136, root would not find the address.) After rules that change where a packet goes (-100).
    told=$(nft -f - 2>&1 <<'END'
table inet updraft
delete table inet updraft
table inet updraft {
    chain output {
        type filter hook output priority 0; policy accept;
        ip daddr 169.254.169.254 meta skuid 0 accept
        ip daddr 169.254.169.254 drop
        ip6 daddr { fd00:ec2::254, fe80::a9fe:a9fe } meta skuid 0 accept
        ip6 daddr { fd00:ec2::254, fe80::a9fe:a9fe } icmpv6 type { 135, 136 } accept
        ip6 daddr { fd00:ec2::254, fe80::a9fe:a9fe } drop
    }
    chain forward {
        type filter hook forward priority 0; policy accept;
        ip daddr 169.254.169.254 drop
        ip6 daddr { fd00:ec2::254, fe80::a9fe:a9fe } drop
    }
}
END
    ) && nft list table inet updraft >$MADE && return
    echo "nftables: $told" | head -n 1
    return 1
}

ruled() {
    # $1: address family, $2: address
    [ "$(ip "$1" rule show 2>/dev/null | grep -c "^6[012]:.* to $2 ")" -eq 3 ]
}

close_by_rule() {
    # "iif lo" is what this machine itself sends. (A rule with "not" would turn round all of what it matches,
    # the address included.) A rule that is already there makes the command fail: so all are looked for.
    ruled "$1" "$2" && return
    ip "$1" rule add pref 60 to "$2" uidrange 1-4294967294 prohibit 2>/dev/null
    ip "$1" rule add pref 61 to "$2" iif lo lookup main 2>/dev/null
    ip "$1" rule add pref 62 to "$2" prohibit 2>/dev/null
    ruled "$1" "$2" || { echo "ip rule: there are none for $2"; return 1; }
}

close_by_nft
closed=$?
close_by_rule -4 169.254.169.254 || closed=1
if [ -e /proc/net/if_inet6 ]; then
    for address in fd00:ec2::254 fe80::a9fe:a9fe; do # Amazon's, and OpenStack's
        close_by_rule -6 $address || closed=1
    done
fi
[ $closed -eq 0 ]
