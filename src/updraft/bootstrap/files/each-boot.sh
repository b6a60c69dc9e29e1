#!/bin/sh
# Started by cloud-init at every boot, ahead of the site's scripts: a boot that hangs is ended too.
sh /usr/local/lib/updraft/close-metadata
# Enterprise Linux 8 may have no python3 but the one for its own tools, which is what cloud-init runs on.
[ -e /usr/bin/python3 ] || ln -s /usr/libexec/platform-python /usr/bin/python3
systemctl enable updraft-guard.service || :
systemctl start updraft-guard.service
# A public address may be another one at each boot.
if [ -e /usr/local/lib/updraft/public-address ] && [ -e /var/lib/updraft/booted ]; then
    python3 -I /usr/local/lib/updraft/public-address && condor_reconfig
fi
# Mounts end with a boot. The first one leaves it to the boot script, once the client is there.
if [ -e /usr/local/lib/updraft/cvmfs ] && [ -e /var/lib/updraft/booted ]; then
    sh /usr/local/lib/updraft/cvmfs || :
fi
