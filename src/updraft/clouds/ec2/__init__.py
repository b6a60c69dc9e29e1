"""Clouds that speak EC2's API: Amazon's, and every other endpoint that answers like it.

The SDK is imported when a cloud is made, not before: a configuration can be checked without it.
"""

from updraft.clouds.cloud import Cloud, Driver, Owner
from updraft.clouds.ec2.settings import EC2Heads, Settings
from updraft.errors import UsageError
from updraft.requirements import install_command


def _make(name: str, owner: Owner, settings: Settings) -> Cloud:
    """One endpoint for one pool. Raises UsageError where the SDK isn't installed."""
    try:
        from updraft.clouds.ec2.client import Connection
        from updraft.clouds.ec2.driver import EC2Driver
    except ImportError as error:
        raise UsageError(f"cloud {name}: the ec2 driver needs boto3, run: {install_command()}") from error
    return EC2Driver(name, owner.pool, settings, Connection(name, settings)).cloud


DRIVER = Driver(Settings, _make, heads=EC2Heads())

__all__ = ["DRIVER", "Settings"]
