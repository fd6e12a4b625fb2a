"""The root of every error that pi_course raises on purpose.

    PiError
    `-- one subclass for each situation, in the module that raises it

A message says what is wrong, where (values in repr, so that "" and " " look different) and what
to do next. An error only stores its message: making one writes no log and touches no file.
"""


class PiError(Exception):
    """Caught where a caller wants all errors of this package and no others."""
