"""Look-up joins: rows beside what a table outside has for their key. No state, and nothing is shuffled."""

from headrace._runtime.joins.lookup.operator import LookupJoin

__all__ = ["LookupJoin"]
