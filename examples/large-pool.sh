#!/bin/bash
# large-pool.sh [MACHINES] [OPTION…]
#
# The configuration of a head for so many machines (5000 unless told otherwise), and the proof of it on this
# machine, before machines cost money. The file stays, as head-MACHINES.conf in this directory. Needs root.
# The options are those of `updraft pool load`.
set -euo pipefail

machines=${1:-5000}
shift "$(($# > 0))"
if ! [[ $machines =~ ^[1-9][0-9]*$ ]]; then
    echo "large-pool.sh: $machines is no number of machines" >&2
    exit 2
fi
if [ "$(id -u)" != 0 ]; then
    echo "large-pool.sh: only root can start a head of namespaces and mounts: use sudo" >&2
    exit 2
fi

config=head-$machines.conf
updraft pool config --machines "$machines" --role head >"$config"
echo "HTCondor's settings for a head of $machines machines are in $config. Now $machines machines join such a head."
updraft pool load --machines "$machines" --config "$config" "$@"
