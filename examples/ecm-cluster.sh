#!/bin/bash
# ecm-cluster.sh
#
# ECM's cluster with updraft: from an ecm.conf to a master, here called head, and workers that come when jobs wait and
# go when none do. The cloud is the one on this machine, where ECM's guide has CloudVeneto. Needs root and mmdebstrap.
. "$(dirname "$(readlink -f "$0")")/here.sh"

step "A cloud"
show updraft local up

step "ecm.conf becomes updraft.toml, and what became of each key is told"
cp "$examples/ecm/ecm.conf" .
show updraft import ecm.conf >updraft.toml

step "What is left to say: the cloud; and the image, as in ECM's menu, which has HTCondor and no docker"
put_here ec2
show updraft images
sed -i -e 's/"choose-an-image"/"forky"/' -e '/^condor =/d' -e '/^universes =/d' updraft.toml
show cat updraft.toml
show updraft config check

step "The head, by one command: no user-data to fetch and no form to fill in"
launch_head master anna

step "anna logs in: there is the worker that MIN_VMS asks for, with JOBS_PER_VM slots"
two_slots() { [ "$(updraft local shell "$head" -- condor_status -af Name | wc -l)" = 2 ]; }
await two_slots as anna condor_status

step "She submits eight jobs, as ever; the cluster grows to MAX_VMS, and the jobs run to their end"
copy_to anna ecm/test.classad
as anna condor_submit test.classad
await no_jobs as root updraft status
as anna sh -c 'cat test.out.*'

step "IDLE_TIME later it has shrunk to MIN_VMS"
await "workers 1" as root updraft machines
as root updraft events

step "The end: the last worker, and the head"
as root updraft destroy --yes --wait
show updraft head terminate master --yes
show updraft local status
