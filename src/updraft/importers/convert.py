"""From the values of a configuration to settings, with a row of the report for each of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from updraft.config.values.checks import VARIABLE_VALUE
from updraft.core.settings import DAY
from updraft.errors import ConfigError
from updraft.importers.formats import numbers
from updraft.importers.formats.faults import Faults
from updraft.importers.formats.reading import Form, Source, Value
from updraft.importers.output.report import Fate, Row
from updraft.importers.output.result import NO_IMAGE, Setting
from updraft.importers.output.rules import Kind, Program, Rule
from updraft.importers.output.userdata import UserData, decoded, layers

LIFETIME = 7 * DAY
LAYERS = "[[classes.default.layers]]"
NO_FLAVOR = "m1.small"  # what EC2 takes where a request names no type


@dataclass(slots=True)
class Conversion:
    """The settings as they come together; `convert` fills it in."""

    program: Program
    rows: list[Row] = field(default_factory=list)
    found: dict[str, tuple[Value, Rule]] = field(default_factory=dict)
    cloud: dict[str, Setting] = field(default_factory=dict)
    worker: dict[str, Setting] = field(default_factory=dict)
    demand: dict[str, Setting] = field(default_factory=dict)
    user_data: list[UserData] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    secrets: list[str] = field(default_factory=list)
    faults: Faults = field(default_factory=Faults)

    def say(self, value: Value, fate: Fate, text: str) -> None:
        """One row about a value of a file."""
        self.rows.append(Row(value.file, value.section, value.key, fate, text, value.line or None))


def convert(program: Program, values: Sequence[Value], sources: Iterable[Source]) -> Conversion:
    """All that the values and the further files come to. Raises ConfigError for impossible values."""
    made = Conversion(program)
    masters = {source.name for source in sources if source.form is Form.MASTER}
    for value in values:
        rule = program.rule(value.section, value.key)
        if rule is not None:
            made.faults.attempt(partial(_keep, made, value, rule))
        elif value.file not in masters:  # the rest of a script is no configuration: a note speaks of it
            known = f"updraft and {program.name} know no such key; it was left out"
            made.say(value, Fate.UNKNOWN, known)
    for rule in program.rules:
        if rule.target and rule.target not in made.found and rule.default is not None:
            made.found[rule.target] = (Value("", 0, rule.section, rule.key, rule.default), rule)
    _settle(made)
    made.faults.settle()
    for source in sources:
        if source.form is Form.USER_DATA:
            _user_data(
                made, Value(source.name, 0, "", "user-data", source.text), source.text, "its own lines"
            )
    _consequences(made)
    said = {value.key for value in values}
    made.rows += [Row("", "", what, fate, text) for what, fate, text in program.notes if what not in said]
    return made


def _keep(made: Conversion, value: Value, rule: Rule) -> None:
    """Remember the value for its target; the last one counts, and whatever it takes the place of is named."""
    if rule.fate is Fate.SECRET:
        made.secrets.append(value.text)
        made.say(
            value, Fate.SECRET if value.text else Fate.NOT_NEEDED, rule.why if value.text else "it is empty"
        )
    elif not rule.target or rule.fate is not Fate.TAKEN:
        _aside(made, value, rule)
    else:
        before = made.found.get(rule.target)
        if before is not None:
            made.say(before[0], Fate.REPLACED, f"{value.file}, line {value.line}, says it again and counts")
        made.found[rule.target] = (value, rule)


def _aside(made: Conversion, value: Value, rule: Rule) -> None:
    """A key that isn't taken; two of them have values that make it worth a look."""
    if rule.kind is Kind.SWITCH and numbers.count(value):
        text = f"it is switched on, and `updraft run` would act. {rule.why}"
        made.say(value, Fate.LOOK, text)
    elif rule.target == "plugin" and value.text not in ("htcondor", ""):
        made.say(value, Fate.LOOK, f"{rule.why}: a pool of another batch system can't be served")
    else:
        made.say(value, rule.fate, rule.why)


