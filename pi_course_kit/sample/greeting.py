"""A greeting for one person or more."""


def greeting(names: list[str]) -> str:
    if len(names) == 1:
        return f"Hello, {names[0]}!"
    return f"Hello, {', '.join(names[:-1])}, {names[-1]}!"
