"""Which names a site's own machine attributes may have.

They become lines of HTCondor's configuration: one that is called like a setting would change the machine
instead of describing it, its MAXJOBRETIREMENTTIME or its security for instance.
"""

import re

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BEGINNINGS = (
    *("updraft", "allow_", "claim_", "condor_", "deny_", "master_", "num_slots", "sec_", "shared_port"),
    *("slot_type_", "startd_", "starter_"),
)
# fmt: off
_TAKEN = frozenset(
    {
        "dollar", "start", "rank", "requirements", "suspend", "continue", "preempt", "kill", "want_suspend",
        "want_vacate", "memory", "disk", "num_cpus", "daemon_list", "condor_host", "trust_domain",
        "uid_domain", "filesystem_domain", "startd_attrs", "execute", "spool", "log", "lock", "run", "bin",
        "sbin", "lib", "libexec", "etc", "hostname", "full_hostname", "ip_address", "maxjobretirementtime",
        "machinemaxvacatetime", "runbenchmarks", "update_interval", "singularity", "docker", "collector_host",
        "annexname", "isannex", "docker_perform_test", "singularity_extra_arguments", "use",
        "starter", "nobody_slot_user", "dedicated_execute_account_regexp"
    }
)
# fmt: on


def is_taken(name: str) -> bool:
    """True for a name that means something to HTCondor's configuration, or is updraft's own."""
    return name.lower() in _TAKEN or name.lower().startswith(_BEGINNINGS)