def _settle(made: Conversion) -> None:
    """Each target in turn, in the order in which its setting is written."""
    steps: Mapping[str, Callable[[Conversion, Value, Rule], None]] = {
        "endpoint": _endpoint,
        "key_name": _key_name,
        "image": _image,
        "flavor": _flavor,
        "min": _minimum,
        "max": _maximum,
        "idle_limit": _time,
        "boot_deadline": _time,
        "slots": _slots,
        "min_jobs": _threshold,
        "min_wait": _wait,
        "variable ipv4": _variable,
        "variable ipv6": _variable,
        "variable fqdn": _variable,
        "layer": _layer,
    }
    for target, step in steps.items():
        if target in made.found:
            made.faults.attempt(partial(step, made, *made.found[target]))


def _taken(made: Conversion, value: Value, rule: Rule, setting: str, extra: str = "") -> None:
    """A row for a setting that was taken: the setting, and below it why; for a default, whose it is."""
    name = rule.becomes.rpartition("] ")[2]
    why = (extra or rule.why) if value.file else _own(made)
    made.say(value, Fate.TAKEN, f"{name} = {setting}\n{why}")


def _own(made: Conversion) -> str:
    return f"{made.program.name}'s own: the files don't say it"


def _origin(made: Conversion, value: Value) -> str:
    name = f"{value.section}.{value.key}" if value.section and value.section != "ECM's own" else value.key
    return name if value.file else f"{name}; {_own(made)}"


def _endpoint(made: Conversion, value: Value, rule: Rule) -> None:
    if not value.text:
        made.say(value, Fate.LOOK, "it is empty: write [clouds.ec2] endpoint, or export EC2_URL for updraft")
        return
    plain, cut = numbers.address(value)
    made.cloud["endpoint"] = Setting(plain, _origin(made, value))
    more = "; a name, password or query in it was left out" if cut else ""
    if plain.startswith("http://"):
        more += "; without TLS anybody on the way can read and change what is asked for"
    _taken(made, value, rule, f'"{plain}"', rule.why + more)


def _key_name(made: Conversion, value: Value, rule: Rule) -> None:
    name = value.text.removesuffix(".pem")
    if not name:
        made.say(value, Fate.NOT_NEEDED, "it is empty: nobody has to log in to the workers")
        return
    made.cloud["key_name"] = Setting(name, _origin(made, value))
    _taken(made, value, rule, f'"{name}"', "the name has no .pem" if name != value.text else "")


def _image(made: Conversion, value: Value, rule: Rule) -> None:
    if not value.text:
        made.say(value, Fate.LOOK, "it is empty: write [classes.default] image; `updraft images` lists them")
        return
    made.worker["image"] = Setting(value.text, _origin(made, value))
    _taken(made, value, rule, f'"{value.text}"')


def _flavor(made: Conversion, value: Value, rule: Rule) -> None:
    name = value.text or NO_FLAVOR
    made.worker["flavors"] = Setting([name], _origin(made, value))
    made.cloud["flavors"] = Setting(
        [name], "the only ones that it is asked about: a class's must be among them"
    )
    why = "it is empty, and EC2 takes that for this type: `updraft offers` lists what there is"
    _taken(made, value, rule, f'["{name}"]', "" if value.text else why)


def _minimum(made: Conversion, value: Value, rule: Rule) -> None:
    least, most = numbers.count(_or_default(value, rule)), _most(made)
    made.worker["min"] = Setting(least if most is None else min(least, most), _origin(made, value))
    if most is not None and least > most:
        made.say(value, Fate.LOOK, f"min = {most}\n{least} is more than the maximum, and the maximum counts")
        return
    _taken(made, value, rule, str(made.worker["min"].value), _empty(made, value))


def _maximum(made: Conversion, value: Value, rule: Rule) -> None:
    most = _most(made)
    if most is None:
        text = (
            "less than 1 is no maximum: no [classes.default] max. A ceiling for money: [limits] cost_per_hour"
        )
        made.say(value, Fate.TAKEN, text)
        return
    made.worker["max"] = Setting(most, _origin(made, value))
    _taken(made, value, rule, str(most), _empty(made, value))


def _most(made: Conversion) -> int | None:
    value, rule = made.found["max"]
    return numbers.ceiling(_or_default(value, rule))


def _time(made: Conversion, value: Value, rule: Rule) -> None:
    seconds = numbers.duration(_or_default(value, rule))
    spelled = numbers.in_words(seconds)
    made.worker[rule.target] = Setting(spelled, _origin(made, value))
    _taken(made, value, rule, f'"{spelled}"', _empty(made, value))
    if rule.target == "idle_limit" and seconds >= LIFETIME:
        made.worker["lifetime"] = Setting(
            numbers.in_words(2 * seconds), "longer than idle_limit, as it has to be"
        )


