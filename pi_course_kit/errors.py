"""The kit's one error: wrong use or a broken environment, never a red test."""


class CourseError(Exception):
    """Its text says what is wrong, where, and what to do next; the command line exits with 2."""
