"""The tables of Flink's page on window functions: the same bids, the same windows, the same sums.

bids      C4    A2    D5  |  B3    E1        F6                    price, in the order of time
minute    05    07    09  10 11    13        17        20
tumble    [00 ---------- 10)[10 ---------------------- 20)         11, 10
hop       [00 ---------- 10)
            [05 ------------------ 15)                             11, 15, 10, 6
                          [10 ---------------------- 20)
                                         [15 ------------------ 25)
cumulate  [00 -- 06)      [10 12)                                  4, 3
          [00 ----- 08)   [10 -- 14)                               6, 4
          [00 ------- 10) [10 ------ 16)                           11, 4
                          [10 --------- 18)                        10
                          [10 ------------ 20)                     10
"""

from datetime import timedelta

import headrace as hr
from headrace.windows import Cumulating, Hopping, Tumbling
from tests.cases.harness.case import Case

MINUTE = timedelta(minutes=1)
BIDS = """
    at: time | item: str | price: int | supplier: str
    08:05    | C         | 4          | one
    08:07    | A         | 2          | one
    08:09    | D         | 5          | two
    08:11    | B         | 3          | two
    08:13    | E         | 1          | one
    08:17    | F         | 6          | two
"""

TUMBLING = Case(
    inputs={"bids": BIDS},
    pipeline=lambda bids: bids.window_all(Tumbling(10 * MINUTE)).aggregate(total=hr.sum("price")),
    expected="""
        window_start | window_end | pane    | firing | total
        08:00        | 08:10      | on_time | 0      | 11
        08:10        | 08:20      | on_time | 0      | 10
    """,
    any_order=True,
)

#: The page on offsets: windows of ten minutes, shifted by one.
OFFSET = Case(
    inputs={"bids": BIDS},
    pipeline=lambda bids: bids.window_all(Tumbling(10 * MINUTE, MINUTE)).aggregate(
        total=hr.sum("price")
    ),
    expected="""
        window_start | window_end | total
        08:01        | 08:11      | 11
        08:11        | 08:21      | 10
    """,
    any_order=True,
)

HOPPING = Case(
    inputs={"bids": BIDS},
    pipeline=lambda bids: bids.window_all(Hopping(10 * MINUTE, 5 * MINUTE)).aggregate(
        total=hr.sum("price")
    ),
    expected="""
        window_start | window_end | pane    | firing | total
        08:00        | 08:10      | on_time | 0      | 11
        08:05        | 08:15      | on_time | 0      | 15
        08:10        | 08:20      | on_time | 0      | 10
        08:15        | 08:25      | on_time | 0      | 6
    """,
    any_order=True,
)

#: Ten minutes every four: a window does not end where another one starts.
UNEVEN = Case(
    inputs={"bids": BIDS},
    pipeline=lambda bids: bids.window_all(Hopping(10 * MINUTE, 4 * MINUTE)).aggregate(
        total=hr.sum("price")
    ),
    expected="""
        window_start | window_end | total
        07:56        | 08:06      | 4
        08:00        | 08:10      | 11
        08:04        | 08:14      | 15
        08:08        | 08:18      | 15
        08:12        | 08:22      | 7
        08:16        | 08:26      | 6
    """,
    any_order=True,
)

CUMULATING = Case(
    inputs={"bids": BIDS},
    pipeline=lambda bids: bids.window_all(Cumulating(10 * MINUTE, 2 * MINUTE)).aggregate(
        total=hr.sum("price")
    ),
    expected="""
        window_start | window_end | pane    | firing | total
        08:00        | 08:06      | on_time | 0      | 4
        08:00        | 08:08      | on_time | 0      | 6
        08:00        | 08:10      | on_time | 0      | 11
        08:10        | 08:12      | on_time | 0      | 3
        08:10        | 08:14      | on_time | 0      | 4
        08:10        | 08:16      | on_time | 0      | 4
        08:10        | 08:18      | on_time | 0      | 10
        08:10        | 08:20      | on_time | 0      | 10
    """,
    any_order=True,
)

#: The step is the size: one window at a time, whatever is aggregated.
CUMULATING_IN_ONE_STEP = Case(
    inputs={"bids": BIDS},
    pipeline=lambda bids: bids.window_all(Cumulating(10 * MINUTE, 10 * MINUTE)).aggregate(
        suppliers=hr.count_distinct("supplier")
    ),
    expected="""
        window_start | window_end | pane    | firing | suppliers
        08:00        | 08:10      | on_time | 0      | 2
        08:10        | 08:20      | on_time | 0      | 2
    """,
    any_order=True,
)

BY_SUPPLIER = Case(
    inputs={"bids": BIDS},
    pipeline=lambda bids: (
        bids.key_by("supplier").window(Tumbling(10 * MINUTE)).aggregate(total=hr.sum("price"))
    ),
    expected="""
        window_end | supplier | total
        08:10      | one      | 6
        08:10      | two      | 5
        08:20      | one      | 1
        08:20      | two      | 9
    """,
    any_order=True,
)
