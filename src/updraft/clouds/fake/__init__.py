"""A cloud in memory, in whatever time its clock tells: for trying things out, tests and simulations.

`Site` is the cloud as its owner sees it: it can be broken on purpose and inspected. `FakeCloud` is one
pool's machines there, and the other parts of the cloud.
"""

from updraft.clouds.fake.census import Taken
from updraft.clouds.fake.driver import DRIVER, FakeCloud
from updraft.clouds.fake.faults import Fault
from updraft.clouds.fake.instance import FakeInstance
from updraft.clouds.fake.settings import Boot, Flavor, Settings, site_settings
from updraft.clouds.fake.site import Bill, Call, Site

__all__ = [
    "DRIVER",
    "Bill",
    "Boot",
    "Call",
    "FakeCloud",
    "FakeInstance",
    "Fault",
    "Flavor",
    "Settings",
    "Site",
    "Taken",
    "site_settings",
]
