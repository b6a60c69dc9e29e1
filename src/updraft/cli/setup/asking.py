"""How `init` gets its answers: from flags, else from the person at the terminal, else from the default."""

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import TypeVar

import click

from updraft.cli.output import console
from updraft.errors import UsageError

T = TypeVar("T")
SHOWN = 20
NEAR = 3
PATTERN = "*?["


@dataclass(frozen=True, slots=True)
class Choice:
    """Something to choose: what is written when it is chosen, by what else it is known, and its cells."""

    value: str
    names: tuple[str, ...]
    cells: tuple[str, ...]

    def has(self, part: str) -> bool:
        """True where a part of one of its names is meant."""
        return any(part.lower() in name.lower() for name in (self.value, *self.names))


@dataclass(frozen=True, slots=True)
class SetupQuestion:
    """What is asked: in words, and by the flag that answers it. `hint` is said where there is no terminal."""

    flag: str
    words: str
    hint: str = ""


def somebody_is_there() -> bool:
    """True where a person can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


@dataclass(frozen=True, slots=True)
class Asker:
    """Asks at the terminal where `person` says that somebody is there."""

    person: bool

    def say(self, text: str) -> None:
        """Tell the person something; on stderr, where nobody mistakes it for the answer."""
        click.echo(text, err=True)

    def text(
        self, question: SetupQuestion, given: str | None, default: str | None, check: Callable[[str], T]
    ) -> T:
        """One answer, as `check` reads it. `default` None must be answered, "" is no answer.

        A UsageError of `check` is final for a flag, and asked again of a person.
        """
        if given is not None:
            return check(given)
        if not self.person:
            if default is None:
                hint = f" ({question.hint})" if question.hint else ""
                raise UsageError(f"say {question.flag}{hint}: nobody is at a terminal to be asked")
            return check(default)
        while True:
            answer = _typed(question, default)
            if not answer and default is None:
                self.say(f"  an answer is needed{f', {question.hint}' if question.hint else ''}")
                continue
            try:
                return check(answer)
            except UsageError as error:
                self.say(f"  {error}")

    def yes(self, words: str, *, default: bool) -> bool:
        """A yes or no; the default where nobody is there."""
        return click.confirm(words, default=default, err=True, prompt_suffix=" ") if self.person else default

    def one_of(
        self,
        question: SetupQuestion,
        given: str | None,
        default: str | None,
        choices: Sequence[Choice],
        find: Callable[[str], Choice | None] = lambda _text: None,
    ) -> str:
        """One of a list, by its number, its name, or a part of it that narrows the list down.

        `find` looks for one that isn't in the list.
        """
        if given is not None or not self.person:
            return self.text(question, given, default, lambda text: named(question, text, choices, find))
        shown = list(choices)
        while True:
            self._list(enumerate(shown, 1))
            answer = _typed(question, default)
            if not answer:
                self.say("  an answer is needed: a number, a name, or a part of one")
                continue
            if answer.isdigit() and 0 < int(answer) <= len(shown):
                return shown[int(answer) - 1].value
            exact = [one.value for one in choices if answer in (one.value, *one.names)]
            if len(exact) == 1:
                return exact[0]
            narrowed = [one for one in choices if one.has(answer)]
            if len(narrowed) == 1:
                return narrowed[0].value
            other = None if narrowed else find(answer)
            if other is not None:
                return other.value
            if not narrowed:
                self.say(f'  nothing has "{answer}" in its name')
            shown = narrowed or list(choices)

    def some_of(
        self, question: SetupQuestion, given: Sequence[str], default: str | None, choices: Sequence[Choice]
    ) -> tuple[str, ...]:
        """Several of a list, by numbers, names or patterns with commas between."""

        def check(text: str) -> tuple[str, ...]:
            words = [word.strip() for word in text.split(",") if word.strip()]
            return tuple(dict.fromkeys(self._pattern(question, word, choices) for word in words))

        if not given and self.person:
            self._list(enumerate(choices, 1))
        return self.text(question, ",".join(given) if given else None, default, check)

    def _pattern(self, question: SetupQuestion, word: str, choices: Sequence[Choice]) -> str:
        if self.person and word.isdigit() and 0 < int(word) <= len(choices):
            return choices[int(word) - 1].value
        if not any(sign in word for sign in PATTERN):
            names = [one.value for one in choices]
            parts = [(number, one) for number, one in enumerate(choices, 1) if one.has(word)]
            if self.person and parts and word not in names:
                self._list(parts)
                raise UsageError(f'"{word}" is in {len(parts)} names; write numbers, names or "*{word}*"')
            return named(question, word, choices)
        if choices and not any(fnmatchcase(one.value, word) for one in choices):
            raise UsageError(f'{question.flag}: no name is like "{word}"; {_near(word, choices)}')
        return word

    def _list(self, choices: Iterable[tuple[int, Choice]]) -> None:
        every = list(choices)
        if not every:
            return
        from rich.table import Table
        from rich.text import Text

        shown = Table.grid(padding=(0, 2, 0, 0))
        for number, one in every[:SHOWN]:
            shown.add_row(Text(f"{number:4}", style="cyan"), *map(Text, one.cells))
        console(err=True).print(shown)
        more = len(every) - SHOWN
        if more > 0:
            self.say(f"  and {more} more: a part of the name shows those that have it")


def _typed(question: SetupQuestion, default: str | None) -> str:
    """What a person types at a question; "" is an answer only where the default is one."""
    shown = default not in (None, "")
    answer: str = click.prompt(
        question.words, default=default or "", show_default=shown, type=str, err=True, prompt_suffix=" "
    )
    return answer.strip()


def named(
    question: SetupQuestion,
    text: str,
    choices: Iterable[Choice],
    find: Callable[[str], Choice | None] = lambda _text: None,
) -> str:
    """The choice of this name; the text itself where there is nothing to choose from. Else UsageError."""
    every = list(choices)
    found = [one.value for one in every if text in (one.value, *one.names)]
    if found or not every:
        return found[0] if found else text
    other = find(text)
    if other is not None:
        return other.value
    raise UsageError(f'{question.flag}: there is no "{text}"; {_near(text, every)}')


def _near(text: str, choices: Sequence[Choice]) -> str:
    names = list(dict.fromkeys(name for one in choices for name in (*one.names, one.value) if name))
    close = get_close_matches(text, names, n=NEAR, cutoff=0.4)
    if close:
        return f"did you mean {', '.join(close)}?"
    return f"there is {', '.join(one.value for one in choices[:NEAR])}"
