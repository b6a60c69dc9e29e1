"""The tables of docs/reference/from-cloud-scheduler.md: whole, and of nothing that the code doesn't have."""

import re
from collections.abc import Iterator

import click
import pytest

from updraft.cli.verbs import VERBS, installed, load_verb
from updraft.clouds.ec2.settings import Settings as Ec2Settings
from updraft.clouds.openstack.settings import Settings as OpenStackSettings
from updraft.condor.demand.terms import NAMES
from updraft.config.known import TABLES
from updraft.importers import CLOUD_SCHEDULER, CSV2
from updraft.importers.output.rules import Program
from updraft.importers.programs.equivalents import Equivalents, configuration, equivalents

# What `cloud_status --help`, `cloud_admin --help` and `cloudscheduler` list, from their sources.
CLOUD_STATUS = "-f -s -p -a -c -m -n -j -d -q -i -b -t -g -l -o -u -r -x -z -w -v"
CLOUD_ADMIN = "-f -s -P -a -k -c -n -b -p -u -r -l -e -d -m -q -i -j -o -x -t -y -v -C"
INIT = (
    "start stop fullstop restart status reconfig reload force-reload forcekill quickstop quickrestart SIGUSR2"
)
PROGRAMS = "cs-submit csquota.py csmonitor"
CSV2_VERBS = {
    "accounting": "apel",
    "alias": "add list update delete",
    "cloud": "add delete list status update metadata-collation metadata-delete metadata-edit metadata-list "
    "metadata-load metadata-update metadata-save",
    "defaults": "delete list set",
    "ec2": "images instance-types",
    "group": "add defaults delete list update metadata-delete metadata-edit metadata-list metadata-load "
    "metadata-update metadata-save",
    "helpers": "check_documentation generate_bash_completion_script print_json_syntax_tree",
    "job": "list",
    "metadata": "backup delete edit group-defaults list load restore update",
    "my": "settings",
    "server": "config",
    "user": "add delete list update",
    "vm": "list update",
    "image": "transfer upload delete list",
}
CSV2_OPTIONS = (
    "-a -an -bk -br -bvt -bvs -bvc -c -ca -cc -ckv -ce -cfe -cfo -cn -co -cpw -cp -cP -cPD -cPI -cr "
    "-CSV -CSEP -csp "
    "-ct -cUD -cUI -cU -cac -cas -ds -f -F -g -gme -gmo -gn -go -H -h -htcf -htch -htcu -ia -il -inl "
    "-ioa -ioi -ios "
    "-itc -itf -itmn -itmx -itos -itp -itpm -jc -jd -jh -jI -ji -jp -jR -jr -jrc -jrd -jrr -jrs -jS -js "
    "-jta -ju -lu "
    "-me -mmt -mn -mp -nld -NV -ok -pub -r -s -sa -spw -sfv -sgs -sjta -sri -ssd -ssf -SU -su -te -ui "
    "-ucn -un -uo "
    "-upw -v -V -VC -vc -vcs -vd -vF -vf -vi -vh -vk -vka -vn -vo -vr -vS -vs -vsg -w -x509 -xA -Y -in "
    "-ic -tc -tg "
    "-ip -cl -iu -id -ii -df"
)
JOB_ADS = (
    "VMType VMAMI VMInstanceType VMName VMLoc VMImageID VMNetwork VMCPUCores VMMem VMStorage VMKeepAlive "
    "VMHighPriority VMMaximumPrice VMJobPerCore VMTypeLimit VMKeyName VMSecurityGroup VMUserData VMAMIConfig "
    "VMInjectCA VMProxyNonBoot VMImageProxyFile VMLocation TargetClouds CSMyProxyServer CSMyProxyServerPort "
    "CSMyProxyCredsName CSMyProxyRenewalTime x509userproxy x509userproxysubject JobPrio"
)
CSV2_ADS = (
    "group_name target_alias RequestCpus RequestMemory RequestDisk RequestSwap VMImage VMInstanceType "
    "VMNetwork "
    "VMKeepAlive VMMaximumPrice VMUserData VMJobPerCore CpusProvisioned JobPrio"
)

ALL = [*equivalents(), *configuration(CLOUD_SCHEDULER), *configuration(CSV2)]


