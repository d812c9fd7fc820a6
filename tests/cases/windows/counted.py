"""Windows by number of rows, in the order of their arrival: what is not full when the input ends does not fire.

rows            4 2   5 3   1 6
two by two      6     8     7
three by three  11          10
four by four          14                 1 and 6 wait
three, each two 4 2   2 5 3 3 1 6        6, 10, 10
"""

import headrace as hr
from headrace.windows import Count
from tests.cases.harness.case import Case

BIDS = """
    item: str | price: int
    x         | 4
    x         | 2
    x         | 5
    x         | 3
    x         | 1
    x         | 6
"""


def counted(window: Count, *rows: str) -> Case:
    return Case(
        inputs={"bids": BIDS},
        pipeline=lambda bids: bids.key_by("item").window(window).aggregate(total=hr.sum("price")),
        expected="\n".join(["firing | total", *rows]),
    )


TWO_BY_TWO = counted(Count(2), "0 | 6", "1 | 8", "2 | 7")
THREE_BY_THREE = counted(Count(3), "0 | 11", "1 | 10")
FOUR_BY_FOUR = counted(Count(4), "0 | 14")
LAST_THREE_EACH_TWO = counted(Count(3, 2), "0 | 6", "1 | 10", "2 | 10")
