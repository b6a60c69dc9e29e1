"""cloud_scheduler.conf: what becomes of each of its keys. See `cs1_rules` for those of the clouds."""

from updraft.importers.output.drafts import CLOUD
from updraft.importers.output.report import Fate
from updraft.importers.output.rules import Kind, Rule
from updraft.importers.programs.cloudrules import alike, taken

_X509 = (
    "no X.509 proxies: workers join with a token, and a job's own proxy is HTCondor's to send and to renew"
)
_LOOK = "updraft looks at everything every 2 s ([timings] cycle), and a slow schedd less often"
_BAN = (
    "what fails rests, for 30 s at first and longer after each failure ([timings] cooldown_first), and a "
    "single machine goes out to try it again"
)
_LOG = "the journal has the log: `updraft service logs`; every decision with its reason: `updraft events`"
_SHARE = (
    "users get shares as the negotiator gives them, by their priorities in HTCondor: no metric of its own"
)

_G = "global"
GLOBAL_RULES = (
    taken(
        _G, "cloud_resource_config", "resources", "the file", "read with this one where it stands beside it"
    ),
    taken(
        _G,
        "condor_collector_url",
        "collector",
        "[pool] collector",
        "where it names another host than this one; else HTCondor's own configuration says it",
    ),
    *alike(
        _G,
        Fate.NOT_NEEDED,
        "HTCondor is asked through its own library; where it is, its configuration says ([pool] collector)",
        *("condor_retrieval_method", "condor_webservice_url", "condor_q_command", "condor_status_command"),
        "condor_status_master_command",
    ),
    *alike(
        _G,
        Fate.REPLACED,
        "HTCondor's own draining is used, on the head; no ssh, and no job is held because of a machine",
        *("condor_hold_command", "condor_release_command", "condor_off_command", "condor_on_command"),
        *("ssh_path", "cloudscheduler_ssh_key", "graceful_shutdown_method"),
    ),
    Rule(
        _G, "condor_advertise_command", Fate.REPLACED, "ads of a machine that is gone are invalidated at once"
    ),
    *alike(
        _G,
        Fate.REPLACED,
        "each worker is told at its boot where its head is: [pool] collector",
        "condor_host_on_vm",
        "condor_context_file",
    ),
    *alike(
        _G,
        Fate.NOT_NEEDED,
        _X509,
        *("openssl_path", "use_pyopenssl", "cert_file", "key_file", "cert_file_on_vm", "key_file_on_vm"),
        *("ca_root_certs", "ca_signing_policies", "proxy_cache_dir", "myproxy_logon_command"),
        *("job_proxy_refresher_interval", "job_proxy_renewal_threshold", "vm_proxy_refresher_interval"),
        *("vm_proxy_renewal_threshold", "vm_proxy_shutdown_threshold"),
    ),
    taken(
        _G,
        "vm_lifetime",
        "lifetime",
        "[classes.NAME] lifetime",
        "in minutes; then a machine closes to new jobs, and is replaced when its jobs are done. 0 was none: "
        "7d here",
        Kind.SECONDS,
    ),
    *alike(
        _G,
        Fate.REPLACED,
        "a machine closes to new jobs at its lifetime, and its jobs may run on for drain_deadline: no "
        "guess from the run times of other jobs",
        "retire_before_lifetime",
        "retire_before_lifetime_factor",
    ),
    *alike(
        _G,
        Fate.REPLACED,
        "no port is open: `updraft` reads the ledger, as whoever may read it",
        "info_server_port",
        "admin_server_port",
    ),
    Rule(_G, "persistence_file", Fate.REPLACED, "the ledger in [pool] state_dir; it may be lost"),
    taken(
        _G, "user_limit_file", "user_limits", "[users.NAME] machines", "read where it stands beside this file"
    ),
    taken(_G, "target_cloud_alias_file", "aliases", "the file", "read where it stands beside this file"),
    taken(
        _G,
        "condor_register_time_limit",
        "register",
        "[classes.NAME] boot_deadline",
        "in minutes; 300 and more is taken for seconds, with a row to look at. No machine has longer; "
        "the deadline in force is learned from real boots",
        Kind.SECONDS,
    ),
    *alike(
        _G,
        Fate.REPLACED,
        _BAN,
        "job_ban_timeout",
        "ban_tracking",
        "ban_file",
        "ban_min_track",
        "ban_failrate_threshold",
        "connection_fail_disable_time",
        "vm_connection_fail_threshold",
    ),
    Rule(
        _G,
        "polling_error_threshold",
        Fate.REPLACED,
        "a machine in error is ended at once, and the rest goes on",
    ),
    Rule(_G, "vm_start_running_timeout", Fate.REPLACED, "boot_deadline holds from the request to the join"),
    Rule(
        _G,
        "graceful_shutdown",
        Fate.NOT_NEEDED,
        "always: no running job is ended because machines are given back",
    ),
    Rule(
        _G,
        "cleanup_missing_vms",
        Fate.NOT_NEEDED,
        "the clouds' tags say which machines are the pool's, also when the ledger was lost",
    ),
    Rule(
        _G,
        "retire_missing_vms",
        Fate.REPLACED,
        "a machine that the pool has lost ends only when no job has a lease there",
    ),
    Rule(
        _G, "scheduling_algoritm", Fate.NOT_NEEDED, "misspelled so in the sample; Cloud Scheduler ignored it"
    ),
    Rule(
        _G,
        "clean_shutdown_idle",
        Fate.REPLACED,
        "no machine is bought for a job that would not match it; `updraft explain JOB` says why it waits",
    ),
    Rule(
        _G,
        "vm_idle_threshold",
        Fate.REPLACED,
        "a machine without a claim goes after idle_limit, whatever waits",
    ),
    *alike(
        _G,
        Fate.REPLACED,
        _SHARE,
        *("scheduling_metric", "scheduling_algorithm", "job_distribution_type", "cpu_distribution_weight"),
        *("memory_distribution_weight", "storage_distribution_weight"),
    ),
    taken(
        _G,
        "high_priority_job_support",
        "high_priority",
        "[pool] high_priority_users",
        "whose +VMHighPriority counts",
    ),
    Rule(
        _G, "high_priority_job_weight", Fate.REPLACED, "there is no weight: jobs of high priority come first"
    ),
    *alike(
        _G,
        Fate.NOT_NEEDED,
        _LOOK,
        *("scheduler_interval", "vm_poller_interval", "job_poller_interval", "machine_poller_interval"),
        "cleanup_interval",
    ),
    Rule(
        _G,
        "max_starting_vm",
        Fate.REPLACED,
        "limits hold at every moment, also for machines on their way; of an image that never booted there "
        "are at most [timings] trial at a time",
    ),
    Rule(_G, "max_destroy_threads", Fate.NOT_NEEDED, "machines are ended many in one call"),
    taken(
        _G,
        "max_keepalive",
        "keepalive_ceiling",
        "[classes.NAME] keep_alive_max",
        "no cloud's vm_keep_alive and no job's +VMKeepAlive counts for more; 1h where the file doesn't say "
        "it. 0: no machine was kept; none of the two is written",
        Kind.SECONDS,
    ),
    Rule(
        _G,
        "retire_reallocate",
        Fate.REPLACED,
        "a machine that drains takes no new job; `updraft undrain` takes it back",
    ),
    Rule(
        _G,
        "adjust_insufficient_resources",
        Fate.NOT_NEEDED,
        "quotas are asked of the cloud, not counted down",
    ),
    Rule(
        _G,
        "override_vmtype",
        Fate.REPLACED,
        "a machine advertises the VMType of its class, or of the job that it was made for",
    ),
    Rule(
        _G,
        "vm_reqs_from_condor_reqs",
        Fate.REPLACED,
        "requirements and request_* are evaluated as HTCondor does",
    ),
    *alike(
        _G,
        Fate.NOT_NEEDED,
        "always: user-data is cloud-init's, and is checked",
        "use_cloud_init",
        "validate_yaml",
    ),
    taken(
        _G,
        "default_yaml",
        "default_yaml",
        "[[classes.NAME.layers]]",
        "read where it stands beside this file; what sets HTCondor up is updraft's own work",
        Kind.USER_DATA,
    ),
    *alike(_G, Fate.NOT_NEEDED, "a service of its own that is gone", "getclouds", "monitor_url"),
    *alike(
        _G,
        Fate.NOT_NEEDED,
        "a key of Nimbus, which is gone",
        "workspace_path",
        "image_attach_device",
        "scratch_attach_device",
    ),
)

