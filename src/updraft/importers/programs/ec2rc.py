"""ec2rc.sh, which exports a cloud's address and credentials: what becomes of each of its variables."""

from updraft.importers.output.report import Fate
from updraft.importers.output.rules import Rule
from updraft.importers.programs.targets import ENDPOINT

CREDENTIALS = (
    "into /root/.aws/credentials on the head (mode 0600), where updraft's service finds it; for a shell, "
    "`source ec2rc.sh` is enough"
)
_SIGNED = "requests are signed with the access key; certificates of one's own are a thing of the past"

EC2RC = (
    ENDPOINT.of("", "EC2_URL"),
    Rule("", "EC2_ACCESS_KEY", Fate.SECRET, f"put it {CREDENTIALS}"),
    Rule("", "EC2_SECRET_KEY", Fate.SECRET, f"put it {CREDENTIALS}"),
    Rule("", "AWS_ACCESS_KEY", Fate.SECRET, f"put it {CREDENTIALS}"),
    Rule("", "AWS_SECRET_KEY", Fate.SECRET, f"put it {CREDENTIALS}"),
    Rule("", "EC2_USER_ID", Fate.NOT_NEEDED, "images are bundled by other tools"),
    Rule("", "EC2_PRIVATE_KEY", Fate.NOT_NEEDED, _SIGNED),
    Rule("", "EC2_CERT", Fate.NOT_NEEDED, _SIGNED),
    Rule(
        "",
        "NOVA_CERT",
        Fate.NOT_NEEDED,
        "if the endpoint's authority is the site's own: [clouds.ec2] ca_bundle",
    ),
    Rule("", "EUCALYPTUS_CERT", Fate.NOT_NEEDED, "if the endpoint's authority is the site's own: ca_bundle"),
    Rule("", "S3_URL", Fate.NOT_NEEDED, "updraft keeps nothing in an object store"),
    Rule("", "NOVARC", Fate.NOT_NEEDED, "a helper of ec2rc.sh itself"),
    Rule("", "NOVA_KEY_DIR", Fate.NOT_NEEDED, "a helper of ec2rc.sh itself"),
)
