"""What is sent of a list that hardly changes."""

import pickle

from hypothesis import given
from hypothesis import strategies as st

from updraft.condor.process.news import NOTHING, Listener, News, Teller

LOOKS = st.lists(
    st.tuples(st.lists(st.integers(0, 9), max_size=8), st.sampled_from(("heard", "lost", "new child")))
)


class Item:
    """Equal to nothing but itself, except by its number."""

    def __init__(self, number: int) -> None:
        self.number = number


@given(LOOKS)
def test_the_list_arrives_whatever_was_lost_before(looks: list[tuple[list[int], str]]) -> None:
    teller, listener = Teller[Item](), Listener[Item]()
    items = [Item(number) for number in range(10)]
    for numbers, fate in looks:
        packed = pickle.dumps(teller.news([items[n] for n in numbers], listener.mark))
        news = pickle.loads(packed)  # noqa: S301 - packed a line above
        if fate == "heard":
            assert [one.number for one in listener.take(news)] == numbers
        elif fate == "new child":
            teller = Teller()


def test_only_what_is_new_is_sent() -> None:
    teller, listener = Teller[Item](), Listener[Item]()
    one, two, three = map(Item, range(3))

    def sent(*found: Item) -> News[Item]:
        news = teller.news(found, listener.mark)
        assert listener.take(news) == found
        return news

    assert sent(one, two).fresh == (one, two)
    assert sent(two, one).fresh == ()
    assert sent(three, two).fresh == (three,)
    assert sent().fresh == ()
    assert teller.news((one,), NOTHING).fresh == (one,)
