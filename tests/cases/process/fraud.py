"""The fraud detector of Flink's walkthrough: a payment below 1 and then one above 500 within a minute is an alert.

1  0.5 (00)   600 (10)                 alert               7  1.0 (00)   600 (10)               not small
2  600 (00)   0.5 (10)                 wrong way round     8  0.5 (00)   500 (10)               not large
3  0.5 (00)   20 (05)   600 (10)       one between them    9  0.5 (00)   0.5 (50)   600 (100)   small and small again
4  0.5 (00)   600 (60)                 exactly a minute   10  0.5 (00)   600 (09)   700 (10)    large twice
5  0.5 (00)   600 (60.000001)          too late           11  600 (10) arrives before 0.5 (09): the order of time counts
6  0.5 (00), and nothing more                             12  0.5 (00)   600 (61)   0.5 (62)   900 (63)
"""

from examples import fraud_detection
from tests.cases.harness.case import Case

CASE = Case(
    inputs={
        "payments": """
            at: time        | account: int | amount: float
            08:00           | 1            | 0.5
            08:00           | 2            | 600
            08:00           | 3            | 0.5
            08:00           | 4            | 0.5
            08:00           | 5            | 0.5
            08:00           | 6            | 0.5
            08:00           | 7            | 1.0
            08:00           | 8            | 0.5
            08:00           | 9            | 0.5
            08:00           | 10           | 0.5
            08:00           | 12           | 0.5
            08:00:05        | 3            | 20
            08:00:09        | 10           | 600
            08:00:10        | 1            | 600
            08:00:10        | 2            | 0.5
            08:00:10        | 3            | 600
            08:00:10        | 7            | 600
            08:00:10        | 8            | 500
            08:00:10        | 10           | 700
            08:00:10        | 11           | 600
            08:00:09        | 11           | 0.5
            08:00:50        | 9            | 0.5
            08:01           | 4            | 600
            08:01:00.000001 | 5            | 600
            08:01:01        | 12           | 600
            08:01:02        | 12           | 0.5
            08:01:03        | 12           | 900
            08:01:40        | 9            | 600
        """,
    },
    pipeline=fraud_detection.detect,
    expected="""
        account | amount | at
        1       | 600.0  | 08:00:10
        4       | 600.0  | 08:01
        9       | 600.0  | 08:01:40
        10      | 600.0  | 08:00:09
        11      | 600.0  | 08:00:10
        12      | 900.0  | 08:01:03
    """,
    any_order=True,
)
