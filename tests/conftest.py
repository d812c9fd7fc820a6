"""Random tests draw the same examples in every run. `HEADRACE_EXPLORE=1` lets them look for new ones."""

import os

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.register_profile("explore", deadline=None)
settings.load_profile("explore" if os.environ.get("HEADRACE_EXPLORE") else "repeatable")
