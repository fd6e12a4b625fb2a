from greeting import greeting


def test_three_people_are_greeted_in_one_line() -> None:
    assert greeting(["Ada", "Ben", "Cem"]) == "Hello, Ada, Ben and Cem!"
