"""One launch, once: a single RunInstances with token and tags, as far as the endpoint takes them."""

import hashlib
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from botocore.exceptions import ClientError

from updraft.clouds.base import TAG_CLASS, TAG_LAUNCH, TAG_LEASE, TAG_POOL, LaunchRequest
from updraft.clouds.ec2.capabilities import Capabilities, learn_from_launch
from updraft.clouds.ec2.client import Answer, Connection
from updraft.clouds.ec2.editing import write_tags
from updraft.clouds.ec2.errors import code_of, kind_of
from updraft.clouds.ec2.images import Images
from updraft.clouds.ec2.listing import Listing
from updraft.clouds.ec2.prices import Prices
from updraft.clouds.ec2.reading import instance_of, tags_of
from updraft.clouds.ec2.settings import GIB, Feature, Settings
from updraft.core.model import Instance
from updraft.errors import BadRequest, CloudError, CloudUnavailable, NoCapacity, QuotaExceeded

LONGEST_TOKEN = 64
USER_DATA_LIMIT = 16 * 1024
_PLAIN_KEY = re.compile(r"[A-Za-z0-9+=.,_:@-]+")


class Launcher:
    """Makes machines of one pool."""

    def __init__(
        self,
        cloud: str,
        pool: str,
        settings: Settings,
        connection: Connection,
        known: Capabilities,
        listing: Listing,
        images: Images,
        prices: Prices,
    ) -> None:
        self._cloud = cloud
        self._pool = pool
        self._settings = settings
        self._connection = connection
        self._known = known
        self._listing = listing
        self._images = images
        self._prices = prices

    def launch(self, request: LaunchRequest) -> tuple[Instance, ...]:
        """See the driver's contract."""
        self._check(request)
        tags = self.tags(request)
        token = client_token(request.key)
        with self._connection.translate(f"launching {request.count} × {request.flavor} in {request.zone}"):
            if not self._known.has("client-token"):
                earlier = self._listing.of_launch(request.key, token)
                if earlier:
                    return earlier
            answer = self._asked(request, tags, token)
        made = list(answer.get("Instances", ()))
        self._listing.made(one["InstanceId"] for one in made)
        learn_from_launch(self._known, self._features(request), made, self._tokens)
        return self._tagged(made, tags)

    def tags(self, request: LaunchRequest) -> dict[str, str]:
        """The tags of the machines: the site's, a name to read, and updraft's own."""
        name = f"{self._pool}-{request.tags.get(TAG_CLASS, '') or 'worker'}"
        own = {**request.tags, TAG_POOL: self._pool, TAG_LAUNCH: request.key}
        return {"Name": name, **self._settings.tags, **own}

    # ------------------------------------------------------------------------------------------- asking

    def _asked(self, request: LaunchRequest, tags: Mapping[str, str], token: str) -> Answer:
        """The answer to RunInstances, asked again without what the endpoint refuses to know.

        A refusal made nothing, so asking again is safe; anything else is not repeated.
        """
        while True:
            features = self._features(request)
            parameters = self._parameters(request, tags, token)
            self._connection.without_token = not self._known.may("client-token")
            try:
                return self._connection.ask("run_instances", once=True, **parameters)
            except ClientError as error:
                if code_of(error) == "IdempotentParameterMismatch":
                    return self._earlier(request.key, token, error)
                part = self._made_before(error, token)
                if part:
                    return {"Instances": part}
                lacking = self._known.refused(error, features)
                if lacking is None or lacking == "spot":
                    raise
                if lacking == "client-token" and self._listing.of_launch(request.key, token):
                    return self._earlier(request.key, token, error)

    def _earlier(self, key: str, token: str, error: ClientError) -> Answer:
        """The machines of an earlier call with this key, which differed in its user-data (a new token)."""
        found = [
            raw
            for raw, tags in self._listing.look().ours
            if tags.get(TAG_LAUNCH) == key or raw.get("ClientToken") == token
        ]
        if not found:
            raise CloudUnavailable(
                f"cloud {self._cloud}: launch {key} was asked for before, and its machines aren't listed yet"
            ) from error
        return {"Instances": found}

    def _made_before(self, error: ClientError, token: str) -> list[Mapping[str, Any]]:
        """What a call has made that was refused in the middle of it.

        OpenStack's ec2-api makes instances one by one. Where the quota or the room ends, it says so without a
        word of those that it has made and keeps.
        """
        stopped = issubclass(kind_of(error), QuotaExceeded | NoCapacity)
        if not stopped or self._connection.amazon or not self._known.may("client-token"):
            return []
        return self._listing.of_token(token)

    def _tagged(self, made: list[Mapping[str, Any]], tags: Mapping[str, str]) -> tuple[Instance, ...]:
        """The machines made; those without their tags get them now, or as soon as they can be written."""
        bare = [one["InstanceId"] for one in made if TAG_POOL not in tags_of(one)]
        if bare:
            try:
                unwritten = write_tags(self._connection, bare, tags)
            except CloudError:  # they are there and ours all the same: to fail now would hide them
                unwritten = bare
            self._listing.owe(unwritten, tags)
        return tuple(instance_of(one, {**tags, **tags_of(one)}, self._cloud) for one in made)

    # --------------------------------------------------------------------------------------- parameters

    def _features(self, request: LaunchRequest) -> tuple[Feature, ...]:
        wanted: list[Feature] = ["client-token", "tag-on-create", "metadata-options", "shutdown-behavior"]
        if request.market == "spot":
            wanted.append("spot")
        if TAG_LEASE in request.tags and shows_tags(self.tags(request)):
            wanted.insert(0, "metadata-tags")  # ahead of the options that it is one of
        return tuple(feature for feature in wanted if self._known.may(feature))

    def _parameters(self, request: LaunchRequest, tags: Mapping[str, str], token: str) -> dict[str, Any]:
        found: dict[str, Any] = {
            "ImageId": self._images.resolve(request.image),
            "InstanceType": request.flavor,
            "MinCount": 1,
            "MaxCount": request.count,
            "UserData": request.user_data,
            **self._place(request),
            **self._site(request.image),
        }
        extras: dict[Feature, dict[str, Any]] = {
            "client-token": {"ClientToken": token},
            "tag-on-create": {
                "TagSpecifications": [
                    {
                        "ResourceType": kind,
                        "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
                    }
                    for kind in self._tagged_kinds
                ]
            },
            "metadata-options": {
                "MetadataOptions": {"HttpTokens": self._tokens, "HttpPutResponseHopLimit": 1}
            },
            "shutdown-behavior": {"InstanceInitiatedShutdownBehavior": self._settings.on_shutdown},
            "spot": {"InstanceMarketOptions": self._spot(request.flavor)},
        }
        features = self._features(request)
        for feature in features:
            found |= extras.get(feature, {})
        if {"metadata-tags", "metadata-options"} <= set(features):
            found["MetadataOptions"] = {**found["MetadataOptions"], "InstanceMetadataTags": "enabled"}
        return found

    @property
    def _tagged_kinds(self) -> tuple[str, ...]:
        """What gets the tags with the launch. A volume may outlive its machine where the image says so.

        Of other services than Amazon's it is known only of machines that they take tags for them.
        """
        return ("instance", "volume") if self._connection.amazon else ("instance",)

    @property
    def _tokens(self) -> str:
        """Whether the metadata service is to want a token (IMDSv2).

        cloud-init gets one only where its Ec2 source takes the machine for Amazon's (in DataSourceEc2.py,
        `_maybe_fetch_api_token` by IDMSV2_SUPPORTED_CLOUD_PLATFORMS, which is ["aws"]): where the system UUID
        begins with "ec2" (`identify_aws`). On all others, known by name or not, it asks by version 1, and a
        service that wants a token answers 401 until it gives up.
        """
        return self._settings.metadata_tokens or ("required" if self._connection.amazon else "optional")

    def _place(self, request: LaunchRequest) -> dict[str, Any]:
        """Zone and network."""
        settings, zone = self._settings, request.zone
        subnet = request.network or settings.subnets.get(zone)
        wanted = request.security_groups or settings.security_groups
        groups = {"Groups": list(wanted)} if wanted else {}
        if settings.public_address is not None:
            network = {"DeviceIndex": 0, "AssociatePublicIpAddress": settings.public_address, **groups}
            where = {"SubnetId": subnet} if subnet else {}
            placement = {} if subnet or not zone else {"Placement": {"AvailabilityZone": zone}}
            return {"NetworkInterfaces": [network | where], **placement}
        found: dict[str, Any] = {}
        if subnet:
            found["SubnetId"] = subnet
        elif zone:
            found["Placement"] = {"AvailabilityZone": zone}
        if groups:
            by_id = wanted[0].startswith("sg-")
            found["SecurityGroupIds" if by_id else "SecurityGroups"] = groups["Groups"]
        return found

    def _site(self, image: str) -> dict[str, Any]:
        """What the site has set for every machine."""
        settings = self._settings
        found: dict[str, Any] = {}
        if settings.key_name:
            found["KeyName"] = settings.key_name
        if settings.instance_profile:
            by = "Arn" if settings.instance_profile.startswith("arn:") else "Name"
            found["IamInstanceProfile"] = {by: settings.instance_profile}
        if settings.launch_template:
            by = "LaunchTemplateId" if settings.launch_template.startswith("lt-") else "LaunchTemplateName"
            found["LaunchTemplate"] = {
                by: settings.launch_template,
                "Version": settings.launch_template_version,
            }
        if settings.root_volume is not None:
            device, least = self._images.root(image)
            size = max(least, math.ceil(int(settings.root_volume) / GIB))
            found["BlockDeviceMappings"] = [
                {"DeviceName": device, "Ebs": {"VolumeSize": size, "DeleteOnTermination": True}}
            ]
        return found

    def _spot(self, flavor: str) -> dict[str, Any]:
        options: dict[str, Any] = {
            "SpotInstanceType": "one-time",
            "InstanceInterruptionBehavior": "terminate",
        }
        cap = self._prices.spot_cap(flavor)
        if cap is not None:
            options["MaxPrice"] = f"{cap:.6f}"
        return {"MarketType": "spot", "SpotOptions": options}

    def _check(self, request: LaunchRequest) -> None:
        if len(request.user_data) > USER_DATA_LIMIT:
            raise BadRequest(
                f"cloud {self._cloud}: the user-data has {len(request.user_data)} bytes, and EC2 takes "
                f"{USER_DATA_LIMIT}: make the class's layers smaller"
            )
        subnets = self._settings.subnets
        if request.network:
            self._check_subnet(request)
        elif subnets and request.zone not in subnets:
            raise BadRequest(
                f"cloud {self._cloud}: there is no subnet for zone {request.zone} in the settings"
            )
        if not all(group.startswith("sg-") for group in request.security_groups):
            raise BadRequest(f"cloud {self._cloud}: security groups of a launch are given by id (sg-…)")
        if request.market == "spot" and not self._known.may("spot"):
            raise BadRequest(f"cloud {self._cloud} has no spot market; take spot out of the class's markets")

    def _check_subnet(self, request: LaunchRequest) -> None:
        network, subnets = request.network, self._settings.subnets
        if not network.startswith("subnet-"):
            raise BadRequest(f"cloud {self._cloud}: {network} is no subnet (subnet-…)")
        if network in subnets.values() and subnets.get(request.zone) != network:
            raise BadRequest(f"cloud {self._cloud}: {network} isn't in zone {request.zone}")


def shows_tags(keys: Iterable[str]) -> bool:
    """Whether the metadata service can show tags with these keys; a launch that asks for others fails."""
    return all(_PLAIN_KEY.fullmatch(key) for key in keys)


def client_token(key: str) -> str:
    """The launch key as EC2 takes it: at most 64 ASCII characters; a longer one by its hash."""
    if len(key) <= LONGEST_TOKEN and key.isascii() and key.isprintable():
        return key
    return hashlib.sha256(key.encode()).hexdigest()