def rows() -> Iterator[tuple[str, str, str]]:
    return (row for one in ALL for row in one.rows)


def table(title: str) -> Equivalents:
    return next(one for one in ALL if one.title == title)


def theirs(*titles: str) -> set[str]:
    """Every word in the first column of these tables."""
    text = " ".join(row[0] for title in titles for row in table(title).rows)
    return set(re.findall(r"[\w.-]+", text))


def test_no_cell_is_empty() -> None:
    assert len(list(rows())) > 300
    assert not [row for row in rows() if not all(cell.strip(" `") for cell in row)]


@pytest.mark.parametrize(
    ("titles", "words"),
    [
        (["cloud_status"], CLOUD_STATUS),
        (["cloud_admin"], CLOUD_ADMIN),
        (["The daemon, its init script and its signals"], INIT),
        (["The programs beside it"], PROGRAMS),
        (["Job ads of Cloud Scheduler"], JOB_ADS),
        (["Job ads of csv2"], CSV2_ADS),
        (["cloudscheduler: options"], CSV2_OPTIONS),
    ],
    ids=lambda value: value[0][:30] if isinstance(value, list) else "",
)
def test_each_of_theirs_has_its_row(titles: list[str], words: str) -> None:
    assert not set(words.split()) - theirs(*titles)


def test_each_verb_of_csv2_has_its_row() -> None:
    text = " ".join(row[0] for one in ALL if one.title.startswith("cloudscheduler: ") for row in one.rows)
    wanted = [f"{thing} {action}" for thing, actions in CSV2_VERBS.items() for action in actions.split()]
    assert not [verb for verb in wanted if not re.search(rf"`{verb}\b", text)]


@pytest.mark.parametrize("program", [CLOUD_SCHEDULER, CSV2], ids=["v1", "csv2"])
def test_each_key_of_a_configuration_has_its_row(program: Program) -> None:
    shown = {row[0] for one in configuration(program) for row in one.rows}
    assert shown == {f"`{rule.key}`" for rule in program.rules}


# ------------------------------------------------------------------------------------- ours must be there


def spans() -> set[str]:
    return {span for row in rows() for cell in row[1:] for span in re.findall(r"`([^`]+)`", cell)}


@pytest.mark.parametrize("span", sorted(span for span in spans() if re.match(r"updraft( |$)", span)))
def test_each_verb_and_option_of_ours_is_one(span: str) -> None:
    if (fault := no_command(span)) is not None:
        pytest.fail(fault)


def no_command(span: str) -> str | None:
    """What of `updraft VERB … --option` isn't there, None where all is."""
    words = span.split()[1:]
    if not words or words[0].startswith("--"):
        return None if set(words) <= {"--config", "--help"} else f"updraft has no {words}"
    if words[0] not in VERBS or not installed(words[0]):
        return f"there is no verb {words[0]}"
    command = load_verb(words.pop(0))
    while isinstance(command, click.Group) and words and words[0] in command.commands:
        command = command.commands[words.pop(0)]
    if isinstance(command, click.Group) and words:
        return f"{command.name} has no {words[0]}"
    options = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
    missing = [word for word in words if word.startswith("-") and word not in options]
    return f"{command.name} has no {missing[0]}" if missing else None


def test_a_verb_that_is_none_would_be_found() -> None:
    assert no_command("updraft drain --wait") is None
    assert no_command("updraft drain --soon") == "drain has no --soon"
    assert no_command("updraft frob") == "there is no verb frob"
    assert no_command("updraft cloud frob") == "cloud has no frob"


def test_each_setting_of_ours_is_one() -> None:
    known = {name.strip("[]"): set(model.model_fields) for name, model in TABLES}
    known["clouds.NAME"] |= {*Ec2Settings.model_fields, *OpenStackSettings.model_fields}
    named = {found for span in spans() if (found := re.match(r"\[+([\w.]+)\]+ (\w+)", span))}
    assert len(named) > 25
    assert not [found[0] for found in named if found[2] not in known[found[1]]]


def test_each_job_attribute_of_ours_is_read() -> None:
    """As far as it is in our column: what a row says is refused stands in theirs."""
    ours = {name for row in rows() for name in re.findall(r"`\+(\w+)`", row[1])}
    assert len(ours) > 15
    assert not ours - set(NAMES)
