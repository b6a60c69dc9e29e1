"""cloud_resources.conf: what becomes of each of its keys; and the whole program with cs1_settings."""

from updraft.importers.output.drafts import CLOUD, CLOUDS_YAML, CREDENTIALS
from updraft.importers.output.report import Fate
from updraft.importers.output.rules import Kind, Program, Rule
from updraft.importers.programs.cloudrules import alike, login, of_cloud, taken
from updraft.importers.programs.cs1_settings import GLOBAL_RULES, JOB_RULES, LOGGING_RULES

_NO_DRIVER = "of a cloud that no driver here speaks to (Google, Azure, StratusLab, Nimbus, OpenNebula)"

CLOUD_RULES = (
    of_cloud(
        "cloud_type",
        "driver",
        "driver",
        "OpenStackNative: openstack. AmazonEC2, Eucalyptus and OpenStack (its EC2 interface): ec2. To any "
        "other no driver here speaks, and the cloud is left out",
    ),
    of_cloud(
        "host",
        "endpoint",
        "endpoint",
        "the address of the EC2 endpoint, from host, port and secure_connection",
    ),
    Rule(CLOUD, "port", Fate.REPLACED, "a part of endpoint; 8773 where the file doesn't say it"),
    Rule(CLOUD, "secure_connection", Fate.REPLACED, "a part of endpoint: https where it is true, else http"),
    of_cloud("regions", "region", "region", "the first, as before"),
    of_cloud("placement_zone", "zones", "zones", "the availability zone; more than one may stand here"),
    of_cloud("networks", "networks", "networks", "the first, as before. EC2 has subnets instead"),
    of_cloud("security_group", "security_groups", "security_groups", "by name or id"),
    of_cloud("key_name", "key_name", "key_name", "the key pair for logging in to the workers"),
    *alike(
        CLOUD,
        Fate.SECRET,
        f"put it into {CREDENTIALS} on the head (mode 0600), under the cloud's name: profile says so",
        "access_key_id",
        "secret_access_key",
    ),
    login("auth_url", "auth_url", "auth_url"),
    login("username", "username", "username"),
    Rule(
        CLOUD,
        "password",
        Fate.SECRET,
        f"put it into {CLOUDS_YAML} on the head (mode 0600); better still, an application credential",
    ),
    login("tenant_name", "project", "project_name"),
    login("user_domain_name", "user_domain", "user_domain_name"),
    login("project_domain_name", "project_domain", "project_domain_name"),
    Rule(
        CLOUD,
        "cacert",
        Fate.TAKEN,
        "the file of the authority's certificates",
        "cacert",
        "clouds.yaml: cacert",
    ),
    of_cloud("vm_slots", "machines", "limits.machines", "machines of this pool at one time", Kind.COUNT),
    of_cloud("total_cpu_cores", "cores", "limits.cores", "cores at one time; below 0 no ceiling", Kind.COUNT),
    *alike(
        CLOUD,
        Fate.REPLACED,
        "it said how large one machine there could be: the cloud's flavors say that, and flavors = […] "
        "which of them may be bought",
        "cpu_cores",
        "max_vm_mem",
        "max_vm_storage",
        "cpu_archs",
    ),
    *alike(
        CLOUD,
        Fate.REPLACED,
        "the cloud's own quota is asked instead, and counts what others use of it",
        "memory",
        "storage",
    ),
    of_cloud("priority", "priority", "priority", "lower numbers first, as before", Kind.COUNT),
    taken(
        CLOUD,
        "vm_keep_alive",
        "idle_limit",
        "[classes.NAME] idle_limit",
        "in minutes; for clouds with another time there is a class of its own. A job's +VMKeepAlive goes "
        "before it",
        Kind.SECONDS,
    ),
    taken(
        CLOUD,
        "boot_timeout",
        "boot_deadline",
        "[classes.NAME] boot_deadline",
        "together with condor_register_time_limit; the deadline in force is learned from real boots",
        Kind.SECONDS,
    ),
    of_cloud(
        "enabled", "enabled", "enabled", "until 1.10.1; later versions began with none enabled", Kind.SWITCH
    ),
    Rule(CLOUD, "vm_lifetime", Fate.REPLACED, "the one of cloud_scheduler.conf is what was used: lifetime"),
    Rule(
        CLOUD, "reverse_dns_lookup", Fate.NOT_NEEDED, "machines are known by their ids, never by host names"
    ),
    *alike(
        CLOUD,
        Fate.NOT_NEEDED,
        "a key of Nimbus and StratusLab, which are gone",
        "hypervisor",
        "vm_domain_name",
        "contextualization",
        "image_attach_device",
        "scratch_attach_device",
        "temp_lease_storage",
    ),
    *alike(CLOUD, Fate.SECRET, _NO_DRIVER, "keycert", "secret_file", "auth_dat_file"),
    *alike(CLOUD, Fate.NOT_NEEDED, _NO_DRIVER, "blob_url", "service_name", "project_id"),
)

NOTES = (
    (
        "images and networks of jobs",
        Fate.LOOK,
        "any that a job named was booted; here a class says which a job may name: images_allowed, "
        "networks_allowed",
    ),
    (
        "clouds at the start",
        Fate.REPLACED,
        "Cloud Scheduler started with every cloud disabled, until `cloud_admin -e`; here a cloud is used "
        "unless enabled = false",
    ),
    (
        "m1.small",
        Fate.REPLACED,
        "Cloud Scheduler took it where neither job nor file named a flavor; here the cheapest that fits is "
        "bought",
    ),
    (
        "one job, one machine",
        Fate.REPLACED,
        "jobs share machines as far as they fit: machines are bought for what jobs ask for, not one for each",
    ),
)

CLOUD_SCHEDULER = Program(
    "Cloud Scheduler",
    "cloud_resources.conf and cloud_scheduler.conf",
    "cloudscheduler",
    (*CLOUD_RULES, *GLOBAL_RULES, *JOB_RULES, *LOGGING_RULES),
    NOTES,
)
