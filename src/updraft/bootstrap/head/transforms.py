"""What a schedd does to jobs: their requirements say what they want, too, and groups are their owner's.

HTCondor's own tools then tell why a job that wants something waits (`condor_q -better-analyze`), and it stays
away from machines of the site that are none of ours. The workers' START holds it to the same without this.
"""

from collections.abc import Iterable

from updraft.core.slots.terms import (
    OWN_REQUIREMENTS,
    RESTRICTIVE,
    TARGET_ANNEX,
    annex_requirement,
    requirements,
)

FILE = "91-updraft-terms.conf"
_NAME = "UpdraftTerms"
GROUPS_FILE = "91-updraft-groups.conf"
GROUPS = "UpdraftGroups"
GROUP_MAP = "AssignAccountingGroup"
"""The map from users to their accounting groups: that of HTCondor's own feature of this name, so that a site
that uses the feature needs no second one."""
GROUPS_SETTING = "UPDRAFT_TRUSTED_GROUPS"
"""The setting by which the controller knows that the head's own schedd refuses groups of others."""

_CHOSEN = ("AcctGroup", "AcctGroupUser", "AccountingGroup")


def schedd_config() -> str:
    """HTCondor's configuration of a schedd with the transform; of 23.9 and later.

    A job's own requirements are copied, never put in as text: as text they would be read for macros, and a
    `$ENV(…)` of a job's would show it the schedd's environment.
    """
    asks = " || ".join(f"{name} isnt undefined" for name in (*RESTRICTIVE, TARGET_ANNEX))
    return (
        f"JOB_TRANSFORM_NAMES = $(JOB_TRANSFORM_NAMES) {_NAME}\n"
        f"JOB_TRANSFORM_{_NAME} @=end\n"
        f"  REQUIREMENTS {asks}\n"
        f"  COPY Requirements {OWN_REQUIREMENTS}\n"
        f"  SET Requirements MY.{OWN_REQUIREMENTS} && {requirements()} && {annex_requirement()}\n"
        "@end\n"
    )


def groups_config() -> str:
    """HTCondor's configuration of a schedd that refuses accounting groups which aren't their user's.

    Tried on 23.9 and 25.14. The negotiator goes by AccountingGroup alone, so that is what is looked at. It
    may be an expression that says another thing later: what it says now is put in its place, as a text. (It
    is evaluated there, never put in as text to be read for macros; `defined` looks whether there is one, also
    where its value is undefined.) Jobs that a late-materialised cluster makes are held to it one by one.
    Once a job is in the queue nobody changes these, root neither: remove it, and submit another.
    """
    group = "substr(AccountingGroup, 0, size(AccountingGroup) - size(Owner) - 1)"
    theirs = f'userMap("{GROUP_MAP}", Owner, {group})'
    return (
        f"SCHEDD_CLASSAD_USER_MAP_NAMES = $(SCHEDD_CLASSAD_USER_MAP_NAMES) {GROUP_MAP}\n"
        f"JOB_TRANSFORM_NAMES = $(JOB_TRANSFORM_NAMES) {GROUPS}\n"
        f"JOB_TRANSFORM_{GROUPS} @=end\n"
        "  if defined MY.AccountingGroup\n"
        "    EVALSET AccountingGroup string(AccountingGroup ?: Owner)\n"
        "  endif\n"
        "@end\n"
        f"SUBMIT_REQUIREMENT_NAMES = $(SUBMIT_REQUIREMENT_NAMES) {GROUPS}\n"
        f"SUBMIT_REQUIREMENT_{GROUPS} = AccountingGroup is undefined || AccountingGroup is Owner || "
        f'AccountingGroup is strcat({theirs}, ".", Owner)\n'
        f"SUBMIT_REQUIREMENT_{GROUPS}_REASON = "
        'strcat(Owner, " may not submit as ", AccountingGroup, '
        '" (accounting_group and accounting_group_user); the groups of ", Owner, " are: ", '
        f'userMap("{GROUP_MAP}", Owner) ?: "none")\n'
        f"IMMUTABLE_JOB_ATTRS = $(IMMUTABLE_JOB_ATTRS) {' '.join(_CHOSEN)}\n"
    )


def guarded(requirements: Iterable[str], immutable: Iterable[str]) -> bool:
    """Whether a schedd with these SUBMIT_REQUIREMENT_NAMES and IMMUTABLE_JOB_ATTRS refuses others' groups.

    By what `groups_config` says, or by HTCondor's own feature AssignAccountingGroup.
    """
    fixed = {name.lower() for name in immutable}
    named = {name.lower() for name in requirements}
    return not named.isdisjoint((GROUPS.lower(), GROUP_MAP.lower())) and "accountinggroup" in fixed
