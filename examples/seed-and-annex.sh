#!/bin/bash
# seed-and-annex.sh [STORE]
#
# A pool in a cloud that grows from one machine: the seed, which is the head; a user's jobs; an annex of two machines
# that this user asks for; and all of it is taken away. The cloud is the one on this machine, and ends with the script,
# however that ends. Needs root and mmdebstrap. STORE is where machine images are kept (/var/lib/updraft/local).
set -euo pipefail

if [ $# -gt 1 ] || [[ ${1:-} == -* ]]; then
    echo "seed-and-annex.sh: say nothing, or where machine images are kept: seed-and-annex.sh [STORE]" >&2
    exit 2
fi
if [ "$(id -u)" != 0 ]; then
    echo "seed-and-annex.sh: only root can start a cloud of namespaces and mounts: use sudo" >&2
    exit 2
fi
here=$(dirname "$(readlink -f "$0")")
store=${1:+$(realpath -m "$1")}
work=$(mktemp -d)
cloud=$work/cloud
finish() {
    updraft local down --state "$cloud"
    rm -r "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM
cd "$work" # here updraft.toml will be, and updraft looks for it where it is called

step() { printf '\n=== %s\n' "$*"; }
show() {
    echo "\$ $*"
    "$@"
}
# as USER COMMAND: on the seed. anna has an account there and no other right; the settings are root's.
as() {
    echo "$1@seed\$ ${*:2}"
    quietly "$@"
}
quietly() { updraft local shell --state "$cloud" --user "$1" "$seed" -- "${@:2}"; }
await() {
    local tries=200
    until "$@"; do
        if ((--tries == 0)); then
            echo "seed-and-annex.sh: waited for 10 minutes, and $1 is not true" >&2
            exit 1
        fi
        sleep 3
    done
}
both_have_joined() { [ "$(quietly anna condor_status -annex lab -af Machine | sort -u | wc -l)" = 2 ]; }
it_is_forgotten() { [ "$(quietly anna updraft annex list)" = "there is no annex" ]; }

step "A cloud, and how it is used from beside its machines"
show updraft local up --state "$cloud" ${store:+--store "$store"}
export UPDRAFT_LOCAL_CLOUD_ENDPOINT=unix:$cloud/api.sock
UPDRAFT_LOCAL_CLOUD_TOKEN=$(cat "$cloud/controller.token")
export UPDRAFT_LOCAL_CLOUD_TOKEN

step "The pool's settings: what init writes, and that anna may have annexes"
show updraft init --pool new --pool-name walk --driver local --cloud here --endpoint http://10.77.0.1:8774 \
    --image forky --flavor small --machines 8
cat >>updraft.toml <<'END'

[annexes]
users = ["anna"]
machines = 2
longest = "1h"
END
show updraft config check

step "The seed: a machine with HTCondor's central manager, the submit node, and updraft"
show updraft head launch seed --source image --role controller --user anna
show updraft head list
seed=$(updraft head list --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["heads"][0]["id"])')

step "anna submits jobs that ask for the annex lab; there is none, and no machine is bought for them"
quietly anna sh -c 'cat >annex.job' <"$here/annex.job"
as anna condor_submit annex.job
as anna condor_q
as root updraft explain 1.0

step "She asks for it, without a credential of the cloud: two machines for half an hour"
as anna updraft annex create lab --count 2 --duration 30m
await both_have_joined
as anna condor_status -annex lab
as root updraft status
as anna condor_wait annex.log
as anna sh -c 'cat annex.*.out'

step "It ends with its lease; or now"
as anna updraft annex status lab
as anna updraft annex delete lab
await it_is_forgotten
as root updraft status

step "The seed goes, with its queue and its disk"
show updraft head terminate seed --yes
show updraft local status --state "$cloud"

step "And the cloud"
