"""Made-up workloads: what their recipes say, and that they are like what they were fitted to."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from updraft.errors import UsageError
from updraft.sim.workloads.generate import PRESETS, Recipe, from_file, generated, interpolated, jobs

FIGURES = {"lcg": ["jobs=20000"], "bursts": [], "days": [], "tails": []}


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_makes_as_many_jobs_as_it_says_in_its_time(name: str) -> None:
    found = generated("?".join([f"gen:{name}", *FIGURES[name]]), 1)
    assert len(found.arrivals) == 20000 if name == "lcg" else PRESETS[name][1].get("jobs", 2000)
    days = {"lcg": 11 * 20000 / 188041}.get(name, PRESETS[name][1].get("days", 1.0))
    assert 0.5 * days * 86400 < found.span < 1.3 * days * 86400
    assert all(a.at <= b.at for a, b in zip(found.arrivals, found.arrivals[1:], strict=False))
    assert all(1 <= one.seconds <= 2 * 86400 for one in found.arrivals)


def test_the_same_seed_makes_the_same_jobs_and_another_one_others() -> None:
    assert generated("gen:days?jobs=300", 1).arrivals == generated("gen:days?jobs=300", 1).arrivals
    assert generated("gen:days?jobs=300", 1).arrivals != generated("gen:days?jobs=300", 2).arrivals
    assert generated("gen:days?jobs=300&seed=1", 7).arrivals == generated("gen:days?jobs=300", 1).arrivals


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 3])
def test_lcg_has_the_statistics_that_it_was_fitted_to(seed: int) -> None:
    """The figures of the trace itself are in docs/explanation/traces.md."""
    found = generated("gen:lcg?jobs=60000", seed).arrivals
    run = np.array([one.seconds for one in found])
    assert 0.57 < (run <= 600).mean() < 0.65
    assert 7200 < run.mean() < 8800
    at = np.array([one.at for one in found])
    assert 4.5 < np.diff(at).mean() < 5.7
    hourly = np.bincount((at // 3600).astype(int))[:-1]
    assert 40 < hourly.var() / hourly.mean() < 300  # far from a Poisson process, whose dispersion is 1
    shares = sorted(
        (count / len(found) for count in Counter(one.owner for one in found).values()), reverse=True
    )
    assert 0.2 < shares[0] < 0.45
    assert 0.85 < sum(shares[:50]) < 1
    assert all(one.longest is not None and one.longest >= one.seconds for one in found)


def test_run_times_of_one_session_are_alike_and_say_something_of_the_program() -> None:
    found = list(jobs(Recipe(jobs=6000, alike=0.8, run_spread=1.5), 1))
    logs = np.log([one.seconds for one in found])
    assert np.corrcoef(logs[1:], logs[:-1])[0, 1] > 0.6
    unlike = np.log([one.seconds for one in jobs(Recipe(jobs=6000, alike=0.0, run_spread=1.5), 1)])
    assert abs(np.corrcoef(unlike[1:], unlike[:-1])[0, 1]) < 0.1
    by_program: dict[str, list[float]] = {}
    for one, log in zip(found, logs, strict=True):
        by_program.setdefault(one.executable, []).append(log)
    within = np.mean([np.var(some) for some in by_program.values() if len(some) > 20])
    assert within < 0.6 * logs.var()


@pytest.mark.slow
def test_nights_and_weekends_are_quieter() -> None:
    found = list(jobs(Recipe(jobs=20000, days=14, session=1, session_spread=0, night=0.9, weekend=0.2), 1))
    hours = Counter(int(one.at // 3600 % 24) for one in found)
    assert hours[2] < 0.3 * hours[14]
    weekdays = Counter(int(one.at // 86400 % 7) for one in found)
    assert weekdays[5] < 0.4 * weekdays[2]


def test_a_tail_is_heavy() -> None:
    heavy = [one.seconds for one in jobs(Recipe(jobs=5000, tail=0.8, run_time="60s", alike=0), 1)]
    light = [one.seconds for one in jobs(Recipe(jobs=5000, run_time="60s", run_spread=1, alike=0), 1)]
    assert np.median(heavy) == pytest.approx(np.median(light), rel=0.15)
    assert np.quantile(heavy, 0.99) > 10 * np.quantile(light, 0.99)


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 400),
    st.floats(1, 60),
    st.floats(0, 3),
    st.floats(0, 0.95),
    st.floats(0, 1),
    st.integers(0, 9),
)
def test_any_recipe_makes_exactly_its_jobs(
    number: int, session: float, spread: float, alike: float, night: float, seed: int
) -> None:
    recipe = Recipe(jobs=number, session=session, session_spread=spread, alike=alike, night=night)
    made = list(jobs(recipe, seed))
    assert len(made) == number
    assert all(one.seconds >= 1 and one.at >= 0 for one in made)


@given(st.floats(0, 1))
def test_a_table_of_run_times_is_followed_between_its_entries(part: float) -> None:
    table = ((0.0, 1.0), (0.5, 100.0), (0.9, 100.0), (1.0, 10000.0))
    value = interpolated(table, part)
    assert 1 <= value <= 10000
    if 0.5 <= part <= 0.9:
        assert value == pytest.approx(100)
    assert interpolated(table, 0.25) == pytest.approx(10)


def test_a_recipe_of_toml(tmp_path: Path) -> None:
    path = tmp_path / "r.toml"
    path.write_text(
        'preset = "bursts"\njobs = 50\nrun_time = "90s"\nrun_spread = 0.0\n'
        '[[shapes]]\nshare = 1\ncpus = 4\nmemory = "6GiB"\n'
    )
    found = from_file(path, 1)
    assert len(found.arrivals) == 50
    assert {one.seconds for one in found.arrivals} == {90.0}
    assert {(one.request.cpus, one.request.memory) for one in found.arrivals} == {(4, 6144)}


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("gen:burst", 'there is no generator "burst"; there are bursts, days, tails, lcg'),
        ("gen:days?speed=3", "there is no speed; a generator has jobs, days"),
        ("gen:days?jobs=0", "jobs: input should be greater than 0"),
        ("gen:days?jobs=many", "jobs: input should be a valid integer"),
        ("gen:days?run_time=20", 'run_time: "20" has no unit'),
        ("gen:days?jobs", 'is no list of key=value joined by "&"'),
        ("gen:days?night=1&days=1e9", "days: input should be less than"),
    ],
)
def test_a_wrong_generator_is_named(source: str, said: str) -> None:
    with pytest.raises(UsageError, match=said.replace("?", r"\?")) as caught:
        generated(source)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("jobs = ", "isn't TOML"),
        ('preset = "x"', 'there is no preset "x"'),
        ("quantiles = [[0, 5], [1, 3]]", "pairs rise from part 0 to part 1"),
        ("[pool]\nname = 'a'", "there is no pool; a generator has"),
    ],
)
def test_a_wrong_recipe_is_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "r.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=said):
        from_file(path)
