"""Every error that Headrace raises on purpose.

    HeadraceError
    ├── BuildError (ValueError)        a pipeline that cannot work; raised on the user's line
    │   └── SchemaError                a field that is missing or has the wrong type
    ├── SetupError (RuntimeError)      Java, Spark or a setting of the machine does not fit
    ├── CheckpointError                the checkpoint cannot be used
    │   ├── CheckpointInUse            another run holds it
    │   ├── CheckpointMismatch         it belongs to another job, graph or number of shards
    │   └── CheckpointDamaged          a file of it is missing or its checksum is wrong
    ├── InputError (ValueError)        input that cannot be read as it was declared
    ├── UserCodeError                  a user's function raised
    ├── SinkError                      a system that takes the output is away; it is asked again
    │   └── SinkRefused                it will not take the output until somebody acts
    └── EngineError                    Spark or Headrace itself failed

    UserWarning
    └── UnboundedStateWarning          state that grows with the keys and is never taken away

`fault` says who must act; `retryable` says whether the same epoch may succeed when it is run again.
"""

from typing import ClassVar, Literal

__all__ = [
    "BuildError",
    "CheckpointDamaged",
    "CheckpointError",
    "CheckpointInUse",
    "CheckpointMismatch",
    "EngineError",
    "HeadraceError",
    "InputError",
    "SchemaError",
    "SetupError",
    "SinkError",
    "SinkRefused",
    "UnboundedStateWarning",
    "UserCodeError",
]


class HeadraceError(Exception):
    """The root of the tree: whatever Headrace raises on purpose."""

    fault: ClassVar[Literal["user", "external", "internal"]] = "user"
    retryable: ClassVar[bool] = False


class BuildError(HeadraceError, ValueError):
    """A pipeline that cannot work, raised by the builder call that is wrong."""


class SchemaError(BuildError):
    """A field that does not exist or has another type than the operation needs."""


class SetupError(HeadraceError, RuntimeError):
    """The machine or the Spark session does not have what a job needs."""

    fault = "external"


class CheckpointError(HeadraceError, RuntimeError):
    """The checkpoint directory cannot be used as it is."""


class CheckpointInUse(CheckpointError):
    """Another run holds the lease of this checkpoint."""


class CheckpointMismatch(CheckpointError):
    """The checkpoint was written by another job, graph or number of shards."""


class CheckpointDamaged(CheckpointError):
    """A file of the checkpoint is missing, truncated or altered."""

    fault = "external"


class InputError(HeadraceError, ValueError):
    """Input that is not what its source declared."""


class UserCodeError(HeadraceError, RuntimeError):
    """A user's function raised; the message holds the operator, the row's origin and the traceback."""

    retryable = True


class SinkError(HeadraceError, RuntimeError):
    """An output system could not be reached or failed; it is asked again."""

    fault = "external"
    retryable = True


class SinkRefused(SinkError):
    """An output system will not take the rows until somebody acts; they stay staged."""

    retryable = False


class EngineError(HeadraceError, RuntimeError):
    """Spark or Headrace failed for a reason that is not the user's."""

    fault = "internal"
    retryable = True


class UnboundedStateWarning(UserWarning):
    """State of keys that has no time to live and that no code clears; the message says how to say that it is meant."""
