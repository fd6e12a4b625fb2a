"""pi_course, the runtime of a small coding agent."""
