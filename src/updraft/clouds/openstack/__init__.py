"""Clouds that are OpenStack: Nova makes the machines, and what they need comes from its sister services.

The SDK is imported when a driver is made, not before: a configuration can be checked without it.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from updraft.clouds.openstack.settings import OpenStackHeads, Settings, checked_settings
from updraft.errors import UsageError
from updraft.requirements import install_command

if TYPE_CHECKING:
    from updraft.clouds.openstack.driver import OpenStackDriver

HEADS = OpenStackHeads()


def from_settings(name: str, pool: str, settings: Mapping[str, Any]) -> "OpenStackDriver":
    """The driver of one pool for one project in one region; nothing is asked of the cloud yet.

    Raises ConfigError that names each wrong key, and UsageError where the SDK isn't installed.
    """
    checked = checked_settings(name, settings)
    try:
        from updraft.clouds.openstack.client import Connection
        from updraft.clouds.openstack.driver import OpenStackDriver
    except ImportError as error:
        raise UsageError(
            f"cloud {name}: the openstack driver needs openstacksdk, run: {install_command()}"
        ) from error
    return OpenStackDriver(name, pool, checked, Connection(name, checked))


__all__ = ["HEADS", "Settings", "from_settings"]
