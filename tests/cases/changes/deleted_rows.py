"""`last` of a stream of changes: a row that is deleted is not there any more, and the rows of a change may be in two epochs."""

from tests.cases.harness.case import Case


def last(*changes: str, then: str = "", xfail: str = "") -> Case:
    return Case(
        inputs={"people": "\n".join(["id: int | city: str | change: str", *changes])},
        pipeline=lambda people: people.key_by("id").last(forever=True),
        expected=f"id | city\n{then}",
        xfail=xfail,
    )


INSERTED = last("1 | London | +I", then="1 | London")
MOVED = last("1 | London | +I", "1 | London | -U", "1 | Turin | +U", then="1 | Turin")
DELETED = last("1 | London | +I", "1 | London | -D")
MOVED_AND_DELETED = last("1 | London | +I", "1 | London | -U", "1 | Turin | +U", "1 | Turin | -D")
DELETED_AND_BACK = last("1 | London | +I", "1 | London | -D", "1 | Rome | +I", then="1 | Rome")

# Upserts, and rows that are delivered twice: the rows of an epoch are taken back by their content, wherever they stand.
_BY_CONTENT = "ours: last() keeps a deleted row if an equal or older one is in the same epoch"
UPSERTED = last("1 | London | +U", "1 | Turin | +U", "1 | Turin | -D", xfail=_BY_CONTENT)
DELIVERED_TWICE = last("1 | London | +I", "1 | London | +I", "1 | London | -D", xfail=_BY_CONTENT)
