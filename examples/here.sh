# What the walk-throughs share, read by them and not run: a cloud on this machine and an empty directory to work in,
# both gone when the script ends, however it ends; and words for what a person does at the terminal.
# shellcheck shell=bash
set -euo pipefail

examples=$(dirname "$(readlink -f "$0")")
if [ "$(id -u)" != 0 ]; then
    echo "${0##*/}: only root can start a cloud of namespaces and mounts: use sudo" >&2
    exit 2
fi
work=$(mktemp -d)
export UPDRAFT_LOCAL_CLOUD_ENDPOINT=unix:$work/cloud/api.sock # here `updraft local up` starts it, and the others find it
finish() {
    updraft local down
    rm -r "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM
cd "$work" # updraft.toml is found in the directory where one is

step() { printf '\n=== %s\n' "$*"; }
# Show a command, and run it: on this machine; or on the head, where one has logged in as USER.
show() {
    echo "\$ $*" >&2
    "$@"
}
as() { # USER COMMAND…
    local user=$1
    shift
    echo "$user@head\$ $*" >&2
    updraft local shell --user "$user" "$head" -- "$@"
}
copy_to() { # USER FILE…
    local user=$1
    shift
    tar -c -C "$examples" --transform 's|.*/||' "$@" | updraft local shell --user "$user" "$head" -- tar -x
}
# Do what comes behind it again and again, until the condition holds.
await() { # CONDITION COMMAND…
    local condition=$1 tries=150
    shift
    until "$@" && $condition; do
        ((tries--)) || { echo "${0##*/}: $condition has not come true" >&2 && exit 1; }
        sleep 4
    done
}
no_jobs() { [ -z "$(updraft local shell "$head" -- condor_q -allusers -af ClusterId)" ]; }
told() { # WHAT HAS HAPPENED
    updraft local shell "$head" -- updraft events | grep -q " $1 "
}
workers() { # NUMBER
    [ "$(updraft local status | grep -c ' running ')" = "$((1 + $1))" ]
}

# A real site's cloud called CLOUD becomes the one on this machine: its limits and its priority stay.
put_here() { # CLOUD
    sed -i -e "/^\[clouds\.$1\]/,/^\[/ { /^[a-z]/ { /^priority\|^limits/ !d } }" \
        -e "s|^\[clouds\.$1\]|&\ndriver = \"local\"\nendpoint = \"http://10.77.0.1:8774\"|" updraft.toml
}
launch_head() { # NAME USER
    show updraft head launch "$1" --source image --role controller --user "$2"
    head=$(updraft head list --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["heads"][0]["id"])')
}