def _slots(made: Conversion, value: Value, rule: Rule) -> None:
    if not value.text:
        made.say(
            value, Fate.NOT_NEEDED, "it is empty: each job gets what it asks for (slots is partitionable)"
        )
        return
    number = max(1, numbers.count(value))
    made.worker["slots"] = Setting(number, _origin(made, value))
    _taken(made, value, rule, str(number))


def _threshold(made: Conversion, value: Value, rule: Rule) -> None:
    if not value.text or numbers.count(value) < 2:
        made.say(
            value, Fate.NOT_NEEDED, "one waiting job that a machine would run is reason enough to launch"
        )
        return
    number = numbers.count(value)
    made.demand["min_jobs"] = Setting(number, _origin(made, value))
    _taken(made, value, rule, str(number))


def _wait(made: Conversion, value: Value, rule: Rule) -> None:
    if not value.text or not numbers.duration(value):
        made.say(value, Fate.NOT_NEEDED, "machines are launched as soon as jobs wait that no room will hold")
        return
    spelled = numbers.in_words(numbers.duration(value))
    made.demand["min_wait"] = Setting(spelled, _origin(made, value))
    _taken(made, value, rule, f'"{spelled}"')


def _variable(made: Conversion, value: Value, rule: Rule) -> None:
    if not VARIABLE_VALUE.fullmatch(value.text):
        raise ConfigError(f"{value.place} is not one plain word (letters, digits, ._:/@+-)")
    made.variables[value.key] = value.text
    _taken(made, value, rule, f'"{value.text}"')


def _layer(made: Conversion, value: Value, rule: Rule) -> None:
    if not value.text:
        made.say(value, Fate.NOT_NEEDED, "it is empty: the workers had no user-data of their own")
        return
    _user_data(made, value, decoded(value.place, value.text), rule.why)


def _user_data(made: Conversion, value: Value, text: str, why: str) -> None:
    found = layers(text, made.secrets)
    made.user_data.append(found)
    if not found.parts:
        made.say(
            value, Fate.REPLACED, "no layer comes of it: nothing is left that updraft doesn't do by itself"
        )
    else:
        names = sorted({name for part in found.parts for name in part.variables})
        filled = f"; {', '.join(f'%{name}%' for name in names)}: replaced at each launch" if names else ""
        made.say(value, Fate.TAKEN, f"{LAYERS}\n{why}{filled}")
    for remark in found.remarks:
        made.say(value, Fate.LOOK, remark)


def _consequences(made: Conversion) -> None:
    """What follows from the rest: an image that must be named, and what the old workers had."""
    if "image" not in made.worker:
        text = (
            f'no file names one: [classes.default] image = "{NO_IMAGE}". `updraft images` lists what there is'
        )
        made.rows.append(Row("", "", "image", Fate.LOOK, text))
        made.worker["image"] = Setting(NO_IMAGE, "to be written: `updraft images` lists what there is")
    if "flavors" not in made.worker:
        text = f'no file names one: [classes.default] flavors = ["{NO_FLAVOR}"]. `updraft offers` lists them'
        made.rows.append(Row("", "", "flavor", Fate.LOOK, text))
        made.worker["flavors"] = Setting([NO_FLAVOR], "to be written: `updraft offers` lists what there is")
    ecm = made.program.name == "ECM"
    cernvm = any(found.cernvm for found in made.user_data)
    if cernvm:
        made.worker["contextualisation"] = Setting("cernvm", "the old user-data was for CernVM")
    elif ecm or any(found.installs_condor for found in made.user_data):
        made.worker["condor"] = Setting("install", "the old user-data installed it at boot")
    if not cernvm and (ecm or any(found.docker for found in made.user_data)):
        made.worker["universes"] = Setting(["docker"], "the old user-data installed it at boot")


def _or_default(value: Value, rule: Rule) -> Value:
    """An empty number is what the old program took by default."""
    if value.text or rule.default is None:
        return value
    return Value(value.file, value.line, value.section, value.key, rule.default)


def _empty(made: Conversion, value: Value) -> str:
    return "" if value.text else f"it is empty, and this is what {made.program.name} takes then"
