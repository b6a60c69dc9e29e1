"""Clouds that are OpenStack: Nova makes the machines, and what they need comes from its sister services.

The SDK is imported when a cloud is made, not before: a configuration can be checked without it.
"""

from updraft.clouds.cloud import Cloud, Driver, Owner
from updraft.clouds.openstack.settings import OpenStackHeads, Settings
from updraft.errors import UsageError
from updraft.requirements import install_command


def _make(name: str, owner: Owner, settings: Settings) -> Cloud:
    """One project in one region, for one pool. Raises UsageError where the SDK isn't installed."""
    try:
        from updraft.clouds.openstack.client import Connection
        from updraft.clouds.openstack.driver import OpenStackDriver
    except ImportError as error:
        raise UsageError(
            f"cloud {name}: the openstack driver needs openstacksdk, run: {install_command()}"
        ) from error
    made = OpenStackDriver(name, owner.pool, settings, Connection(name, settings), identity=owner.identity)
    return made.cloud


DRIVER = Driver(Settings, _make, heads=OpenStackHeads())

__all__ = ["DRIVER", "Settings"]
