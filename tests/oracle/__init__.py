"""References for windows and process functions: one row at a time, in plain Python, slow and easy to believe.

An oracle keeps every row of every window and computes each result from scratch. It is given the epochs and
watermarks that the engine used, and shares nothing with the engine but the words of the vocabulary. Compare
its results as a set: the order inside an epoch means nothing.

The rules. W promises that no more rows with a timestamp <= W come; a window is [start, end).

1. An epoch, in this order:

       early rows     judged by the watermark before (and the clock before)
       tick           timers of event time up to W, in their order; then those of the clock, in theirs;
                      windows that are over close and leave
       rows           judged by W (and the clock)
       settle         timers that rows set behind the time; late corrections, once for each key and window;
                      late rows in windows of their own

2. The life of a window:

                 rows come            W = end-1              W = end-1+lateness
       ----------|--------------------|----------------------|-------------------> W
                 open: panes "early"  | fires "on_time"      | over: its rows are late
                                      | then panes "late"    |

   A row is added to all its windows that are not over; it is late only if there is none. Results say `pane`,
   and `firing`: how often this key and window fired before, at least 1 for "late". An empty window never
   fires. "early" is what fires while W < end-1, or for a timer before end-1; "on_time" the first other firing in
   the tick that passes end-1; "late" every other one.

3. Accumulation, rows 3, 5 and 4 with a firing behind each:

       accumulating    3    8     12
       discarding      3    5     4                 a firing empties the window
       retracting      +I 3    -U 3 +U 8    -U 8 +U 12

   A purge also forgets what was shown: the next firing of a retracting step is "+I" again.

4. Sessions: rows cover [ts, ts+gap); what overlaps or touches is one session.

       row a  [-----)                         epoch 1
       row b               [-----)            epoch 1: two sessions
       row c       [-------)                  epoch 2: touches both, so all three are one

   The rows of a phase (the early ones; the others) and the live sessions are merged first and judged then: only a
   session made of new rows alone can be over, and its rows are late. A session that fired and now ends behind W is
   open again. The next firing has a number greater than those of all parts, and a retracting step takes
   back what it showed of each part.

5. Late rows, by policy: an output of their own, counted and dropped, or windows of their own: one result for each
   key, window and epoch, pane "own".

6. Time zones: boundaries are times on the wall; their instant is the first at which the clock there shows that
   time or a later one. `wall` draws it.

Triggers are in `machines`, `early_late` and `compositions`; look-backs and count windows in `by_row`. Process
functions have an interpreter of their own, `process`.
"""

from tests.oracle.by_row import CountOracle, LookBackOracle
from tests.oracle.nodes import oracle_of
from tests.oracle.process import ProcessOracle
from tests.oracle.windows import Answer, WindowOracle

__all__ = [
    "Answer",
    "CountOracle",
    "LookBackOracle",
    "ProcessOracle",
    "WindowOracle",
    "oracle_of",
]
