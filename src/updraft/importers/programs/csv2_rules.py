"""csv2's clouds, groups, metadata and aliases: what becomes of each of their columns."""

from updraft.importers.output.drafts import CLOUD, CLOUDS_YAML, CREDENTIALS
from updraft.importers.output.report import Fate
from updraft.importers.output.rules import Kind, Program, Rule
from updraft.importers.programs.cloudrules import alike, login, of_class, of_cloud

GROUP = "group"
METADATA = "metadata"
_QUOTA = "the cloud's own quota is asked at every look, and counts what others use of it"
_CASCADE = "counts where the cloud has none of its own: the group's"


CLOUD_RULES = (
    of_class(
        CLOUD,
        "group_name",
        "group",
        "attributes.group_name",
        "each group is a class of its own, and its machines advertise it: requirements = group_name =?= "
        '"…" go on',
    ),
    Rule(CLOUD, "cloud_name", Fate.REPLACED, f"the name of [clouds.{CLOUD}]"),
    of_cloud("cloud_type", "driver", "driver", "openstack, or amazon: ec2. Any other is left out"),
    of_cloud("enabled", "enabled", "enabled", "false: nothing is bought there", Kind.SWITCH),
    of_cloud("priority", "priority", "priority", "lower numbers first, as csv2 meant it", Kind.COUNT),
    of_cloud("cloud_priority", "priority", "priority", "lower numbers first, as csv2 meant it", Kind.COUNT),
    login("authurl", "auth_url", "auth_url", "; of EC2 the endpoint"),
    login("project", "project", "project_name"),
    login("project_domain_name", "project_domain", "project_domain_name"),
    login("project_domain_id", "project_domain_id", "project_domain_id"),
    login("username", "username", "username"),
    login("userid", "user_id", "user_id"),
    login("user_domain_name", "user_domain", "user_domain_name"),
    login("user_domain_id", "user_domain_id", "user_domain_id"),
    Rule(
        CLOUD,
        "password",
        Fate.SECRET,
        f"put it into {CLOUDS_YAML} on the head (mode 0600), of Amazon into {CREDENTIALS} under the "
        "cloud's name; better still, an application credential",
    ),
    Rule(CLOUD, "auth_type", Fate.REPLACED, "clouds.yaml: auth_type, where it is an application credential"),
    login("app_credentials", "application_credential", "application_credential_id"),
    Rule(
        CLOUD,
        "app_credentials_secret",
        Fate.SECRET,
        f"put it into {CLOUDS_YAML} on the head (mode 0600): application_credential_secret",
    ),
    Rule(
        CLOUD,
        "app_credentials_expiry",
        Fate.NOT_NEEDED,
        "the cloud knows it: `updraft check` logs in with it",
    ),
    Rule(CLOUD, "cacertificate", Fate.TAKEN, "of EC2 ca_bundle", "cacert", "clouds.yaml: cacert"),
    of_cloud("region", "region", "region", "the same"),
    of_cloud(
        "cores_ctl",
        "cores",
        "limits.cores",
        "cores at one time; -1 is no ceiling but the cloud's quota",
        Kind.COUNT,
    ),
    of_cloud(
        "cores_softmax",
        "cores",
        "limits.cores",
        "the least of the two; it counted other people's machines too, here only the pool's own count",
        Kind.COUNT,
    ),
    of_cloud(
        "ram_ctl",
        "memory",
        "limits.memory",
        "MiB of memory at one time; -1 is no ceiling but the cloud's quota",
        Kind.COUNT,
    ),
    Rule(
        CLOUD,
        "spot_price",
        Fate.REPLACED,
        'a class says whether it is for spot machines (markets = ["spot"]), spot_cap of the cloud what '
        "they may cost, and a job's +VMMaximumPrice is read",
    ),
    of_cloud(
        "vm_boot_volume",
        "root_volume",
        "root_volume",
        "boot from a volume of GBs, and GBs_per_core (root_volume_per_core) for each core; its type: "
        "volume_type",
    ),
    of_cloud(
        "vm_flavor",
        "flavors",
        "flavors",
        "more than one may stand here, and patterns: the cheapest that fits",
    ),
    of_cloud(
        "flavor_exclusions", "exclusions", "flavors", 'all but these, which "!" leaves out; patterns will do'
    ),
    Rule(CLOUD, "flavor_names", Fate.REPLACED, "the cloud is asked what there is"),
    of_class(CLOUD, "vm_image", "image", "image", "one image, or one for each cloud"),
    of_class(
        CLOUD,
        "vm_keep_alive",
        "idle_limit",
        "idle_limit",
        "less than 120 s is passed over, as by csv2: the group's counts then; for clouds with another time "
        "there is a class of its own",
        Kind.SECONDS,
    ),
    of_cloud("vm_keyname", "key_name", "key_name", "the key pair for logging in to the workers"),
    of_cloud("vm_network", "networks", "networks", "the network. EC2 has subnets instead"),
    of_cloud("vm_security_groups", "security_groups", "security_groups", "by name or id"),
    of_cloud("cascading_vm_flavor", "flavors", "flavors", _CASCADE),
    of_class(CLOUD, "cascading_vm_image", "image", "image", _CASCADE),
    of_class(CLOUD, "cascading_vm_keep_alive", "idle_limit", "idle_limit", _CASCADE, Kind.SECONDS),
    of_cloud("cascading_vm_keyname", "key_name", "key_name", _CASCADE),
    of_cloud("cascading_vm_network", "networks", "networks", _CASCADE),
    of_cloud("cascading_vm_security_groups", "security_groups", "security_groups", _CASCADE),
    Rule(
        CLOUD,
        "metadata_names",
        Fate.REPLACED,
        "layers: export the files too (`metadata`), or name each in [[classes.NAME.layers]]",
    ),
    Rule(
        CLOUD,
        "group_exclusions",
        Fate.REPLACED,
        "layers are a class's: one without them is a class of its own",
    ),
    *alike(
        CLOUD,
        Fate.NOT_NEEDED,
        _QUOTA,
        *("cores_max", "cores_used", "cores_foreign", "cores_native", "cores_idle", "ram_max", "ram_used"),
        *("ram_foreign", "ram_native", "ram_idle", "instances_max", "instances_used", "floating_ips_max"),
        *("floating_ips_used", "security_groups_max", "security_groups_used", "server_groups_max"),
        *("server_groups_used", "image_meta_max", "keypairs_max", "personality_max", "personality_size_max"),
        *("security_group_rules_max", "server_group_members_max", "server_meta_max"),
    ),
    *alike(
        CLOUD,
        Fate.NOT_NEEDED,
        "csv2 never used it",
        *("server_meta_ctl", "instances_ctl", "personality_ctl", "image_meta_ctl", "personality_size_ctl"),
        *("server_groups_ctl", "security_group_rules_ctl", "keypairs_ctl", "security_groups_ctl"),
        *(
            "server_group_members_ctl",
            "floating_ips_ctl",
            "obsolete_keyname",
            "keyname",
            "machine_subprocess_pid",
        ),
    ),
    *alike(
        CLOUD,
        Fate.NOT_NEEDED,
        "a state, no setting: `updraft status --clouds` says how a cloud is",
        *("communication_up", "communication_rt", "error_count", "error_time", "freeze", "current_time"),
    ),
    Rule(CLOUD, "ec2_owner_id", Fate.REPLACED, 'image_owners = ["self"] means the account itself'),
    *alike(
        CLOUD,
        Fate.NOT_NEEDED,
        "a part of vm_boot_volume",
        *("vm_boot_volume_type", "vm_boot_volume_size", "vm_boot_volume_per_core"),
    ),
)