_J = "job"
JOB_RULES = (
    taken(
        _J,
        "default_VMType",
        "vmtype",
        "[classes.NAME] vm_types",
        'the class is called so, and its machines advertise it: requirements = VMType =?= "…" go on',
    ),
    taken(_J, "default_VMAMI", "images", "[classes.NAME] image", "one image, or one for each cloud"),
    taken(
        _J,
        "default_VMInstanceType",
        "flavor",
        f"[clouds.{CLOUD}] flavors",
        "more than one may stand here, and patterns: the cheapest that fits is bought",
    ),
    taken(_J, "default_VMInstanceTypeList", "flavors", f"[clouds.{CLOUD}] flavors", "the same, by cloud"),
    taken(_J, "default_VMNetwork", "network", f"[clouds.{CLOUD}] networks", "on every OpenStack cloud"),
    taken(_J, "default_TargetClouds", "targets", "[classes.NAME] clouds", "the class may run on these"),
    taken(
        _J,
        "default_VMAMIConfig",
        "layer",
        "[[classes.NAME.layers]]",
        "a file of the site's; name it with the others to have it read",
        Kind.USER_DATA,
    ),
    Rule(
        _J,
        "default_VMUserData",
        Fate.REPLACED,
        "nothing is fetched by the controller: put the file beside updraft.toml, and name it in layers",
    ),
    *alike(
        _J,
        Fate.NOT_NEEDED,
        "the image and the flavor say it",
        *("default_VMCPUArch", "default_VMHypervisor", "default_VMLoc"),
    ),
    Rule(_J, "default_VMName", Fate.NOT_NEEDED, "machines are named by updraft, after their class"),
    *alike(
        _J,
        Fate.REPLACED,
        "jobs say what they need (request_cpus, request_memory, request_disk), and JOB_DEFAULT_REQUEST… of "
        "the schedd what is taken where they don't",
        "default_VMMem",
        "default_VMCPUCores",
        "default_VMStorage",
    ),
    Rule(
        _J,
        "default_VMMaximumPrice",
        Fate.REPLACED,
        'spot machines are for classes that say so (markets = ["spot"]); a job\'s own +VMMaximumPrice '
        "is read",
    ),
    *alike(_J, Fate.NOT_NEEDED, _X509, "default_VMProxyNonBoot", "default_VMInjectCA"),
    Rule(
        _J,
        "default_VMJobPerCore",
        Fate.REPLACED,
        'a machine has one slot that is cut to what jobs ask for (slots = "partitionable")',
    ),
)

LOGGING_RULES = (
    *alike(
        "logging",
        Fate.NOT_NEEDED,
        _LOG,
        *("log_level", "log_location", "log_location_cloud_admin", "log_stdout", "log_syslog"),
        *("log_max_size", "log_format"),
    ),
    Rule("logging", "admin_log_comments", Fate.REPLACED, "the ledger has every action with its reason"),
)
