#!/bin/sh
# Raises the kernel's limits to what the pool's size wants, at each start of HTCondor; what is larger stays.
while read -r name least; do
    file=/proc/sys/$(echo "$name" | tr . /)
    # Connections are tracked only where a firewall does.
    [ -w "$file" ] && read -r now <"$file" || continue
    [ "$now" -ge "$least" ] || echo "$least" >"$file" || echo "$name could not be raised to $least" >&2
done </etc/updraft/kernel.conf