GROUP_RULES = (
    of_class(GROUP, "group_name", "group", "attributes.group_name", "the class"),
    Rule(
        GROUP,
        "condor_central_manager",
        Fate.TAKEN,
        "as htcondor_fqdn, in csv2 2.0",
        "collector",
        "[pool] collector",
    ),
    Rule(
        GROUP,
        "htcondor_fqdn",
        Fate.TAKEN,
        "the host of the collector and the schedd",
        "collector",
        "[pool] collector",
    ),
    *alike(
        GROUP,
        Fate.NOT_NEEDED,
        "updraft runs on the head itself, and its workers join with tokens",
        *("htcondor_host_id", "htcondor_gsi_dn", "htcondor_gsi_eol", "htcondor_container_hostname"),
    ),
    Rule(
        GROUP,
        "htcondor_other_submitters",
        Fate.NOT_NEEDED,
        "whoever may submit to the schedd is served; HTCondor's ALLOW_… says who",
    ),
    *alike(
        GROUP,
        Fate.REPLACED,
        "jobs say what they need, and JOB_DEFAULT_REQUEST… of the schedd what is taken where they don't",
        *("job_cpus", "job_ram", "job_disk", "job_scratch", "job_swap"),
    ),
    Rule(GROUP, "vm_flavor", Fate.TAKEN, _CASCADE, "flavors", f"[clouds.{CLOUD}] flavors"),
    of_class(GROUP, "vm_image", "image", "image", _CASCADE),
    of_class(GROUP, "vm_keep_alive", "idle_limit", "idle_limit", _CASCADE, Kind.SECONDS),
    Rule(GROUP, "vm_keyname", Fate.TAKEN, _CASCADE, "key_name", f"[clouds.{CLOUD}] key_name"),
    Rule(GROUP, "vm_network", Fate.TAKEN, _CASCADE, "networks", f"[clouds.{CLOUD}] networks"),
    Rule(
        GROUP,
        "vm_security_groups",
        Fate.TAKEN,
        _CASCADE,
        "security_groups",
        f"[clouds.{CLOUD}] security_groups",
    ),
    Rule(GROUP, "public_visibility", Fate.NOT_NEEDED, "there is no page for the public"),
    Rule(GROUP, "metadata_names", Fate.REPLACED, "layers, as with a cloud's"),
)

