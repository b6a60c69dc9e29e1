#!/bin/sh
# Started by cloud-init at every boot, after the guard and ahead of the site's scripts.
systemctl enable updraft-lease.service || :
systemctl start updraft-lease.service
