# Runs at every boot before anything of ours is written and before HTCondor can start.
id=$(cat /var/lib/cloud/data/instance-id 2>/dev/null)
case $id in
    "" | *[!A-Za-z0-9._:-]*) ;; # the boot script reports it
    *)
        mkdir -p /etc/condor/config.d
        # In the slots' names too: host names come back, and a job's RemoteHost is all that a schedd remembers.
        # A name without an @ would be looked up in the DNS first, which takes 10 s where there is none.
        # shellcheck disable=SC2016  # the macro is HTCondor's
        printf 'UpdraftInstance = "%s"\nSTARTD_NAME = %s@$(FULL_HOSTNAME)\n' "$id" "$id" \
            >/etc/condor/config.d/91-updraft-instance.conf
        ;;
esac
# Enterprise Linux 8 may have no python3 but the one for its own tools, which is what cloud-init runs on.
[ -e /usr/bin/python3 ] || ln -s /usr/libexec/platform-python /usr/bin/python3
# An image may start HTCondor by itself: it has to wait until the site's own layers have run. And where the
# metadata address can't be closed, it doesn't start at all.
mkdir -p /etc/systemd/system/condor.service.d
printf '%s\n' '[Unit]' ConditionPathExists=/var/lib/updraft/booted \
    '[Service]' 'ExecStartPre=/bin/sh /usr/local/lib/updraft/close-metadata' \
    >/etc/systemd/system/condor.service.d/updraft.conf
# At later boots: at the first one, the boot script does it.
[ ! -e /usr/local/lib/updraft/close-drives ] || echo ExecStartPre=/bin/sh /usr/local/lib/updraft/close-drives \
    >>/etc/systemd/system/condor.service.d/updraft.conf
systemctl daemon-reload 2>/dev/null || :
# What was mounted at the last boot isn't yet at this one.
rm -f /etc/condor/config.d/92-updraft-cvmfs.conf
# Where there is no room for what is written next, nothing else of ours will ever say so.
if [ ! -e /var/lib/updraft/booted ]; then
    mkdir -p /run/updraft /var/lib/updraft
    if ! head -c 262144 /dev/zero 2>/dev/null >/var/lib/updraft/room; then
        why="the disk is full"
        echo "$why" >/run/updraft/failed
        why="updraft-boot: FAILED: $why"
        echo "$why"
        [ ! -c /dev/console ] || echo "$why" 2>/dev/null >/dev/console || :
    fi
    rm -f /var/lib/updraft/room
fi