METADATA_RULES = (
    Rule(
        METADATA, "metadata", Fate.TAKEN, "the site's own", "layer", "[[classes.NAME.layers]]", Kind.USER_DATA
    ),
    *alike(
        METADATA,
        Fate.REPLACED,
        "enabled files become layers, in the order of their priorities",
        *("group_name", "cloud_name", "metadata_name", "enabled", "priority"),
    ),
    Rule(METADATA, "mime_type", Fate.NOT_NEEDED, "a layer says by its first line what it is"),
    Rule(METADATA, "checksum", Fate.NOT_NEEDED, "the text itself is here"),
)

OTHER_RULES = (
    of_class(
        "alias",
        "alias_name",
        "alias",
        "clouds",
        "a class of its own on the alias's clouds; its machines advertise target_alias",
    ),
    Rule("alias", "clouds", Fate.REPLACED, "the clouds of that class"),
    Rule("exclusion", "flavor_name", Fate.REPLACED, "as flavor_exclusions of its cloud"),
)

NOTES = (
    (
        "+VMKeepAlive of jobs",
        Fate.LOOK,
        "it counts up to keep_alive_max of the class, which is idle_limit unless you say it",
    ),
    (
        "images and networks of jobs",
        Fate.LOOK,
        "any that a job named was booted; here a class says which a job may name: images_allowed, "
        "networks_allowed",
    ),
    (
        "one user's machines",
        Fate.REPLACED,
        "csv2's default metadata gave a machine to the user whose job it was started for; here that is so "
        "only for a class with owner_only = true",
    ),
    (
        "m1.small, defaults of the server",
        Fate.REPLACED,
        "where no flavor is named, csv2 took the smallest that fits; here the cheapest that fits is bought",
    ),
)

CSV2 = Program(
    "csv2",
    "csv2: clouds, group defaults, metadata, aliases",
    "csv2",
    (*CLOUD_RULES, *GROUP_RULES, *METADATA_RULES, *OTHER_RULES),
    NOTES,
)
