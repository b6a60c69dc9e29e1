"""Clouds that speak EC2's API: Amazon's, and every other endpoint that answers like it.

The SDK is imported when a driver is made, not before: a configuration can be checked without it.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from updraft.clouds.ec2.settings import EC2Heads, Settings, checked_settings
from updraft.errors import UsageError
from updraft.requirements import install_command

if TYPE_CHECKING:
    from updraft.clouds.ec2.driver import EC2Driver

HEADS = EC2Heads()


def from_settings(name: str, pool: str, settings: Mapping[str, Any]) -> "EC2Driver":
    """The driver of one pool for one endpoint; nothing is asked of the cloud yet.

    Raises ConfigError that names each wrong key, and UsageError where the SDK isn't installed.
    """
    checked = checked_settings(name, settings)
    try:
        from updraft.clouds.ec2.client import Connection
        from updraft.clouds.ec2.driver import EC2Driver
    except ImportError as error:
        raise UsageError(f"cloud {name}: the ec2 driver needs boto3, run: {install_command()}") from error
    return EC2Driver(name, pool, checked, Connection(name, checked))


__all__ = ["HEADS", "Settings", "from_settings"]
