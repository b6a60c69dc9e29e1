"""What a negotiator shares by, from its ads."""

import classad2

from updraft.condor.collector.accounting import shares_of
from updraft.core.model import AccountingGroup


def ad(**values: object) -> classad2.ClassAd:
    return classad2.ClassAd(values)


def test_priorities_and_groups() -> None:
    found = shares_of(
        [
            ad(Name="<none>", IsAccountingGroup=True, ConfigQuota=0.0, SurplusPolicy="byquota"),
            ad(Name="bio", IsAccountingGroup=True, ConfigQuota=0.5, SurplusPolicy="byquota"),
            ad(Name="physics", IsAccountingGroup=True, ConfigQuota=2.0, SurplusPolicy="no"),
            ad(Name="physics.ada@x", IsAccountingGroup=False, Priority=500.5),
            ad(Name="eve@x", IsAccountingGroup=False, Priority=2000.0),
        ]
    )
    assert found is not None
    assert found.priorities == {"physics.ada": 500.5, "eve": 2000.0}
    assert found.groups == {
        "bio": AccountingGroup("bio", 0.5),
        "physics": AccountingGroup("physics", 2.0, surplus=False),
    }


def test_nonsense_is_left_out_and_nothing_is_unknown() -> None:
    odd = [ad(), ad(Name=3), ad(Name="eve@x", Priority="high"), ad(Name="eve@x", Priority=float("nan"))]
    assert shares_of(odd) is None
    assert shares_of([]) is None
