"""Tests leave the workspace of whoever runs them alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def a_workspace_of_their_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PI_COURSE_WORKSPACE", str(tmp_path_factory.mktemp("workspace")))
        yield
