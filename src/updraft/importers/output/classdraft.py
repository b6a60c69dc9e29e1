"""A class of workers as it comes together from what the clouds say of images and times."""

import re
from collections.abc import Container
from dataclasses import dataclass, field

from updraft.config.values.units import seconds
from updraft.core.settings import DAY
from updraft.importers.formats import numbers
from updraft.importers.formats.reading import Value
from updraft.importers.output.drafts import Site
from updraft.importers.output.report import Fate, on_lines
from updraft.importers.output.result import NO_IMAGE, Section, Setting
from updraft.importers.output.userdata import Part, UserData

LIFETIME = 7 * DAY
IDLE = 600.0  # idle_limit, where the file doesn't say it
_CONDOR = re.compile(r"/etc/condor\b|condor_config\b|CONDOR_HOST")
_TEMPLATE = re.compile(r"\{\{|\{%")


@dataclass(slots=True)
class ClassDraft:
    """One class: `clouds` None for all, `attributes` as plain texts."""

    name: str
    clouds: list[str] | None = None
    settings: dict[str, Setting] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)
    parts: list[Part] = field(default_factory=list)

    def add_user_data(self, site: Site, value: Value, text: str, found: UserData) -> None:
        """A file of the site's as a layer, unless it sets HTCondor up or is a template of the old program."""
        lines = text.split("\n")
        template = [number for number, line in enumerate(lines, 1) if _TEMPLATE.search(line)]
        condor = [number for number, line in enumerate(lines, 1) if _CONDOR.search(line)]
        if template or (condor and text.lstrip().startswith("#cloud-config")):
            where = on_lines(template or condor)
            what = "places that only the old program fills" if template else "HTCondor's configuration"
            text = (
                f"left out: it has {what} ({where}), and HTCondor is updraft's work. What is your own "
                "in it: a layer"
            )
            site.say(value, Fate.LOOK, text)
            return
        self.parts += found.parts
        if found.parts:
            site.say(value, Fate.TAKEN, f"[[classes.{self.name}.layers]]\nits own lines")
        else:
            site.say(
                value,
                Fate.REPLACED,
                "no layer comes of it: nothing is left that updraft doesn't do by itself",
            )
        for remark in found.remarks:
            site.say(value, Fate.LOOK, remark)


def section_of(site: Site, draft: ClassDraft) -> Section:
    """The table of the class, with a row for whatever no file says."""
    clouds = {
        name: cloud for name, cloud in site.served.items() if draft.clouds is None or name in draft.clouds
    }
    settings = {"image": _image(site, draft, {name: cloud.image for name, cloud in clouds.items()})}
    if draft.clouds is not None:
        settings["clouds"] = Setting(draft.clouds, "")
    idles = {name: cloud.idle for name, cloud in clouds.items() if cloud.idle is not None}
    if idles:
        text = numbers.in_words(max(idles.values()))
        settings["idle_limit"] = Setting(text, f"the keep-alive of {', '.join(idles)}")
        if max(idles.values()) >= LIFETIME and "lifetime" not in draft.settings:
            twice = numbers.in_words(2 * max(idles.values()))
            settings["lifetime"] = Setting(twice, "longer than idle_limit, as it has to be")
    settings.update(draft.settings)
    _shorter_than_idle(site, draft, settings)
    if draft.attributes:
        texts = {name: '"' + _escaped(text) + '"' for name, text in draft.attributes.items()}
        settings["attributes"] = Setting(texts, "what its machines advertise, for requirements of jobs")
    return Section(settings, layers=tuple(draft.parts))


def _shorter_than_idle(site: Site, draft: ClassDraft, settings: dict[str, Setting]) -> None:
    """Where a lifetime is over before a machine would go for want of work, idle_limit is less."""
    if "lifetime" not in draft.settings:
        return
    lifetime = draft.settings["lifetime"].value
    life = seconds(lifetime)
    idle = seconds(settings["idle_limit"].value) if "idle_limit" in settings else IDLE
    if life <= idle:
        half = numbers.in_words(life / 2)
        settings["idle_limit"] = Setting(half, "shorter than lifetime, as it has to be")
        text = (
            f'idle_limit = "{half}"\na lifetime of {lifetime} is over before a machine '
            "would have been idle for long enough to go"
        )
        site.note(f"idle_limit of {draft.name}", Fate.LOOK, text)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _image(site: Site, draft: ClassDraft, images: dict[str, Setting | None]) -> Setting:
    missing = [name for name, image in images.items() if image is None]
    if missing:
        text = (
            f'no file names one for {", ".join(missing)}: [classes.{draft.name}] image has "{NO_IMAGE}". '
            "`updraft images` lists what there is"
        )
        site.note(f"image of {draft.name}", Fate.LOOK, text)
    known = {name: str(image.value) if image else NO_IMAGE for name, image in images.items()}
    origins = dict.fromkeys(image.origin if image else "to be written" for image in images.values())
    if len(set(known.values())) == 1:
        return Setting(next(iter(known.values())), ", ".join(origins))
    return Setting(known, ", ".join(origins))


def by_idle(site: Site, draft: ClassDraft, label: str = "", taken: Container[str] = ()) -> list[ClassDraft]:
    """A class for each time that machines may idle, where the clouds of one class have different ones.

    The first cloud's keeps the name, and the others are called by it and the time. `label` is what jobs call
    the class by (VMType), where they do; `taken` are names of other classes.
    """
    groups: dict[float | None, list[str]] = {}
    for name, cloud in site.served.items():
        if draft.clouds is None or name in draft.clouds:
            groups.setdefault(cloud.idle, []).append(name)
    if len(groups) < 2:
        return [draft]
    made: list[ClassDraft] = []
    for time, clouds in groups.items():
        settings = dict(draft.settings)
        if made and label:
            settings["vm_types"] = Setting([label], "its jobs ask for that VMType")
        name = f"{draft.name[:45]}-{numbers.in_words(IDLE if time is None else time)}" if made else draft.name
        name = f"{name}-idle" if made and name in taken else name
        made.append(ClassDraft(name, clouds, settings, dict(draft.attributes), list(draft.parts)))
    told = ", ".join(f"{one.name} on {', '.join(one.clouds or ())}" for one in made)
    text = f"the clouds had different times, and idle_limit is a class's: {told}"
    site.note(f"idle_limit of {draft.name}", Fate.REPLACED, text)
    return made
