# Which of the collectors this machine reports to, for all its life: as sizing's `child_of`, which a test holds to it.
case $id in
    "" | *[!A-Za-z0-9._:-]*) ;;
    *)
        sum=$(printf %s "$id" | sha256sum | cut -c 1-7)
        # shellcheck disable=SC2016,SC2154  # the macro is HTCondor's, the number stands before this file
        printf 'COLLECTOR_HOST = $(CONDOR_HOST)?sock=collector%d\n' "$((0x$sum % children + 1))" \
            >>/etc/condor/config.d/91-updraft-instance.conf
        ;;
esac
