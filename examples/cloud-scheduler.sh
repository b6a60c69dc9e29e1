#!/bin/bash
# cloud-scheduler.sh
#
# Cloud Scheduler's test drive with updraft: its configuration imported, its first demonstration job unchanged. The cloud
# is the one on this machine, where the test drive has DAIR. Needs root and mmdebstrap.
. "$(dirname "$(readlink -f "$0")")/here.sh"

step "A cloud"
show updraft local up

step "The old configuration becomes updraft.toml, and what became of each key is told"
cp "$examples"/cloud-scheduler/*.conf .
show updraft import cloud_scheduler.conf >updraft.toml
put_here alberta
show cat updraft.toml
show updraft config check

step "1. The head, instead of an instance of the CloudScheduler image"
launch_head cloud-scheduler guest

step "2. Nothing to edit there: this head's role lets it use the cloud, and no key of anybody's is on it"
as root updraft status --clouds

step "3. guest submits the job, as ever, and looks"
copy_to guest cloud-scheduler/demo-1.job demo-1.py
as guest condor_submit demo-1.job
look() {
    as root updraft machines
    as guest condor_status
    as guest condor_q
}
await no_jobs look
as guest cat demo-1.out

step "There are no more jobs: the machine goes by itself"
await "workers 0" as root updraft machines
await "told gone" as root updraft events

step "The end"
show updraft head terminate cloud-scheduler --yes
show updraft local status
