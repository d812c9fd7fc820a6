"""A step that several sources feed."""

from hypothesis import given
from hypothesis import strategies as st

from headrace._watermarks.merging import merged_watermark
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from tests.examples import examples


def merged(*resting: str, before: int = NO_WATERMARK, **watermarks: int) -> int:
    return merged_watermark(
        tuple(watermarks), before=before, watermarks=watermarks, resting=resting
    )


def test_the_slowest_decides() -> None:
    assert merged(a=40, b=10) == 10


def test_an_idle_source_does_not_hold_the_other() -> None:
    assert merged("b", a=40, b=10) == 40
    assert merged("b", a=40, b=NO_WATERMARK) == 40


def test_a_source_that_wakes_does_not_pull_time_back() -> None:
    assert merged(before=40, a=45, b=10) == 40
    assert merged(before=40, a=45, b=43) == 43


def test_with_all_idle_it_goes_to_the_greatest() -> None:
    assert merged("a", "b", a=40, b=10) == 40


def test_a_finished_source_does_not_count_until_all_are() -> None:
    assert merged(a=END_OF_TIME, b=10) == 10
    assert merged("b", a=END_OF_TIME, b=10) == 10
    assert merged(a=END_OF_TIME, b=END_OF_TIME) == END_OF_TIME


marks = st.one_of(st.sampled_from([NO_WATERMARK, END_OF_TIME]), st.integers(0, 50))


@given(
    st.lists(
        st.tuples(st.dictionaries(st.sampled_from("abc"), marks), st.sets(st.sampled_from("abc")))
    )
)
@examples(100)
def test_it_never_falls_and_never_passes_an_active_source_by_itself(
    news: list[tuple[dict[str, int], set[str]]],
) -> None:
    sources, before = dict.fromkeys("abc", NO_WATERMARK), NO_WATERMARK
    for change, idle in news:
        sources = {uid: max(mark, change.get(uid, mark)) for uid, mark in sources.items()}
        after = merged(*idle, before=before, **sources)
        assert after >= before
        active = [mark for uid, mark in sources.items() if uid not in idle]
        if active and after > before:
            assert after <= max(min(active), before)
        before = after
