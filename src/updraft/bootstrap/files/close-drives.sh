# Unmount the drive on which the user-data came (OpenStack's config drive, NoCloud's seed), wherever an image has
# it mounted: whoever may read there, reads them. cloud-init mounts it by itself, for itself alone. Runs before
# each start of HTCondor. Where one stays mounted is said on the standard output.
for label in config-2 CONFIG-2 cidata CIDATA; do
    for drive in $(blkid -c /dev/null -o device -t "LABEL=$label"); do
        # It may be mounted in several places, and in one place twice.
        while umount -l "$drive" 2>/dev/null; do :; done
        ! findmnt -n -o TARGET -S "$drive" || exit 1
    done
done
