"""Chapter 08: read, write, edit and bash in a folder."""

import asyncio
import contextlib
import errno
import gc
import io
import os
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
import tracemalloc
import unicodedata
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

SMILE = "\U0001f600"
BOM = b"\xef\xbb\xbf"
HANGS = "nothing came back within 3 s: what does it wait for?"


def run(coro, sentence=HANGS, seconds=3):
    """Run to the end, to the time limit, or to the first error in a callback of the loop.

    asyncio only logs such an error, and what waits for the callback would wait on.
    """
    raised = []

    async def limited():
        def stop(loop, context):
            if not raised and isinstance(context.get("exception"), Exception):
                raised.append(context["exception"])
                task.cancel()

        task = asyncio.current_task()
        asyncio.get_running_loop().set_exception_handler(stop)
        try:
            return await asyncio.wait_for(coro, seconds)
        except TimeoutError:
            raise AssertionError(sentence) from None

    try:
        return asyncio.run(limited())
    except asyncio.CancelledError:
        if raised:
            raise raised[0] from None
        raise


def refusal(function, *arguments, **options):
    """The sentence with which something is refused."""
    from pi_course.coding_tools.refusal import ToolRefused

    with pytest.raises(ToolRefused) as refused:
        function(*arguments, **options)
    return str(refused.value)


def limits(**changes):
    from pi_course.coding_tools.limits import Limits

    return Limits(**changes)


# Lab 8.1: read


def window(data, offset=1, limit=None, name="notes.txt", **caps):
    from pi_course.coding_tools.read import read_window

    return read_window(io.BytesIO(data), name, offset, limit, limits(**caps))


def test_read_gives_the_text_as_it_stands():
    """The lines come without numbers and with their line ends; there is nothing to note."""
    found = window(b"hello world\n")
    assert (found.text, found.first, found.last) == ("hello world\n", 1, 1)
    assert (found.more, found.note) == (False, "")
    with pytest.raises(FrozenInstanceError):
        found.text = "other"


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"", ""),
        (b"a\nb", "a\nb"),
        (b"\n\n", "\n\n"),
        (b"a\r\nb\r\n", "a\nb\n"),
        (b"a\rb\n", "a\rb\n"),
        (b"a\r\r\nb", "a\r\nb"),
        (BOM + b"a\n", "a\n"),
        (BOM, ""),
        (b"a" + BOM, "a\ufeff"),
        ("a\u2028b\x85c\x0c\n".encode(), "a\u2028b\x85c\x0c\n"),
        (f"先读 {SMILE}\n".encode(), f"先读 {SMILE}\n"),
    ],
    ids=[
        "empty",
        "no-last-newline",
        "blank-lines",
        "crlf",
        "lone-cr",
        "cr-crlf",
        "bom",
        "bom-alone",
        "bom-later",
        "other-line-ends",
        "four-bytes",
    ],
)
def test_read_hides_bom_and_crlf_and_nothing_else(data, shown):
    """A BOM at the start is left out and CRLF is LF; every other character stays."""
    found = window(data)
    assert (found.text, found.more) == (shown, False)


def test_read_gives_a_window_and_names_the_next_offset():
    """offset counts from 1. The note says which lines came and where to go on."""
    found = window(b"a\nb\nc\n", offset=2, limit=1)
    assert (found.text, found.first, found.last, found.more) == ("b\n", 2, 2, True)
    assert found.note == "[Lines 2-2. The file goes on: read it with offset=3]"


def test_read_limit_is_capped():
    """A larger limit does not lift the cap on lines."""
    assert window(b"a\nb\nc\nd\n", limit=9, lines=3).text == "a\nb\nc\n"


@pytest.mark.parametrize("limit", [3, 4], ids=["all", "more"])
def test_read_counts_no_line_after_the_last_newline(limit):
    """Three lines and a final newline are three lines: a limit of 3 gives all, without a note."""
    assert window(b"a\nb\nc\n", limit=limit).note == ""


@pytest.mark.parametrize(
    ("data", "offset", "lines"),
    [
        (b"", 2, 0),
        (b"a\nb\nc\n", 4, 3),
        (b"a\nb", 3, 2),
        (b"a\nb", 9, 2),
        (b"ab\n" * 70_000, 70_001, 70_000),
    ],
    ids=["empty", "newline-at-end", "none-at-end", "far", "large"],
)
def test_read_behind_the_end_names_the_line_count(data, offset, lines):
    """An offset behind the last line is refused with the number of lines."""
    told = refusal(window, data, offset)
    assert f"it has {lines} lines" in told
    assert f"offset {offset}" in told


def test_read_an_empty_file_from_its_start():
    """offset 1 of an empty file is no mistake."""
    assert window(b"", offset=1).text == ""


def test_read_goes_on_without_a_gap():
    """Windows put together are the file, and each stays in the caps with its note."""
    lines = [f"{number} {SMILE * (number % 40)}\r\n" for number in range(1, 150)]
    data, got, offset = "".join(lines).encode(), [], 1
    while True:
        found = window(data, offset, lines=7, bytes=512)
        got.append(found.text)
        size = len(f"{found.text}\n{found.note}".encode()) if found.more else len(found.text)
        assert size <= 512
        assert found.last - found.first < 7
        if not found.more:
            break
        offset = found.last + 1
    assert "".join(got) == "".join(lines).replace("\r\n", "\n")


def test_read_uses_the_room_it_has():
    """A file that fills the cap comes whole, CRLF counted as LF; a byte more makes a note."""
    exact = b"x" * 255 + b"\r\n" + b"y" * 255 + b"\n"
    assert window(exact, bytes=512).note == ""
    assert window(exact, limit=2, bytes=512).last == 2
    assert window(exact + b"z", bytes=512).text == "x" * 255 + "\n"


@pytest.mark.parametrize(
    "offset", [1, 2, 10_000, 19_999, 20_000], ids=["first", "second", "middle", "late", "last"]
)
def test_read_finds_any_line_of_a_large_file(offset):
    """The lines before the window are counted right, in files larger than one block too."""
    data = b"".join(b"line %d\n" % number for number in range(1, 20_001))
    assert window(data, offset, limit=1).text == f"line {offset}\n"


@pytest.mark.parametrize("ending", [b"", b"\nmore\n"], ids=["one-line", "first-of-two"])
def test_read_line_too_long_is_refused_with_a_way_out(ending):
    """A line that can't fit is refused; the sentence has a command for a part of it."""
    told = refusal(window, b"a\n" + b"x" * 513 + ending, 2, name="my file.js", bytes=512)
    assert told.startswith("my file.js: line 2 does not fit into 512 bytes")
    assert "sed -n 2p 'my file.js' | head -c 1000" in told


def test_read_line_that_leaves_no_room_for_the_note_is_refused():
    """A line of 512 bytes fits alone, and not together with the note that more follows."""
    line = b"x" * 511 + b"\n"
    assert window(line, bytes=512).last == 1
    assert "line 1 does not fit" in refusal(window, line + b"y", bytes=512)


class Counting(io.BytesIO):
    """Counts the bytes that were asked for."""

    asked = 0

    def read(self, size=-1):
        data = super().read(size)
        self.asked += len(data)
        return data

    def readline(self, size=-1):
        data = super().readline(size)
        self.asked += len(data)
        return data


@pytest.mark.parametrize("line", [b"short\n", b"x" * 1000], ids=["many-lines", "one-line"])
def test_read_does_not_load_the_file(line):
    """A window at the start of 4 MB takes no more than a few blocks, also of an endless line."""
    from pi_course.coding_tools.read import read_window
    from pi_course.coding_tools.refusal import ToolRefused

    file = Counting(line * (4_000_000 // len(line)))
    with contextlib.suppress(ToolRefused):
        read_window(file, "big.txt", limit=10)
    assert file.asked < 200_000


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0", "it is a PNG image"),
        (b"\xff\xd8\xff\xe0\0", "it is a JPEG image"),
        (b"\x7fELF\0", "it is a program"),
        ("hi".encode("utf-16"), "it is UTF-16 text"),
        (b"a\0b", "it is binary"),
        ("caf\u00e9\n".encode("latin-1"), "it has another encoding"),
        (b"a\n" * 9000 + b"\0", "it has another encoding"),
        (b"\0" + b"a\n" * 9000, "it is binary"),
    ],
    ids=["png", "jpeg", "elf", "utf-16", "nul", "latin-1", "nul-late", "nul-before-the-window"],
)
def test_read_refuses_what_is_no_text_by_what_is_in_it(data, found):
    """Not the name decides but the bytes: NUL, or what is not UTF-8. The sentence names it."""
    offset = data.count(b"\n") + 1 - data.endswith(b"\n")
    told = refusal(window, data, offset or 1, name="notes.txt")
    assert told.startswith(f"notes.txt: {found}, and not UTF-8 text")


def test_read_names_the_byte_that_is_no_utf8():
    """The first byte that does not fit is shown."""
    assert refusal(window, b"caf\xe9\n").endswith("byte 0xe9")


def test_read_opens_no_pipe_folder_or_link(tmp_path):
    """A pipe would wait for a writer for ever. A folder and a link are refused, too."""
    from pi_course.coding_tools.text_file import open_file

    (tmp_path / "file").write_bytes(b"text")
    (tmp_path / "link").symlink_to("file")
    os.mkfifo(tmp_path / "pipe")
    with open_file(tmp_path / "file") as file:
        assert file.read() == b"text"
    found = []
    for name in ("pipe", "link", "."):
        with pytest.raises(OSError) as refused:
            open_file(tmp_path / name)
        found.append(refused.value.errno)
    assert found == [errno.ENXIO, errno.ELOOP, errno.EISDIR]


# Lab 8.2: paths


def workspace(tmp_path, **options):
    """A workspace with a file, and a folder beside it with a secret."""
    from pi_course.coding_tools.paths import Workspace

    root, outside = tmp_path / "Projekt", tmp_path / "Projekt-alt"
    if not root.exists():
        (root / "sub").mkdir(parents=True)
        (root / "notes.txt").write_bytes(b"hello world\n")
        outside.mkdir()
        (outside / "secret.txt").write_bytes(b"secret")
    return Workspace(root, **options), Path(os.path.realpath(root)), outside


@pytest.mark.parametrize(
    ("given", "inside"),
    [
        ("notes.txt", "notes.txt"),
        ("./sub/../notes.txt", "notes.txt"),
        ("{root}/notes.txt", "notes.txt"),
        ("new/deep/file.txt", "new/deep/file.txt"),
        ("..foo/notes.txt", "..foo/notes.txt"),
        ("...", "..."),
        ("-rf", "-rf"),
        ("a\nb", "a\nb"),
        ("a~b", "a~b"),
        ("../Projekt/notes.txt", "notes.txt"),
        (".", "."),
    ],
    ids=[
        "plain",
        "dots",
        "absolute",
        "new",
        "dot-dot-name",
        "three-dots",
        "dash",
        "newline",
        "tilde-inside",
        "out-and-in",
        "root",
    ],
)
def test_paths_inside_the_workspace(tmp_path, given, inside):
    """These lie inside, whether the file is there or not."""
    place, root, _ = workspace(tmp_path)
    given = given.format(root=root)
    assert place.to_read(given) == Path(os.path.normpath(root / inside))
    assert place.to_write(given) == place.to_read(given)


@pytest.mark.parametrize(
    "given",
    [
        "/etc/passwd",
        "..",
        "../Projekt-alt/secret.txt",
        "sub/../../Projekt-alt/new.txt",
        "~",
        "~/new.txt",
        "link-to-file",
        "link-to-folder/secret.txt",
        "link-to-folder/new.txt",
        "link-to-nothing",
        "link-to-link",
        "sub/link-up/Projekt-alt/new.txt",
    ],
    ids=[
        "absolute",
        "parent",
        "beside",
        "through-a-folder",
        "home",
        "in-home",
        "file-link",
        "folder-link",
        "folder-link-new",
        "dangling",
        "chain",
        "relative-link",
    ],
)
def test_paths_out_of_the_workspace_are_refused(tmp_path, given):
    """Every way out is refused for reading and writing, and the sentence says only what came."""
    place, root, outside = workspace(tmp_path)
    (root / "link-to-file").symlink_to(outside / "secret.txt")
    (root / "link-to-folder").symlink_to(outside)
    (root / "link-to-nothing").symlink_to(outside / "new.txt")
    (root / "link-to-link").symlink_to("link-to-nothing")
    (root / "sub" / "link-up").symlink_to("../..")
    for check in (place.to_read, place.to_write):
        told = refusal(check, given)
        assert told == f"{given}: it leads out of the workspace, where files are off limits"


@pytest.mark.parametrize(
    "name", ["PROJEKT", "Projekt\u0301", "Projek\uff54"], ids=["case", "accent", "wide"]
)
def test_paths_of_folders_that_look_like_the_workspace_are_refused(tmp_path, name):
    """A folder beside it whose name differs in case or form of a letter is another folder."""
    place, root, _ = workspace(tmp_path)
    if not (root.parent / name).exists():  # where case does not count, it is the same one
        assert "leads out" in refusal(place.to_write, str(root.parent / name / "notes.txt"))


def test_paths_follow_links_that_stay_inside(tmp_path):
    """A link gives the path of what it leads to, also of a file that is not there yet."""
    place, root, _ = workspace(tmp_path)
    (root / "to-file").symlink_to("notes.txt")
    (root / "to-new").symlink_to("sub/new.txt")
    (root / "to-sub").symlink_to("sub")
    paths = ["to-file", "to-new", "to-sub/x.txt"]
    assert [place.to_write(path).relative_to(root).as_posix() for path in paths] == [
        "notes.txt",
        "sub/new.txt",
        "sub/x.txt",
    ]


def test_paths_of_a_workspace_behind_a_link(tmp_path):
    """A workspace that is given through a link is the folder it leads to."""
    from pi_course.coding_tools.paths import Workspace

    _, root, _ = workspace(tmp_path)
    (tmp_path / "door").symlink_to(root)
    assert Workspace(tmp_path / "door").to_write("notes.txt") == root / "notes.txt"


@pytest.mark.parametrize(
    ("given", "told"), [("", "path is empty"), ("a\0b", "NUL")], ids=["empty", "nul"]
)
def test_paths_that_name_nothing_are_refused(tmp_path, given, told):
    """An empty path and one with a NUL have a sentence each."""
    place, _, _ = workspace(tmp_path)
    assert told in refusal(place.to_read, given)
    assert told in refusal(place.locate, given)


def test_paths_unrestricted_lead_anywhere(tmp_path):
    """Without containment a path may lead out."""
    place, _, outside = workspace(tmp_path, contained=False)
    assert place.to_write("../Projekt-alt/new.txt") == Path(os.path.realpath(outside)) / "new.txt"


def test_paths_readable_folders_can_be_read_only(tmp_path):
    """A folder given as readable is open to read, and to nothing else."""
    outside = tmp_path / "Projekt-alt"
    place, _, _ = workspace(tmp_path, readable=[outside])
    path = str(outside / "secret.txt")
    assert place.to_read(path) == Path(os.path.realpath(path))
    assert "leads out" in refusal(place.to_write, path)


@pytest.mark.parametrize(
    ("on_disk", "given"),
    [
        ("Bild um 10.15\u202fPM.png", "Bild um 10.15 PM.png"),
        (unicodedata.normalize("NFD", "caf\u00e9.txt"), "caf\u00e9.txt"),
        ("Bob\u2019s notes.txt", "Bob's notes.txt"),
    ],
    ids=["odd-space", "accent", "quote"],
)
def test_paths_find_a_name_that_looks_the_same(tmp_path, on_disk, given):
    """A model writes the plain name of what a screenshot or another system spelled differently."""
    # Pi, report 181
    place, root, _ = workspace(tmp_path)
    (root / "sub" / on_disk).write_bytes(b"")
    found = place.spelled(f"sub/{given}")
    assert place.to_read(found).samefile(root / "sub" / on_disk)


def test_paths_prefer_the_name_as_given(tmp_path):
    """The exact name counts first; of two that look alike neither is guessed; links stay links."""
    place, root, outside = workspace(tmp_path)
    (root / "a\u2019b").write_bytes(b"")
    (root / "a\u2018b").write_bytes(b"")
    (root / "x\u2019y").symlink_to(outside / "secret.txt")
    (root / "link").symlink_to("sub/x'y")
    (root / "sub" / "x\u2019y").write_bytes(b"")
    for given in ("a\u2019b", "a'b", "none/a'b", "./notes.txt", "new.txt", "link"):
        assert place.spelled(given) == given
    assert place.spelled("x'y") == "x\u2019y"
    assert "leads out" in refusal(place.to_read, "x\u2019y")
    assert "leads out" in refusal(place.spelled, "../Projekt-alt/secret\uff0etxt")


def test_paths_to_write_take_no_other_file(tmp_path):
    """A name that only looks like another one is a new file; the same letters are the same name."""
    place, root, _ = workspace(tmp_path)
    (root / "Bob\u2019s").write_bytes(b"")
    (root / "a\u00a0b").write_bytes(b"")
    (root / "e\u0301\uff0e").write_bytes(b"")
    (root / "\u00e9.").symlink_to("notes.txt")
    for given in ("Bob's", "a b"):
        assert place.to_write(given) == place.to_read(given) == root / given
    assert place.to_write("\u00e9\uff0e").samefile(root / "e\u0301\uff0e")
    assert place.spelled("\u00e9\uff0e") == "\u00e9\uff0e"


@pytest.mark.parametrize("instead", ["nothing", "file", "link"])
def test_paths_of_a_workspace_that_has_gone_are_refused(tmp_path, instead):
    """The folder has gone, or something else has taken its place: no path leads anywhere."""
    place, root, outside = workspace(tmp_path, contained=False)
    shutil.rmtree(root)
    if instead == "file":
        root.write_bytes(b"")
    elif instead == "link":
        root.symlink_to(outside)
    for check in (place.to_read, place.to_write, place.spelled):
        told = refusal(check, "secret.txt")
        assert told == "the workspace folder is not there any more: nothing was done"


# Lab 8.3: write and queue


def test_write_makes_parents_and_says_that_the_file_is_new(tmp_path):
    """Folders that are missing are made; the mode is what the umask leaves."""
    from pi_course.coding_tools.write import replace_file

    path = tmp_path / "a" / "b" / "new.txt"
    before = os.umask(0o027)
    try:
        assert replace_file(path, b"one\r\ntwo") is True
    finally:
        os.umask(before)
    assert path.read_bytes() == b"one\r\ntwo"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert os.listdir(path.parent) == ["new.txt"]


@pytest.mark.parametrize("mode", [0o755, 0o600, 0o666], ids=["program", "private", "open"])
def test_write_keeps_the_mode(tmp_path, mode):
    """A file that is replaced has the same mode bits afterwards."""
    from pi_course.coding_tools.write import replace_file

    path = tmp_path / "run.sh"
    path.write_bytes(b"old")
    path.chmod(mode)
    assert replace_file(path, b"new") is False
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", mode)


def test_write_replaces_in_one_step(tmp_path):
    """The new bytes are complete in a file beside the old one before that is replaced."""
    from pi_course.coding_tools.write import replace_file

    path, seen = tmp_path / "notes.txt", []
    path.write_bytes(b"old")
    path.chmod(0o640)

    def replace(temporary, target):
        mode = stat.S_IMODE(temporary.stat().st_mode)
        seen.append((temporary.read_bytes(), mode, target.read_bytes(), temporary.parent))
        os.replace(temporary, target)

    replace_file(path, b"new", replace=replace)
    assert seen == [(b"new", 0o640, b"old", tmp_path)]


def test_write_that_fails_leaves_the_old_file(tmp_path):
    """If the last step fails, the old bytes stand and no temporary file is left."""
    from pi_course.coding_tools.write import replace_file

    path = tmp_path / "notes.txt"
    path.write_bytes(b"old")

    def refuse(temporary, target):
        raise PermissionError(errno.EACCES, "no")

    with pytest.raises(PermissionError):
        replace_file(path, b"new", replace=refuse)
    assert (path.read_bytes(), os.listdir(tmp_path)) == (b"old", ["notes.txt"])


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.EACCES, "no permission"),
        (errno.EPERM, "no permission"),
        (errno.ENOENT, "no such file"),
        (errno.ENOSPC, "disk is full"),
        (errno.EIO, os.strerror(errno.EIO)),
    ],
    ids=["access", "operation", "missing", "full", "other"],
)
def test_write_failures_of_the_system_are_told_apart(tmp_path, number, said):
    """A missing permission is called that, and never "not found"; this machine's path stays out."""
    # Pi, report 3955
    from pi_course.coding_tools.refusal import told_as
    from pi_course.coding_tools.write import replace_file

    def refuse(temporary, target):
        raise OSError(number, os.strerror(number), str(target))

    def write():
        with told_as("notes.txt"):
            replace_file(tmp_path / "notes.txt", b"new", replace=refuse)

    told = refusal(write)
    assert told.startswith("notes.txt: ")
    assert said in told
    assert str(tmp_path) not in told


def test_write_on_a_full_disk_leaves_the_old_file(tmp_path):
    """The system takes 1000 bytes and no more: the old file stands, nothing lies beside it."""
    import resource

    from pi_course.coding_tools.write import replace_file

    path = tmp_path / "notes.txt"
    path.write_bytes(b"old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(OSError):
            replace_file(path, b"x" * 5000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (path.read_bytes(), os.listdir(tmp_path)) == (b"old", ["notes.txt"])


def test_write_replaces_files_only(tmp_path):
    """A folder, a pipe and a link that has come into the way are left alone."""
    from pi_course.coding_tools.write import replace_file

    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("nothing")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_bytes(b"")
    found = []
    for name in ("folder", "link", "pipe", "file/inside"):
        with pytest.raises(OSError) as refused:
            replace_file(tmp_path / name, b"new")
        found.append(refused.value.errno)
    assert found == [errno.EISDIR, errno.ENXIO, errno.ENXIO, errno.ENOTDIR]
    assert sorted(os.listdir(tmp_path)) == ["file", "folder", "link", "pipe"]


async def turns(queue, *steps):
    """Take turns on (name, path), two steps each, and give what happened in order."""
    log = []

    async def one(name, path):
        async with queue.turn(path):
            log.append(f"{name} in")
            for _ in range(3):
                await asyncio.sleep(0)
            log.append(f"{name} out")

    await asyncio.gather(*(one(name, path) for name, path in steps))
    return log


def test_queue_lets_one_file_be_changed_in_order(tmp_path):
    """Turns on one file follow one another in the order in which they came."""
    from pi_course.coding_tools.mutation_queue import MutationQueue

    path = tmp_path / "notes.txt"
    log = run(turns(MutationQueue(), *((name, path) for name in "abc")))
    assert log == ["a in", "a out", "b in", "b out", "c in", "c out"]


def test_queue_knows_a_file_by_all_its_names(tmp_path):
    """A link, a way through `..` and the plain name are one file, and one queue."""
    from pi_course.coding_tools.mutation_queue import MutationQueue

    path = tmp_path / "notes.txt"
    (tmp_path / "link.txt").symlink_to("notes.txt")
    names = [path, tmp_path / "link.txt", tmp_path / "sub" / ".." / "notes.txt"]
    log = run(turns(MutationQueue(), *zip("abc", names, strict=True)))
    assert log == ["a in", "a out", "b in", "b out", "c in", "c out"]


def test_queue_takes_case_and_accents_for_one_name(tmp_path):
    """On some disks these are the same file, so they wait for each other everywhere."""
    from pi_course.coding_tools.mutation_queue import file_key

    keys = {file_key(tmp_path / name) for name in ("Caf\u00e9", "cafe\u0301", "CAF\u00c9")}
    assert len(keys) == 1
    assert file_key(tmp_path / "cafe") not in keys


def test_queue_does_not_block_other_files(tmp_path):
    """While one file is being changed, another one can be."""
    from pi_course.coding_tools.mutation_queue import MutationQueue

    async def main():
        queue = MutationQueue()
        async with queue.turn(tmp_path / "a"), queue.turn(tmp_path / "b"):
            return "both"

    assert run(main(), "one file waits for another one") == "both"


def test_queue_goes_on_after_a_failure(tmp_path):
    """A turn that raises ends like any other."""
    from pi_course.coding_tools.mutation_queue import MutationQueue

    async def main():
        queue = MutationQueue()
        with pytest.raises(ZeroDivisionError):
            async with queue.turn(tmp_path / "a"):
                raise ZeroDivisionError
        async with queue.turn(tmp_path / "a"):
            return "next"

    assert run(main(), "a failure blocks the file for ever") == "next"


@pytest.mark.parametrize("place", [1, 2], ids=["in-the-middle", "at-the-end"])
def test_queue_survives_who_gives_up_waiting(tmp_path, place):
    """A call that is cancelled while it waits leaves; those after it wait for those before it."""
    from pi_course.coding_tools.mutation_queue import MutationQueue

    async def main():
        queue, log, free = MutationQueue(), [], asyncio.Event()

        async def one(name):
            async with queue.turn(tmp_path / "a"):
                log.append(name)
                if name == 0:
                    await free.wait()

        tasks = [asyncio.create_task(one(name)) for name in range(3)]
        await asyncio.sleep(0.01)
        tasks[place].cancel()
        await asyncio.wait([tasks[place]])
        late = asyncio.create_task(one("late"))
        await asyncio.sleep(0.01)
        before = list(log)
        free.set()
        await asyncio.wait([*tasks, late])
        return before, log

    before, log = run(main())
    assert before == [0]
    assert log == [0, 3 - place, "late"]


def test_queue_orders_who_comes_while_the_second_is_at_work(tmp_path):
    """When the first has left, the third still waits for the second."""
    from pi_course.coding_tools.mutation_queue import MutationQueue

    async def main():
        queue, log = MutationQueue(), []
        first_in, second_in, second_out = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def second():
            async with queue.turn(tmp_path / "a"):
                second_in.set()
                await second_out.wait()
                log.append("second")

        async def third():
            async with queue.turn(tmp_path / "a"):
                log.append("third")

        async with queue.turn(tmp_path / "a"):
            first_in.set()
            tasks = [asyncio.create_task(second())]
            await asyncio.sleep(0)
        await second_in.wait()
        tasks.append(asyncio.create_task(third()))
        await asyncio.sleep(0.01)
        second_out.set()
        await asyncio.wait(tasks)
        return log

    assert run(main()) == ["second", "third"]


def test_queue_works_from_one_loop_after_another(tmp_path):
    """Made outside of any loop, used in two: a queue belongs to none."""
    from pi_course.coding_tools.mutation_queue import MutationQueue

    queue = MutationQueue()
    both = [("a", tmp_path / "x"), ("b", tmp_path / "x")]
    assert [len(run(turns(queue, *both))) for _ in range(2)] == [4, 4]


def test_queue_orders_two_threads(tmp_path):
    """A call in another thread, with a loop of its own, waits for its turn as well."""
    from pi_course.coding_tools.mutation_queue import MutationQueue

    queue, log, came = MutationQueue(), [], threading.Event()

    async def second():
        came.set()
        async with queue.turn(tmp_path / "a"):
            log.append("second")

    async def first():
        async with queue.turn(tmp_path / "a"):
            other = threading.Thread(target=asyncio.run, args=[second()])
            other.start()
            await asyncio.to_thread(came.wait, 2)
            await asyncio.sleep(0.02)
            log.append("first")
        await asyncio.to_thread(other.join, 2)
        return other.is_alive()

    assert run(first()) is False
    assert log == ["first", "second"]


def test_queue_work_is_done_in_a_thread():
    """to_its_end gives the value or raises, and the loop goes on meanwhile."""
    from pi_course.coding_tools.mutation_queue import to_its_end

    async def main():
        assert await to_its_end(threading.get_ident) != threading.get_ident()
        assert await to_its_end("{}-{b}".format, 1, b=2) == "1-2"
        with pytest.raises(ZeroDivisionError):
            await to_its_end(lambda: 1 / 0)
        return "done"

    assert run(main()) == "done"


def test_queue_work_is_waited_for_when_the_task_is_cancelled():
    """A thread can't be stopped: the cancelled task ends only when the write has ended."""
    from pi_course.coding_tools.mutation_queue import to_its_end

    async def main():
        log, started, free = [], asyncio.Event(), threading.Event()
        loop = asyncio.get_running_loop()

        def work():
            loop.call_soon_threadsafe(started.set)
            free.wait(2)
            log.append("work")
            raise ValueError("nobody will hear of it")

        task = asyncio.create_task(to_its_end(work))
        begun = asyncio.create_task(started.wait())
        await asyncio.wait([task, begun], return_when=asyncio.FIRST_COMPLETED)
        begun.cancel()
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0.01)
        log.append("still there" if not task.done() else "gone")
        free.set()
        await asyncio.wait([task])
        return log, task.cancelled()

    assert run(main()) == (["still there", "work"], True)


# Lab 8.4: edit


def replacements(pairs):
    from pi_course.coding_tools.edit import Replacement

    return [Replacement(oldText=old, newText=new) for old, new in pairs]


def edited(data, *pairs, name="notes.txt"):
    """The bytes after the edits."""
    from pi_course.coding_tools.edit import edit_bytes

    return edit_bytes(data, replacements(pairs), name)[0]


def details_of(data, *pairs):
    from pi_course.coding_tools.edit import edit_bytes

    return edit_bytes(data, replacements(pairs), "notes.txt")[1]


def test_edit_replaces_what_stands_there_once():
    """hello world becomes hello durable; the bytes around it stay."""
    from pi_course.coding_tools.edit import find_changes
    from pi_course.coding_tools.line_ends import LineEnds

    assert edited(b"hello world\n", ("world", "durable")) == b"hello durable\n"
    (found,) = find_changes(LineEnds("hello world\n"), replacements([("world", "durable")]), "x")
    assert (found.index, found.start, found.end, found.new) == (0, 6, 11, "durable")
    with pytest.raises(FrozenInstanceError):
        found.new = "other"


def test_edit_matches_all_against_the_original():
    """a to b and b to c on "a b" is "b c": no edit sees what another one wrote."""
    assert edited(b"a b", ("a", "b"), ("b", "c")) == b"b c"
    assert edited(b"a b", ("b", "c"), ("a", "b")) == b"b c"


@pytest.mark.parametrize(
    ("before", "pairs", "after"),
    [
        (b"ab", [("a", "1"), ("b", "2")], b"12"),
        (b"abc", [("b", "")], b"ac"),
        (b"abc", [("abc", "")], b""),
        (b"abc", [("a", "xa")], b"xabc"),
        (b"abc", [("c", "cx\n")], b"abcx\n"),
        (b"a\nb\nc\n", [("a\nb\n", "b\n"), ("c\n", "c")], b"b\nc"),
        (b"a $& b", [("a", "$&\\1")], b"$&\\1 $& b"),
        ("先 \U0001f600 後".encode(), [("\U0001f600", "x")], "先 x 後".encode()),
    ],
    ids=["adjacent", "delete", "empty-file", "start", "end", "lines", "literal", "four-bytes"],
)
def test_edit_takes_texts_of_any_kind(before, pairs, after):
    """Adjacent spans, deletions, both ends of the file; new text is taken literally."""
    assert edited(before, *pairs) == after


@pytest.mark.parametrize(
    ("data", "pairs", "told"),
    [
        (b"a", [], "notes.txt: edits is empty"),
        (b"a", [("a", "b"), ("", "c")], "edits[1].oldText is empty"),
        (b"a", [("a", "b"), ("x", "y")], "edits[1].oldText was not found"),
        (b"A", [("a", "b")], "edits[0].oldText was not found"),
        (b"\ta", [("    a", "b")], "edits[0].oldText was not found"),
        (b"same same", [("same", "X")], "edits[0].oldText was found 2 times (lines 1, 1)"),
        (b"aaa", [("aa", "b")], "edits[0].oldText was found 2 times (lines 1, 1)"),
        (b"x\ny\nx\n", [("y", "z"), ("x", "w")], "edits[1].oldText was found 2 times (lines 1, 3)"),
        (b"x\n" * 10, [("x", "y")], "was found 10 times (lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)"),
        (b"x\n" * 11, [("x", "y")], "more than 10 times (lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)"),
        (b"a\nbcd", [("cd", "x"), ("a\nbc", "y")], "edits[0] and edits[1] overlap in line 2"),
        (b"abc", [("abc", "x"), ("b", "y")], "edits[0] and edits[1] overlap in line 1"),
        (b"abc", [("b", "x"), ("b", "y")], "edits[0] and edits[1] overlap in line 1"),
        (b"abc", [("a", "x"), ("b", "b")], "edits[1] changes nothing"),
        (b"a\r\nb", [("a\nb", "a\r\nb")], "edits[0] changes nothing"),
        (b"ab", [("a", ""), ("b", "ab")], "edits[0] to edits[1] together change nothing"),
    ],
    ids=[
        "no-edits",
        "empty",
        "not-found",
        "case",
        "indentation",
        "twice",
        "overlapping-matches",
        "twice-in-lines",
        "ten-times",
        "more",
        "overlap",
        "nested",
        "same-edit-twice",
        "no-change",
        "no-change-but-cr",
        "no-change-together",
    ],
)
def test_edit_refuses_what_is_not_clear(data, pairs, told):
    """Each refusal names the edit by its index, and the lines where that helps."""
    from pi_course.coding_tools.edit import edit_bytes

    said = refusal(edit_bytes, data, replacements(pairs), "notes.txt")
    assert said.startswith("notes.txt: ")
    assert told in said


@pytest.mark.parametrize(
    ("before", "pair", "after"),
    [
        (b"a\r\nb\r\n", ("a\nb", "x\ny"), b"x\r\ny\r\n"),
        (b"a\r\nb\r\n", ("a\r\nb", "x\r\ny"), b"x\r\ny\r\n"),
        (b"a\nb\n", ("a\r\nb", "x\r\ny"), b"x\ny\n"),
        (b"a\r\nb\r\n", ("a", "a\nc"), b"a\r\nc\r\nb\r\n"),
        (b"a\r\nb", ("b", "b\nc"), b"a\r\nb\r\nc"),
        (b"a", ("a", "a\nb"), b"a\nb"),
        (b"a\r\nb\nc\n", ("b", "b\nx"), b"a\r\nb\nx\nc\n"),
        (b"a\nb\r\nc\n", ("b", "b\nx"), b"a\nb\r\nx\r\nc\n"),
        (b"a\r\nb\nc\r\nd", ("a\nb\nc\n", "1\n2\n3\n4\n"), b"1\r\n2\n3\r\n4\r\nd"),
        (b"a\r\nb\r\n", ("a\n", ""), b"b\r\n"),
        (b"a\r\r\nb\r\n", ("a\r\nb", "c\nd"), None),
        (b"x\ry\r\nz", ("z", "z\n"), b"x\ry\r\nz\r\n"),
    ],
    ids=[
        "crlf",
        "crlf-given",
        "lf-file",
        "inside-a-line",
        "last-line",
        "no-line-end",
        "mixed-lf",
        "mixed-crlf",
        "mixed-span",
        "whole-line",
        "cr-crlf",
        "lone-cr",
    ],
)
def test_edit_keeps_the_line_ends(before, pair, after):
    """Edits speak LF. New lines take the line ends of the span, or of the line it lies in."""
    # Pi, report 355
    if after is None:
        assert "not found" in refusal(edited, before, pair)
    else:
        assert edited(before, pair) == after


def test_edit_keeps_bom_and_untouched_bytes():
    """The BOM, odd line ends and blanks elsewhere are the same bytes afterwards."""
    before = BOM + "one\r\n two \t\nthree\u2028\u00a0\x0c\r\nfour\rfive\r\n".encode()
    assert edited(before, ("one", "1"), ("five", "5")) == before.replace(b"one", b"1").replace(
        b"five", b"5"
    )


@pytest.mark.parametrize(
    ("before", "old", "after"),
    [
        ("a   \nb\t\nc\n", "a\nb\n", "Xc\n"),
        ("a\nb   \nc", "b", None),
        ("a   ", "a\n", None),
        ("if x:   \r\n  y\r\n", "if x:\n  y", "X\r\n"),
        ("say \u201chi\u201d and \u201cbye\u201d   ", 'say "hi"', "X and \u201cbye\u201d   "),
        ("it\u2019s here", "it's", "X here"),
        ("1 \u2013 2 \u2014 3 \u2212 4", "1 - 2 - 3", "X \u2212 4"),
        ("a\u00a0b\u3000c\u202fd", "a b c", "X\u202fd"),
        ("a\u00a0 \u2003\nb", "a\nb", "X"),
        ("\uff21\uff22\uff23\uff0c x", "ABC,", "X x"),
        ("cafe\u0301 noir", "caf\u00e9", "X noir"),
        ("caf\u00e9 noir", "cafe\u0301", "X noir"),
        ("\u1112\u1161\u11ab x", "\ud55c", "X x"),
        ("\ufb01sh", "fish", "X"),
        ("x \ufb01sh", "x f", None),
        ("x\u2014e\u0301", "x-e", None),
        ("\ufb01\u2019s", "i's", None),
        ("a\u0301\u0323 \u2019", "a\u0323\u0301 '", "X"),
        ("a \nb", "a\nb ", None),
        ("\u2033 \u2032", "\" '", "X"),
        ("\uf900\uff76\uff9e\uff21 x", "\u8c48\u30acA", "X x"),
        ("\u8c48\u30acA x", "\uf900\uff76\uff9e\uff21", "X x"),
        ("\u2019 \t\na\u2019\n\uff21\u00a0\n", "a'", "\u2019 \t\nX\n\uff21\u00a0\n"),
    ],
    ids=[
        "trailing-blanks",
        "one-line-is-exact",
        "no-line-end",
        "crlf",
        "quotes",
        "apostrophe",
        "dashes",
        "spaces",
        "odd-trailing",
        "full-width",
        "accent-apart",
        "accent-inside",
        "hangul",
        "ligature",
        "half-a-ligature",
        "half-an-accent",
        "half-at-the-start",
        "order-of-accents",
        "blanks-at-the-very-end",
        "primes",
        "cjk",
        "cjk-given",
        "other-lines",
    ],
)
def test_edit_tolerates_what_looks_the_same(before, old, after):
    """Then only the matched characters change; half of a character never matches."""
    # Pi, report 2044
    # Pi, report 5899
    data = before.encode()
    if after is not None:
        assert edited(data, (old, "X")).decode() == after
        assert details_of(data, (old, "X"))["inexact"] == [0]
    elif old in before:
        assert details_of(data, (old, "X"))["inexact"] == []
    else:
        assert "not found" in refusal(edited, data, (old, "X"))


def test_edit_prefers_the_exact_text():
    """A text that stands there exactly once is meant, whatever looks like it elsewhere."""
    data = 'x "hi" \u201chi\u201d'.encode()
    assert edited(data, ('"hi"', "X")).decode() == "x X \u201chi\u201d"


def test_edit_refuses_two_that_look_the_same():
    """Tolerance does not make a text unique: two places are two places."""
    told = refusal(edited, "\u2018a\u2019\n\u201aa\u2019".encode(), ("'a'", "X"))
    assert "found 2 times (lines 1, 2)" in told


@pytest.mark.parametrize(
    ("count", "told"),
    [
        (100, "was not found"),
        (110, "edits[0].oldText looks like parts of characters in 200 places"),
    ],
    ids=["few", "many"],
)
def test_edit_gives_up_on_parts_of_characters(count, told):
    """Two letters f are in a ligature. Three of them are in a row of those, and never whole."""
    assert told in refusal(edited, ("\ufb00" * count).encode(), ("fff", "X"))


def test_edit_mixes_exact_and_tolerant():
    """Each edit is matched for itself, and details say which were not exact."""
    data = "a \u2019b\u2019 c".encode()
    assert edited(data, ("'b'", "B"), ("a", "A")).decode() == "A B c"
    assert details_of(data, ("a", "A"), ("'b'", "B"))["inexact"] == [1]


@pytest.mark.parametrize(
    "filler",
    [" " * 60_000, "\u00a0" * 4000, "a\u00e9 " * 4000],
    ids=["blanks", "odd", "accents"],
)
def test_edit_tolerance_takes_linear_time(filler):
    """A long line of blanks or accents is looked through once."""
    data = f"{filler}x\n\u2019".encode()
    assert edited(data, ("'", "X")).decode() == f"{filler}x\nX"


def test_edit_shows_what_it_did():
    """details hold a unified diff, the sizes, and which edits matched only nearly."""
    assert details_of(b"hello world\n", ("world", "durable")) == {
        "diff": ("--- notes.txt\n+++ notes.txt\n@@ -1 +1 @@\n-hello world\n+hello durable\n"),
        "bytesBefore": 12,
        "bytesAfter": 14,
        "inexact": [],
    }
    sizes = details_of("\u00e9\n".encode(), ("\u00e9", "\u4f60\u597d"))
    assert (sizes["bytesBefore"], sizes["bytesAfter"]) == (3, 7)


def test_edit_diff_shows_the_places_that_changed():
    """Two places far apart are two hunks with three lines around each; CR does not show."""
    lines = "".join(f"{number}\r\n" for number in range(1, 31))
    diff = details_of(BOM + lines.encode(), ("\n2\n", "\ntwo\n"), ("30\n", "thirty"))["diff"]
    assert diff == (
        "--- notes.txt\n+++ notes.txt\n@@ -1,5 +1,5 @@\n 1\n-2\n+two\n 3\n 4\n 5\n"
        "@@ -27,4 +27,4 @@\n 27\n 28\n 29\n-30\n+thirty\n\\ No newline at end of file\n"
    )


def test_edit_diff_of_new_and_deleted_lines():
    """Lines that only come or go are counted as `diff -u` counts them."""
    lines = b"a\nb\nc\nd\ne\nf\ng\nh\n"
    assert details_of(lines, ("d\n", ""))["diff"].split("\n")[2] == "@@ -1,7 +1,6 @@"
    assert details_of(lines, ("h\n", "h\ni\n"))["diff"].split("\n")[2] == "@@ -6,3 +6,4 @@"
    assert details_of(b"a\n", ("a\n", ""))["diff"].split("\n")[2:4] == ["@@ -1 +0,0 @@", "-a"]


@pytest.mark.parametrize("data", [b"a\0b", b"a\xff"], ids=["binary", "latin-1"])
def test_edit_refuses_what_is_no_text(data):
    """A file that is not UTF-8 would not come back as it was."""
    assert "not UTF-8 text" in refusal(edited, data, ("a", "b"))


# Lab 8.5: bash


def python(code):
    """A command that runs a piece of Python, on any system."""
    return f"{shlex.quote(sys.executable)} -IS -c {shlex.quote(code)}"


def tool_context(stop=None, report=None):
    from pi_course.abort import AbortController
    from pi_course.tool import ToolContext

    stop = stop or AbortController().signal
    return ToolContext("call_1", stop, report) if report else ToolContext("call_1", stop)


def bash_with(folder, environment=None, outputs=None, **caps):
    from pi_course.coding_tools.bash import bash_shell, bash_tool, child_environment
    from pi_course.coding_tools.output_tail import OutputFolder

    shell = bash_shell(folder, child_environment(environment))
    return bash_tool(shell, outputs or OutputFolder(), limits(**caps))


async def bash_in(folder, command, timeout=None, context=None, **options):
    tool = bash_with(folder, **options)
    arguments = tool.parameters(command=command, timeout=timeout)
    return await tool.execute(arguments, context or tool_context())


def bash(folder, command, timeout=None, context=None, **options):
    """The output of one command."""
    return run(bash_in(folder, command, timeout, context, **options))


def texts(output):
    """What the model reads: the output, then a note if there is one."""
    return [block.text for block in output.content]


def gone(pid, seconds=2):
    """Whether a process has ended. A killed one needs a moment when the machine is busy."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
            state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
        except ProcessLookupError:
            return True
        except OSError:  # no /proc on this system
            continue
        if state in (b"Z", b"X"):  # dead, and not yet cleared away
            return True
    return False


STUBBORN = "sh -c " + shlex.quote(
    "trap '' TERM; echo $$ > pid; echo ready; while :; do sleep 1; done"
)


def test_bash_runs_in_the_workspace(tmp_path):
    """Output, exit code 0, no note: one block of text."""
    (tmp_path / "notes.txt").write_bytes(b"hello durable\n")
    output = bash(tmp_path, "cat notes.txt && pwd")
    assert texts(output) == [f"hello durable\n{os.path.realpath(tmp_path)}\n"]
    assert output.is_error is False
    assert output.details == {
        "ending": "exit",
        "exitCode": 0,
        "outputBytes": len(texts(output)[0]),
        "outputFile": None,
    }


def test_bash_keeps_output_and_errors_in_order(tmp_path):
    """Both go through one pipe, so that a message stands where it was written."""
    code = "import os\nfor n in range(20): os.write(1 + n % 2, b'%d ' % n)"
    assert texts(bash(tmp_path, python(code))) == ["".join(f"{n} " for n in range(20))]


@pytest.mark.parametrize(
    ("command", "code"),
    [("echo no; exit 3", 3), ("echo no; kill -9 $$", 137), ("echo no; no-such-command-here", 127)],
    ids=["exit-3", "killed", "not-found"],
)
def test_bash_keeps_the_exit_code(tmp_path, command, code):
    """A code other than 0 is an error, with the output and a note that says the code."""
    output = bash(tmp_path, command)
    shown, note = texts(output)
    assert shown.startswith("no\n")
    assert note == f"Command exited with code {code}"
    assert (output.is_error, output.details["exitCode"]) == (True, code)


def test_bash_says_when_there_was_no_output(tmp_path):
    """An empty result would look like a mistake."""
    assert texts(bash(tmp_path, "true")) == ["(no output)"]
    assert texts(bash(tmp_path, "false")) == ["(no output)", "Command exited with code 1"]


def test_bash_gives_no_input(tmp_path):
    """A command that asks gets the end of the file at once, and nothing that came for us."""
    kept, (ours, into) = os.dup(0), os.pipe()
    os.write(into, b"for us\n")
    os.dup2(ours, 0)
    os.close(ours)
    os.close(into)
    try:
        output = bash(tmp_path, python("import sys; print(repr(sys.stdin.read()))"))
    finally:
        os.dup2(kept, 0)
        os.close(kept)
    assert texts(output) == ["''\n"]


def test_bash_runs_in_a_group_of_its_own(tmp_path):
    """The shell leads a new session, and with it a group: no terminal, no stray signals."""
    code = "import os; print(os.getppid(), os.getpgid(0), os.getsid(0))"
    parent, group, session = texts(bash(tmp_path, f"{python(code)}; :"))[0].split()
    assert parent == group == session
    assert int(group) != os.getpgid(0)


def test_bash_is_bash_where_there_is_one(tmp_path):
    """The shell is bash if the system has it; how commands are started does not change later."""
    from pi_course.coding_tools.bash import bash_shell

    shell = bash_shell(tmp_path, {}, ["in", "front"])
    assert shell.argv == ("in", "front", shutil.which("bash") or "/bin/sh", "-c", "--")
    with pytest.raises(FrozenInstanceError):
        shell.folder = "other"
    assert texts(bash(tmp_path, "echo one")) == ["one\n"]


def test_bash_starts_fresh_each_time(tmp_path):
    """cd and variables do not last from one call to the next."""
    (tmp_path / "sub").mkdir()
    tool = bash_with(tmp_path)

    async def main():
        for command in ("cd sub; A=1", 'pwd; echo "[$A]"'):
            output = await tool.execute(tool.parameters(command=command), tool_context())
        return texts(output)

    assert run(main()) == [f"{os.path.realpath(tmp_path)}\n[]\n"]


def test_bash_passes_a_few_variables_on():
    """PATH and the language go along; a key has a name that nobody can list, and stays."""
    from pi_course.coding_tools.bash import child_environment

    inherited = {"PATH": "/bin", "LANG": "C", "OPENAI_API_KEY": "sk-1", "MY_TOKEN": "t"}
    assert child_environment(None, inherited) == {"PATH": "/bin", "LANG": "C"}
    assert child_environment({"A": "1", "LANG": "de"}, inherited) == {
        "PATH": "/bin",
        "LANG": "de",
        "A": "1",
    }


def test_bash_shows_no_key_of_the_agent(tmp_path, monkeypatch):
    """A key in the agent's own environment is not in that of the command."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    shown = texts(bash(tmp_path, "env", environment={"A": "1"}))[0]
    has_key, has_own, has_path = (part in shown for part in ("sk-0123456789", "A=1\n", "PATH="))
    assert has_key is False
    assert (has_own, has_path) == (True, True)


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("echo 'a\nb'", "a\nb\n"),
        ("-x 2>/dev/null; echo dash", "dash\n"),
        (f"echo '先 {SMILE}'", f"先 {SMILE}\n"),
        ("echo one |\n cat", "one\n"),
    ],
    ids=["newline", "dash", "four-bytes", "two-lines"],
)
def test_bash_takes_commands_of_any_kind(tmp_path, command, shown):
    """What the model writes is one command text, and never an option of the shell."""
    assert texts(bash(tmp_path, command)) == [shown]


def test_bash_refuses_what_it_cannot_run(tmp_path):
    """A NUL, a command longer than the system takes, and a folder that has gone."""
    assert "NUL" in refusal(bash, tmp_path, "echo a\0b")
    assert refusal(bash, tmp_path, "x" * 4_000_000).startswith("the command: ")
    folder = tmp_path / "gone"
    assert "not there any more" in refusal(bash, folder, "true")


@pytest.mark.parametrize("timeout", [0, -1, 3601, 1e12], ids=["zero", "negative", "long", "huge"])
def test_bash_refuses_times_that_make_no_sense(tmp_path, timeout):
    """A time-out is above 0 and at most an hour. The command does not run."""
    # Pi, report 6181
    told = refusal(bash, tmp_path, "touch ran", timeout)
    assert told == f"timeout is {timeout:g}: give seconds above 0, at most 3600"
    assert os.listdir(tmp_path) == []
    assert texts(bash(tmp_path, "echo ran", 3600)) == ["ran\n"]


def test_bash_shows_the_end_of_a_long_output(tmp_path):
    """The last lines and a note within the cap; the whole is in the file that the note names."""
    # Pi, report 2852
    from pi_course.coding_tools.output_tail import OutputFolder

    outputs = OutputFolder()
    code = "for n in range(1, 101): print(n)"
    output = bash(tmp_path, python(code), outputs=outputs, lines=5)
    shown, note = texts(output)
    path = output.details["outputFile"]
    assert shown == "97\n98\n99\n100\n"
    assert note == f"[Lines 97-100 of 100. The whole output is in {path}]"
    assert Path(path).read_bytes() == b"".join(b"%d\n" % n for n in range(1, 101))


def tail(*pieces, status="", outputs=None, **caps):
    """What OutputTail shows of an output, its note, and the file."""
    from pi_course.coding_tools.output_tail import OutputFolder, OutputTail

    outputs = outputs or OutputFolder()
    output = OutputTail(limits(**caps), outputs)
    for piece in pieces:
        output.take(piece)
    shown, note = output.finish(status)
    data = output.path.read_bytes() if output.path else None
    return shown, note, data


@pytest.mark.parametrize(
    ("data", "status", "cut"),
    [
        (b"x" * 511 + b"\n", "", False),
        (b"x" * 512 + b"\n", "", True),
        (b"x" * 505, "status", False),
        (b"x" * 506, "status", True),
        (b"a\nb\nc\n", "", False),
        (b"a\nb\nc", "", False),
        (b"a\nb\nc\nd", "", True),
        (b"a\nb\n", "status", False),
        (b"a\nb\nc\n", "status", True),
        (b"\xff" * 170, "", False),
        (b"\xff" * 171, "", True),
        (b"", "status", False),
    ],
    ids=[
        "bytes",
        "bytes-over",
        "bytes-status",
        "bytes-status-over",
        "lines",
        "no-last-newline",
        "lines-over",
        "lines-status",
        "lines-status-over",
        "not-utf-8",
        "not-utf-8-over",
        "empty",
    ],
)
def test_bash_cap_counts_everything(data, status, cut):
    """Text, note and status together stay in the caps; what was cut is whole in the file."""
    shown, note, kept = tail(data, status=status, bytes=512, lines=3)
    assert kept == (data if cut else None)
    assert note.endswith(status)
    if not cut:
        assert (shown, note) == (data.decode("utf-8", "replace"), status)
    whole = f"{shown.removesuffix(chr(10))}\n{note}" if note else shown.removesuffix("\n")
    assert len(f"{shown}\n{note}".encode() if note else shown.encode()) <= 512
    assert whole.count("\n") + 1 <= 3


def test_bash_one_long_line_is_cut_between_characters():
    """Of a line longer than the cap its end is shown, from a whole character on."""
    for rest in range(4):
        data = SMILE.encode() * 1000 + b"x" * rest
        shown, note, kept = tail(data, bytes=512)
        assert shown.rstrip("x") + "x" * rest == shown
        assert set(shown.rstrip("x")) == {SMILE}
        assert note.startswith("[The end of line 1 of 1. The whole output is in ")
        assert kept == data


def test_bash_long_output_leaves_no_handle():
    """The file of an output that was cut is closed, by its lines as by its bytes."""
    # Pi, report 3786
    from pi_course.coding_tools.output_tail import OutputFolder, OutputTail

    outputs, kept, before = OutputFolder(), [], handles()
    for data in (b"x\n" * 10, b"x" * 600):
        kept.append(OutputTail(limits(lines=5, bytes=512), outputs))
        kept[-1].take(data)
        kept[-1].finish("")
        assert kept[-1].path.read_bytes() == data
    assert handles() - before == 0


def test_bash_lines_are_shown_whole_where_they_fit():
    """A line that the cut goes through is left out, and the note counts from the next one."""
    data = b"".join(b"%04d " % n + b"x" * 94 + b"\n" for n in range(1, 11))
    shown, note, _ = tail(data, bytes=512)
    first = int(shown[:4])
    assert shown.encode() == data[(first - 1) * 100 :]
    assert note.startswith(f"[Lines {first}-10 of 10. ")
    assert 2 <= 11 - first <= 4


def test_bash_long_output_takes_little_memory():
    """30 MB go by; what stays in memory is a small multiple of the cap."""
    from pi_course.coding_tools.output_tail import OutputFolder, OutputTail

    piece = b"x" * 99 + b"\n"
    output = OutputTail(limits(bytes=10_000), OutputFolder())
    tracemalloc.start()
    try:
        for _ in range(300):
            output.take(piece * 1000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    shown, note = output.finish("")
    assert peak < 1_500_000
    assert note.startswith("[Lines 299")
    assert output.path.stat().st_size == 30_000_000


def test_bash_progress_has_whole_characters():
    """A character that two pieces share is shown when its last byte has come."""
    from pi_course.coding_tools.output_tail import OutputFolder, OutputTail

    output = OutputTail(limits(), OutputFolder())
    data = SMILE.encode()
    assert [output.take(piece) for piece in (b"a" + data[:2], data[2:] + b"b")] == [
        "a",
        f"{SMILE}b",
    ]


def test_bash_reports_progress_up_to_the_cap(tmp_path):
    """What comes is reported at once, as far as the cap goes."""
    heard = []
    code = "import os\nfor n in range(9): os.write(1, b'x' * 500)"
    bash(tmp_path, python(code), context=tool_context(report=heard.append), bytes=2000)
    assert "".join(heard) == "x" * 2000


def aborting_at(text):
    """A context that is aborted when this text is reported."""
    from pi_course.abort import AbortController

    controller = AbortController()
    heard = []

    def report(piece):
        heard.append(piece)
        if text in "".join(heard):
            controller.abort("stop button")

    return tool_context(controller.signal, report)


class Disk(io.BytesIO):
    name = "whole.txt"

    def __init__(self, room, fails_at_close=False):
        super().__init__()
        self.room, self.fails_at_close = room, fails_at_close

    def write(self, data):
        if self.tell() + len(data) > self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(data)

    def close(self):
        super().close()
        if self.fails_at_close:
            self.fails_at_close = False
            raise OSError(errno.ENOSPC, "No space left on device")


class Disks:
    def __init__(self, file):
        self.file = file
        self.asked = 0

    def new_file(self):
        self.asked += 1
        if self.file is None:
            raise OSError(errno.ENOSPC, "No space left on device")
        return self.file


@pytest.mark.parametrize(
    "disk",
    [Disks(None), Disks(Disk(800)), Disks(Disk(10_000, fails_at_close=True))],
    ids=["no-file", "half-a-file", "at-close"],
)
def test_bash_full_disk_loses_the_file_and_not_the_end(disk):
    """The command goes on, its last lines are shown, and the note says what is missing."""
    from pi_course.coding_tools.output_tail import OutputTail

    output = OutputTail(limits(bytes=600), disk)
    for number in range(20):
        output.take(b"%0100d\n" % number)
    shown, note = output.finish("status")
    assert shown.endswith(f"{19:0100d}\n")
    assert note.endswith("kept: No space left on device]\nstatus")
    assert len(f"{shown}\n{note}".encode()) <= 600
    assert (output.path, disk.asked) == (None, 1)


def test_bash_time_out_is_told(tmp_path):
    """The output so far stays; the note says time-out, and it is an error."""
    output = bash(tmp_path, "echo before; sleep 60", 0.2)
    assert texts(output) == ["before\n", "Command timed out after 0.2 s and was ended"]
    assert (output.is_error, output.details["ending"]) == (True, "timeout")


def test_bash_has_a_time_out_of_its_own(tmp_path):
    """Without one in the call, that of the limits holds."""
    assert "after 0.1 s" in texts(bash(tmp_path, "sleep 60", seconds=0.1))[1]


def test_bash_asks_before_it_kills(tmp_path):
    """SIGTERM comes first, and a program that listens can still clean up and say so."""
    code = (
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: (os.write(1, b'bye\\n'), os._exit(0)))\n"
        "os.write(1, b'ready\\n')\n"
        "time.sleep(60)"
    )
    output = bash(tmp_path, f"exec {python(code)}", context=aborting_at("ready"), grace_seconds=3)
    assert texts(output) == ["ready\nbye\n", "Command aborted: stop button"]


@pytest.mark.parametrize(
    "command",
    [f"exec {STUBBORN}", f"{STUBBORN}; :", f": | {STUBBORN}"],
    ids=["shell", "child", "pipeline"],
)
def test_bash_ends_what_ignores_sigterm(tmp_path, command):
    """After the grace comes SIGKILL, for the whole group: also for a child of the shell."""
    context = aborting_at("ready")
    output = bash(tmp_path, command, context=context, grace_seconds=0.05)
    assert output.details["ending"] == "abort"
    assert gone(int((tmp_path / "pid").read_text(encoding="ascii"))) is True


def test_bash_ends_what_ignores_sigterm_at_the_time_out(tmp_path):
    """A time-out ends the group in the same way as an abort."""
    command = "trap '' TERM; echo $$ > pid; while :; do sleep 1; done"
    output = bash(tmp_path, command, 0.2, grace_seconds=0.05)
    assert (output.details["ending"], output.details["exitCode"]) == ("timeout", 137)
    assert gone(int((tmp_path / "pid").read_text(encoding="ascii"))) is True


def test_bash_abort_is_told(tmp_path):
    """An abort is no time-out: the note says so, with the reason, and the output stays."""
    from pi_course.abort import AbortController

    output = bash(tmp_path, "echo one; sleep 60", 60, context=aborting_at("one"))
    assert texts(output) == ["one\n", "Command aborted: stop button"]
    assert (output.is_error, output.details["ending"]) == (True, "abort")

    async def without_a_reason():
        controller = AbortController()
        asyncio.get_running_loop().call_later(0.05, controller.abort)
        return await bash_in(tmp_path, "sleep 60", context=tool_context(controller.signal))

    assert texts(run(without_a_reason())) == ["(no output)", "Command aborted"]


def test_bash_aborted_before_does_not_run(tmp_path):
    """An abort that came first: nothing is started."""
    from pi_course.abort import AbortController, Aborted

    controller = AbortController()
    controller.abort("too late")
    with pytest.raises(Aborted, match="too late"):
        bash(tmp_path, "touch ran", context=tool_context(controller.signal))
    assert os.listdir(tmp_path) == []


def test_bash_waits_a_little_for_late_output(tmp_path):
    """What a background child writes after the shell's end is still there, to its last piece."""
    # Pi, report 5753
    late = (
        "(while ! [ -e over ]; do sleep 0.01; done; echo 1; sleep 0.02; echo 2; sleep 0.02; echo 3)"
    )
    command = f"{late} & (sleep 0.02; : > over) >/dev/null 2>&1 & echo 0"
    output = bash(tmp_path, command, idle_seconds=2.0)
    assert texts(output) == ["0\n1\n2\n3\n"]


def test_bash_ends_a_flood(tmp_path):
    """A command that writes without end is ended before it fills the disk."""
    output = bash(tmp_path, "while :; do echo yes; done", output_bytes=100_000)
    note = texts(output)[1].split("\n")[-1]
    assert note == "Command wrote more than 100000 bytes and was ended"
    assert (output.is_error, output.details["ending"]) == (True, "output")


def handles():
    return len(os.listdir("/dev/fd"))


def group_of(folder, command, **options):
    from pi_course.coding_tools.process_group import ProcessGroup

    argv = ["/bin/sh", "-c", command]
    return ProcessGroup(argv, folder=folder, environment={}, output=2, **options)


class Unkillable(subprocess.Popen):
    """To those who wait for a while it is always still there, until it is let go."""

    made = None

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.let_go = threading.Event()
        Unkillable.made = self

    def wait(self, timeout=None):
        if timeout is not None:
            raise subprocess.TimeoutExpired(self.args, timeout)
        self.let_go.wait(2)
        return super().wait()

    def is_reaped_in_the_end(self):
        """Whether somebody else clears it away once that is possible."""
        self.let_go.set()
        for thread in threading.enumerate():
            if thread.name == "pi-course-bash":
                thread.join(2)
        with pytest.raises(ChildProcessError):
            os.waitpid(self.pid, os.WNOHANG)
        return True


def test_bash_group_can_be_asked_and_ended(tmp_path):
    """A signal to the group says whether somebody is there; end() waits until nobody is."""

    async def main():
        group = group_of(tmp_path, "exec /bin/sleep 60")
        there = group.send(0)
        code = await group.end()
        return there, code, group.send(0)

    assert run(main()) == (True, 137, False)


@pytest.mark.parametrize("handle", [True, False], ids=["handle", "thread"])
def test_bash_group_notices_the_exit_and_reaps_later(tmp_path, handle):
    """exited is done while the shell's number is still taken, with a handle or in a thread."""

    async def main():
        options = {} if handle else {"handle_of": lambda pid: None}
        before = handles()
        group = group_of(tmp_path, "echo $$ > pid; exit 3", **options)
        watchers = [one for one in threading.enumerate() if one.name == "pi-course-bash"]
        for watcher in watchers:  # one that has died will not tell
            await asyncio.to_thread(watcher.join, 2)
        await asyncio.wait_for(group.exited, 0.1 if watchers else 2)
        os.kill(int((tmp_path / "pid").read_text(encoding="ascii")), 0)
        lives = group.send(0)  # its number is taken, and it is dead
        return lives, await group.end(), handles() - before

    assert run(main()) == (False, 3, 0)


def test_bash_group_is_waited_for_until_nobody_lives(tmp_path):
    """A killed process may need a while. end() asks again, and for so long the shell is there."""
    asked = []

    def living_in(session):
        os.kill(session, 0)
        asked.append(session)
        return [session] if len(asked) < 4 else []

    async def main():
        group = group_of(tmp_path, "exec /bin/sleep 60", living_in=living_in)
        return await group.end(), len(asked)

    assert run(main()) == (137, 4)


def test_bash_group_ends_where_no_list_is_to_be_had(tmp_path):
    """Without /proc the group is all that can be reached, and what can be asked."""

    async def main():
        group = group_of(tmp_path, "exec /bin/sleep 60", living_in=lambda _: None)
        there = group.send(0)
        code = await group.end(0.02)
        return there, code, group.send(0)

    assert run(main()) == (True, 137, False)


def test_bash_group_signals_no_stranger(tmp_path):
    """A number can be somebody else's by now: the session is looked at right before the signal."""
    stranger = subprocess.Popen(["/bin/sleep", "60"], start_new_session=True)

    async def main():
        group = group_of(tmp_path, "exec /bin/sleep 60", living_in=lambda _: [stranger.pid])
        return await group.end(0.02)

    try:
        assert run(main()) == 137
        assert gone(stranger.pid, 0.02) is False
    finally:
        stranger.kill()
        stranger.wait()


def test_bash_group_is_not_waited_for_without_limit(tmp_path):
    """A shell that can't be killed: end() returns without a code, and a thread reaps it later."""
    asked = []

    def living_in(session):
        asked.append(session)
        return [session]

    async def main():
        options = {"living_in": living_in, "start": Unkillable}
        group = group_of(tmp_path, "exec /bin/sleep 60", **options)
        return await group.end(0.02), len(asked)

    assert run(main()) == (None, 4)
    assert Unkillable.made.is_reaped_in_the_end() is True


@pytest.mark.parametrize(
    ("ending", "told"),
    [
        ("timeout", "Command timed out after 0.1 s"),
        ("abort", "Command aborted: stop button"),
        ("output", "Command wrote more than 4 bytes"),
    ],
    ids=["time-out", "abort", "output"],
)
def test_bash_says_when_a_command_cannot_be_ended(tmp_path, ending, told):
    """Nobody waits for it without limit, and the result does not say that it was ended."""
    from dataclasses import replace

    from pi_course.coding_tools.bash import bash_shell, bash_tool, child_environment
    from pi_course.coding_tools.output_tail import OutputFolder

    shell = replace(bash_shell(tmp_path, child_environment(None)), start=Unkillable)
    tool = bash_tool(shell, OutputFolder(), limits(output_bytes=4 if ending == "output" else 9))
    command = {"timeout": "", "abort": "echo ready;", "output": "echo ready;"}[ending]
    arguments = tool.parameters(
        command=f"{command} exec sleep 60", timeout=0.1 if ending == "timeout" else 60
    )
    context = aborting_at("ready") if ending == "abort" else tool_context()
    output = run(tool.execute(arguments, context))
    assert texts(output)[1] == f"{told}. It can't be ended, and may still be running"
    assert (output.is_error, output.details["exitCode"]) == (True, None)
    assert Unkillable.made.is_reaped_in_the_end() is True


def test_bash_pipe_is_emptied_when_it_is_closed():
    """What lies in the pipe at the end is taken, and nobody waits for more."""
    from pi_course.coding_tools.output_pipe import OutputPipe

    async def main():
        taken, before = [], handles()
        pipe = OutputPipe(taken.append)
        os.write(pipe.into, b"last")
        pipe.close()
        empty = OutputPipe(taken.append)
        empty.close()
        return taken, handles() - before

    assert run(main()) == ([b"last"], 0)


def test_bash_leaves_nothing_behind(tmp_path):
    """200 calls, eight at a time: no zombie, no open handle, no thread, no task."""
    from dataclasses import replace

    from pi_course.coding_tools.bash import bash_shell, bash_tool, child_environment
    from pi_course.coding_tools.output_tail import OutputFolder

    shell = replace(bash_shell(tmp_path, child_environment(None)), argv=("/bin/sh", "-c", "--"))
    tool = bash_tool(shell, OutputFolder(), limits())

    async def some(count):
        pids = []
        for _ in range(count):
            output = await tool.execute(tool.parameters(command="echo $$"), tool_context())
            pids.append(int(texts(output)[0]))
        return pids

    async def main():
        await some(1)
        before = handles()
        found = await asyncio.gather(*(some(25) for _ in range(8)))
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        return before, handles(), [pid for pids in found for pid in pids], tasks

    async def limited():
        return await main()

    before, after, pids, tasks = run(limited(), seconds=20)
    assert len(set(pids)) == 200
    for pid in pids:
        with pytest.raises(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
    assert (after, len(tasks) <= 1) == (before, True)
    for thread in threading.enumerate():
        if thread.name == "pi-course-bash":
            thread.join(1)
    assert "pi-course-bash" not in [thread.name for thread in threading.enumerate()]


def test_bash_cancelled_task_takes_the_command_along(tmp_path):
    """When the task is cancelled, the group is killed, and the cancellation goes on."""
    ready = asyncio.Event()

    async def main():
        before = handles()
        context = tool_context(report=lambda piece: ready.set())
        task = asyncio.create_task(bash_in(tmp_path, STUBBORN, context=context))
        begun = asyncio.create_task(ready.wait())
        await asyncio.wait([task, begun], return_when=asyncio.FIRST_COMPLETED)
        begun.cancel()
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled(), handles() - before

    assert run(main()) == (True, 0)
    assert gone(int((tmp_path / "pid").read_text(encoding="ascii"))) is True


def test_bash_leaves_no_handle_when_it_cannot_start(tmp_path):
    """A command that the system refuses leaves no end of a pipe open."""
    from pi_course.coding_tools.refusal import ToolRefused

    async def main():
        before = handles()
        for _ in range(5):
            with pytest.raises(ToolRefused):
                await bash_in(tmp_path, "x" * 4_000_000)
        return handles() - before

    assert run(main()) == 0


# Lab 8.6: the tools together


def tools(folder, **options):
    from pi_course.coding_tools import create_coding_tools

    return create_coding_tools(folder, **options)


def make_call(name, arguments, call_id="call_1"):
    from pi_course.messages import ToolCall

    return ToolCall(id=call_id, name=name, arguments=arguments)


async def result_of(registry, name, arguments, context=None):
    from pi_course.tool import execute_tool_call

    return await execute_tool_call(make_call(name, arguments), registry, context or tool_context())


def use(registry, name, **arguments):
    """The result of one call."""
    return run(result_of(registry, name, arguments))


def said(result):
    return "\n".join(block.text for block in result.content)


def change(old, new):
    return {"oldText": old, "newText": new}


def test_tools_are_four():
    """read, write, edit and bash, with the names of the arguments as the model sends them."""
    definitions = tools(".").definitions()
    assert [one.name for one in definitions] == ["read", "write", "edit", "bash"]
    parameters = [
        (list(d.parameters["properties"]), list(d.parameters["required"])) for d in definitions
    ]
    assert parameters == [
        (["path", "offset", "limit"], ["path"]),
        (["path", "content"], ["path", "content"]),
        (["path", "edits"], ["path", "edits"]),
        (["command", "timeout"], ["command"]),
    ]
    assert [one.sequential for one in tools(".").list()] == [False, False, False, True]
    models = [one.parameters for one in tools(".").list()] + [type(replacements([("a", "b")])[0])]
    assert [model.model_config.get("frozen") for model in models] == [True] * 5


def test_tools_say_what_they_did(tmp_path):
    """The sentences of success, and the details beside them."""
    registry = tools(tmp_path)
    wrote = use(registry, "write", path="sub/notes.txt", content="hello world\n")
    read = use(registry, "read", path="sub/notes.txt")
    changed = use(registry, "edit", path="sub/notes.txt", edits=[change("world", "durable")])
    ran = use(registry, "bash", command="cat sub/notes.txt")
    assert [said(one) for one in (wrote, read, changed, ran)] == [
        "Successfully wrote 12 bytes to sub/notes.txt.",
        "hello world\n",
        "Successfully replaced 1 block(s) in sub/notes.txt.",
        "hello durable\n",
    ]
    assert [one.is_error for one in (wrote, read, changed, ran)] == [False] * 4
    assert wrote.details == {"bytes": 12, "created": True}
    assert read.details == {"firstLine": 1, "lastLine": 1, "nextOffset": None}
    assert changed.details["diff"].endswith("-hello world\n+hello durable\n")


def test_tools_read_puts_the_note_into_a_block_of_its_own(tmp_path):
    """The first block is the text that edit must match, and nothing else."""
    (tmp_path / "notes.txt").write_bytes(b"a\nb\nc\n")
    result = use(tools(tmp_path), "read", path="notes.txt", offset=2, limit=1)
    note = "[Lines 2-2. The file goes on: read it with offset=3]"
    assert [block.text for block in result.content] == ["b\n", note]
    assert result.details == {"firstLine": 2, "lastLine": 2, "nextOffset": 3}


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("read", {"path": "notes.txt", "offset": 0}),
        ("read", {"path": "notes.txt", "limit": 0}),
        ("read", {"path": "notes.txt", "offset": 1.5}),
        ("write", {"path": "notes.txt"}),
        ("edit", {"path": "notes.txt", "edits": [{"oldText": "world"}]}),
        ("bash", {"command": ["ls"]}),
        ("bash", {"command": "touch ran", "timeout": "1"}),
    ],
    ids=[
        "offset-0",
        "limit-0",
        "offset-half",
        "no-content",
        "no-new-text",
        "list",
        "text-for-time",
    ],
)
def test_tools_check_arguments_first(tmp_path, name, arguments):
    """Arguments that do not fit are refused before anything happens."""
    (tmp_path / "notes.txt").write_bytes(b"hello world\n")
    assert use(tools(tmp_path), name, **arguments).is_error is True
    assert os.listdir(tmp_path) == ["notes.txt"]
    assert (tmp_path / "notes.txt").read_bytes() == b"hello world\n"


def test_tools_take_null_for_what_may_be_left_out(tmp_path):
    """Models send null for an argument that they do not need."""
    (tmp_path / "notes.txt").write_bytes(b"a\n")
    registry = tools(tmp_path)
    assert said(use(registry, "read", path="notes.txt", offset=None, limit=None)) == "a\n"
    assert said(use(registry, "bash", command="echo b", timeout=None)) == "b\n"


def test_tools_drop_fields_that_a_model_adds(tmp_path):
    """A field too many, beside or inside the edits, is no reason to refuse them."""
    # Pi, report 6278
    (tmp_path / "notes.txt").write_bytes(b"a")
    edits = [{**change("a", "b"), "reason": "because"}]
    result = use(tools(tmp_path), "edit", path="notes.txt", edits=edits, dryRun=True)
    assert said(result) == "Successfully replaced 1 block(s) in notes.txt."


def test_tools_write_the_text_as_it_came(tmp_path):
    """No line end is added, and none becomes another."""
    content = "a\r\nb\n\rc\t \u00e9"
    use(tools(tmp_path), "write", path="notes.txt", content=content)
    assert (tmp_path / "notes.txt").read_bytes() == content.encode("utf-8")


def tree(folder):
    """Every file below a folder with its bytes and its time."""
    return {
        path.relative_to(folder).as_posix(): (
            path.lstat().st_mtime_ns,
            path.is_file() and path.read_bytes(),
        )
        for path in folder.rglob("*")
    }


@pytest.mark.parametrize(
    "path",
    [
        "../Projekt-alt/secret.txt",
        "../Projekt-alt/new/file.txt",
        "{outside}/secret.txt",
        "~/new.txt",
        "link/secret.txt",
        "dangling",
    ],
    ids=["parent", "new", "absolute", "home", "link", "dangling"],
)
def test_tools_touch_nothing_outside(tmp_path, monkeypatch, path):
    """read, write and edit of a path that leads out: an error, and nothing there has changed."""
    _, root, outside = workspace(tmp_path)
    (root / "link").symlink_to(outside)
    (root / "dangling").symlink_to(outside / "made.txt")
    monkeypatch.setenv("HOME", str(outside))
    path = path.format(outside=outside)
    before, registry = tree(outside), tools(root)
    results = [
        use(registry, "read", path=path),
        use(registry, "write", path=path, content="x"),
        use(registry, "edit", path=path, edits=[change("secret", "x")]),
    ]
    assert [one.is_error for one in results] == [True] * 3
    assert [f"{path}: it leads out of the workspace" in said(one) for one in results] == [True] * 3
    assert tree(outside) == before


def test_tools_unrestricted_go_anywhere(tmp_path):
    """Without containment, as in real Pi, a path may lead out."""
    _, root, outside = workspace(tmp_path)
    registry = tools(root, containment="unrestricted")
    result = use(
        registry, "edit", path="../Projekt-alt/secret.txt", edits=[change("secret", "open")]
    )
    assert (result.is_error, (outside / "secret.txt").read_bytes()) == (False, b"open")


@pytest.mark.parametrize("instead", ["nothing", "link"])
def test_tools_do_nothing_when_the_workspace_has_gone(tmp_path, instead):
    """It is not made again, and what a link in its place leads to is left alone."""
    _, root, outside = workspace(tmp_path)
    registry = tools(root)
    shutil.rmtree(root)
    if instead == "link":
        root.symlink_to(outside)
    before = tree(tmp_path)
    results = [
        use(registry, "read", path="secret.txt"),
        use(registry, "write", path="new/file.txt", content="x"),
        use(registry, "edit", path="secret.txt", edits=[change("secret", "x")]),
        use(registry, "bash", command="touch ran"),
    ]
    assert ["folder is not there any more" in said(one) for one in results] == [True] * 4
    assert tree(tmp_path) == before


def test_tools_name_the_file_that_only_looks_the_same(tmp_path):
    """read and edit take the one that looks the same, and say so. write makes a new file."""
    registry = tools(tmp_path)
    (tmp_path / "Bob\u2019s.txt").write_bytes(b"a\nb\nc\n")
    read = use(registry, "read", path="Bob's.txt", limit=2)
    changed = use(registry, "edit", path="Bob's.txt", edits=[change("a", "x")])
    wrote = use(registry, "write", path="Bob's.txt", content="new")
    assert said(read).split("\n") == [
        "a",
        "b",
        "",
        "[Lines 1-2. The file goes on: read it with offset=3]",
        "[No file has the name that was given. This one is called 'Bob\u2019s.txt']",
    ]
    assert said(changed) == "Successfully replaced 1 block(s) in Bob\u2019s.txt."
    assert said(wrote) == "Successfully wrote 3 bytes to Bob's.txt."
    assert (tmp_path / "Bob\u2019s.txt").read_bytes() == b"x\nb\nc\n"
    assert (tmp_path / "Bob's.txt").read_bytes() == b"new"


def test_tools_count_the_name_of_the_file_as_well(tmp_path):
    """A note about the name takes its part of the limit, as the other one does."""
    registry = tools(tmp_path, limits=limits(bytes=512))
    (tmp_path / "a\u00a0b").write_bytes(b"123456789\n" * 200)
    shown = said(use(registry, "read", path="a b"))
    assert shown.endswith("called 'a\\xa0b']")
    assert 490 < len(shown.encode()) <= 512
    (tmp_path / "exact").write_bytes(b"x" * 511 + b"\n")
    assert said(use(registry, "read", path="exact")) == "x" * 511 + "\n"


def test_tools_follow_a_link_inside(tmp_path):
    """Writing through a link changes the file that it leads to; the link stays a link."""
    (tmp_path / "real.txt").write_bytes(b"old")
    (tmp_path / "link.txt").symlink_to("real.txt")
    registry = tools(tmp_path)
    use(registry, "write", path="link.txt", content="new")
    use(registry, "edit", path="link.txt", edits=[change("new", "newer")])
    assert ((tmp_path / "real.txt").read_bytes(), (tmp_path / "link.txt").is_symlink()) == (
        b"newer",
        True,
    )


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("none.txt", "none.txt: there is no such file"),
        ("sub", "sub: it is a folder"),
        ("notes.txt/x", "notes.txt/x: a part of the path is a file"),
        ("circle", "circle: its links lead in a circle"),
        ("pipe", "pipe: it is a link, a pipe"),
        ("n" * 300, "the name is too long"),
    ],
    ids=["missing", "folder", "file-as-folder", "circle", "pipe", "long-name"],
)
def test_tools_say_why_the_system_refuses(tmp_path, path, told):
    """Each failure has its own words, the path as it was given, and nothing of this machine."""
    _, root, _ = workspace(tmp_path)
    (root / "circle").symlink_to("circle")
    os.mkfifo(root / "pipe")
    registry = tools(root)
    results = [
        use(registry, "read", path=path),
        use(registry, "edit", path=path, edits=[change("a", "b")]),
    ]
    if path not in ("none.txt", "circle"):  # the one could be written, the other is a link
        results.append(use(registry, "write", path=path, content="x"))
    for result in results:
        assert told in said(result)
        assert str(tmp_path) not in said(result)


def test_tools_edit_leaves_a_file_that_it_refuses(tmp_path):
    """One edit of two is impossible: the bytes are the same, and so is the file."""
    path = tmp_path / "notes.txt"
    path.write_bytes(b"same same\r\nother\n")
    before = tree(tmp_path)
    edits = [change("other", "X"), change("same", "X")]
    result = use(tools(tmp_path), "edit", path="notes.txt", edits=edits)
    assert "edits[1].oldText was found 2 times" in said(result)
    assert (result.is_error, tree(tmp_path)) == (True, before)


@pytest.mark.parametrize(("size", "refused"), [(1000, False), (1001, True)], ids=["fits", "larger"])
def test_tools_edit_takes_files_up_to_a_size(tmp_path, size, refused):
    """edit holds the whole file in memory, so there is a limit, and the sentence names it."""
    (tmp_path / "notes.txt").write_bytes(b"a" + b"\n" * (size - 1))
    registry = tools(tmp_path, limits=limits(file_bytes=1000))
    result = use(registry, "edit", path="notes.txt", edits=[change("a", "b")])
    assert result.is_error is refused
    assert ("larger than the 1000 bytes" in said(result)) is refused


def together(registry, *calls, context=None):
    """Carry out calls at the same time."""

    async def main():
        return await asyncio.gather(*(result_of(registry, *call, context) for call in calls))

    return run(main())


def test_tools_edit_one_file_at_the_same_time(tmp_path):
    """Twelve edits through three names of one file: each of them lands."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "notes.txt").write_bytes(b"".join(b"<%d>\n" % n for n in range(12)))
    (tmp_path / "link.txt").symlink_to("notes.txt")
    names = ["notes.txt", "link.txt", "sub/../notes.txt"]
    calls = [
        ("edit", {"path": names[n % 3], "edits": [change(f"<{n}>", f"[{n}]")]}) for n in range(12)
    ]
    results = together(tools(tmp_path), *calls)
    assert [one.is_error for one in results] == [False] * 12
    found = (tmp_path / "notes.txt").read_bytes()
    all_landed = found == b"".join(b"[%d]\n" % n for n in range(12))
    assert all_landed is True


def test_tools_check_when_it_is_their_turn(tmp_path):
    """An edit that waits for a write sees what that wrote: the check is made inside the queue."""
    # Pi, report 2327
    # Pi, report 6989
    calls = [
        ("write", {"path": "new.txt", "content": "one"}),
        ("edit", {"path": "new.txt", "edits": [change("one", "two")]}),
        ("write", {"path": "./new.txt", "content": "three"}),
        ("edit", {"path": "new.txt", "edits": [change("three", "four")]}),
    ]
    results = together(tools(tmp_path), *calls)
    assert [one.is_error for one in results] == [False] * 4
    assert (tmp_path / "new.txt").read_bytes() == b"four"


@pytest.mark.parametrize("name", ["write", "edit"])
def test_tools_aborted_while_they_wait_change_nothing(tmp_path, name):
    """The signal is looked at when it is their turn, and not only when the call came."""
    from pi_course.abort import AbortController
    from pi_course.coding_tools.edit import edit_tool
    from pi_course.coding_tools.limits import DEFAULT_LIMITS
    from pi_course.coding_tools.mutation_queue import MutationQueue
    from pi_course.coding_tools.paths import Workspace
    from pi_course.coding_tools.write import write_tool
    from pi_course.tool import ToolRegistry

    (tmp_path / "notes.txt").write_bytes(b"a")
    controller, workspace, queue = AbortController(), Workspace(tmp_path), MutationQueue()
    registry = ToolRegistry(
        [write_tool(workspace, queue), edit_tool(workspace, queue, DEFAULT_LIMITS)]
    )
    asked = {"write": {"content": "b"}, "edit": {"edits": [change("a", "b")]}}[name]
    context = tool_context(controller.signal)

    async def main():
        async with queue.turn(tmp_path / "notes.txt"):
            arguments = {"path": "notes.txt", **asked}
            waiting = asyncio.create_task(result_of(registry, name, arguments, context))
            await asyncio.sleep(0)  # now it waits for its turn
            controller.abort("stop button")
        return await waiting

    assert "aborted: stop button" in said(run(main()))
    assert (tmp_path / "notes.txt").read_bytes() == b"a"


def test_tools_aborted_before_do_nothing(tmp_path):
    """With an aborted signal no tool reads, writes or runs anything."""
    from pi_course.abort import AbortController

    controller = AbortController()
    controller.abort("stop button")
    (tmp_path / "notes.txt").write_bytes(b"a")
    calls = [
        ("read", {"path": "notes.txt"}),
        ("write", {"path": "notes.txt", "content": "b"}),
        ("edit", {"path": "notes.txt", "edits": [change("a", "b")]}),
        ("bash", {"command": "echo b > notes.txt"}),
    ]
    results = together(tools(tmp_path), *calls, context=tool_context(controller.signal))
    assert ["aborted: stop button" in said(one) for one in results] == [True] * 4
    assert (tmp_path / "notes.txt").read_bytes() == b"a"


def test_tools_read_the_whole_output_of_a_command(tmp_path):
    """The file that the note names lies outside, and read may open it; it goes with the tools."""
    registry = tools(tmp_path, limits=limits(lines=5))
    result = use(registry, "bash", command="for n in 0 1 2 3 4 5 6 7 8; do echo $n; done")
    path = Path(result.details["outputFile"])
    assert said(use(registry, "read", path=str(path), limit=2)).startswith("0\n1\n")
    assert use(registry, "write", path=str(path), content="x").is_error is True
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    del registry
    gc.collect()
    assert path.parent.exists() is False


def test_tools_belong_to_no_loop(tmp_path):
    """One registry, made outside of any loop, works in one loop after another and in a thread."""
    registry = tools(tmp_path)
    use(registry, "write", path="notes.txt", content="0")
    use(registry, "edit", path="notes.txt", edits=[change("0", "1")])
    other = threading.Thread(
        target=use,
        args=[registry, "edit"],
        kwargs={"path": "notes.txt", "edits": [change("1", "2")]},
    )
    other.start()
    other.join(4)
    assert said(use(registry, "bash", command="cat notes.txt")) == "2"


@pytest.mark.parametrize(
    ("folder", "options", "told"),
    [
        ("none", {}, "there is no folder"),
        (".", {"containment": "Sandbox"}, "containment is 'Sandbox'"),
    ],
    ids=["no-folder", "misspelled"],
)
def test_tools_refuse_what_they_cannot_work_with(tmp_path, folder, options, told):
    """A folder that is not there, and a containment that does not exist: never something less."""
    assert told in refusal(tools, tmp_path / folder, **options)


def test_tools_without_a_sandbox_do_not_pretend(tmp_path):
    """No bubblewrap, or one that does not work here: an error that says so, and nothing less."""
    from pi_course.coding_tools import create_coding_tools
    from pi_course.coding_tools.sandbox import SandboxUnavailable, sandboxed

    assert len(create_coding_tools(tmp_path).list()) == 4  # who asks for no sandbox needs none

    with pytest.raises(SandboxUnavailable, match="no bwrap on PATH"):
        sandboxed(tmp_path, which=lambda name: None)
    broken = tmp_path / "bwrap"
    broken.write_bytes(b"#!/bin/sh\necho no namespaces >&2\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(SandboxUnavailable, match="does not work here: no namespaces"):
        sandboxed(tmp_path, which=lambda name: str(broken))


def test_tools_in_a_sandbox(tmp_path):
    """Where bubblewrap works: the workspace can be written, all else not, and no network."""
    from pi_course.coding_tools.sandbox import SandboxUnavailable

    root, outside = tmp_path / "in", tmp_path / "out"
    root.mkdir()
    outside.mkdir()
    probe = [shutil.which("bwrap") or "no-bwrap", "--ro-bind", "/", "/", "--unshare-all", "true"]
    try:
        works = subprocess.run(probe, capture_output=True, check=False).returncode == 0
    except OSError:
        works = False
    if not works:
        with pytest.raises(SandboxUnavailable):
            tools(root, containment="sandbox")
        return
    registry = tools(root, containment="sandbox")
    # The shell alone: a Python below /tmp can't be seen in there.
    command = (
        ": > inside.txt\n"
        f"(: > {shlex.quote(str(outside / 'made.txt'))}) 2>/dev/null || echo outside is closed\n"
        "while read -r name rest; do\n"
        '    case $name in *:*) echo "network ${name%%:*}" ;; esac\n'
        "done < /proc/net/dev\n"
    )
    result = use(registry, "bash", command=command)
    assert said(result) == "outside is closed\nnetwork lo\n"
    assert (os.listdir(root), os.listdir(outside)) == (["inside.txt"], [])
    assert use(registry, "write", path="../out/x", content="x").is_error is True


def answering(*turns):
    """A scripted model: each turn is a text, or calls as (name, arguments)."""
    from pi_course.messages import assistant_message, text
    from pi_course.scripted_model import ScriptedModel

    replies = []
    for number, turn in enumerate(turns, start=1):
        if isinstance(turn, str):
            replies.append(assistant_message([text(turn)]))
        else:
            calls = [make_call(*one, call_id=f"call_{number}") for one in turn]
            replies.append(assistant_message(calls, "toolUse"))
    return ScriptedModel(replies)


def test_tools_in_the_loop_change_the_file(tmp_path):
    """read, edit, bash and a last word: four turns, three results, eight messages in order."""
    from pi_course.agent_loop import run_agent_loop
    from pi_course.messages import AgentContext, unpaired_calls, user_message

    (tmp_path / "notes.txt").write_bytes(b"hello world\n")
    model = answering(
        [("read", {"path": "notes.txt"})],
        [("edit", {"path": "notes.txt", "edits": [change("world", "durable")]})],
        [("bash", {"command": "cat notes.txt"})],
        "The file says hello durable.",
    )
    asked = AgentContext([user_message("Put durable in the place of world in notes.txt.")])
    result = run(run_agent_loop(model=model, tools=tools(tmp_path), context=asked))
    assert (tmp_path / "notes.txt").read_bytes() == b"hello durable\n"
    assert (result.reason, result.steps) == ("stop", 4)
    assert [message.role for message in result.messages] == [
        "user",
        *["assistant", "toolResult"] * 3,
        "assistant",
    ]
    assert unpaired_calls(result.messages) == []
    assert [said(m) for m in result.messages if m.role == "toolResult"] == [
        "hello world\n",
        "Successfully replaced 1 block(s) in notes.txt.",
        "hello durable\n",
    ]


def test_tools_in_the_loop_show_a_refusal_to_the_model(tmp_path):
    """A refused edit is a result like any other, and the next turn can do better."""
    from pi_course.agent_loop import run_agent_loop
    from pi_course.messages import AgentContext, user_message

    (tmp_path / "notes.txt").write_bytes(b"same same\n")
    model = answering(
        [("edit", {"path": "notes.txt", "edits": [change("same", "X")]})],
        [("edit", {"path": "notes.txt", "edits": [change("same\n", "X\n")]})],
        "done",
    )
    asked = AgentContext([user_message("Replace the last word by X.")])
    result = run(run_agent_loop(model=model, tools=tools(tmp_path), context=asked))
    results = [m for m in result.messages if m.role == "toolResult"]
    assert [one.is_error for one in results] == [True, False]
    assert "edits[0].oldText was found 2 times" in said(model.requests[1].messages[-1])
    assert (tmp_path / "notes.txt").read_bytes() == b"same X\n"


def test_tools_in_the_loop_keep_what_a_command_wrote_before_the_abort(tmp_path):
    """An abort in a running command ends the run, and the result says what had come."""
    from pi_course.abort import AbortController
    from pi_course.agent_loop import ToolProgress, run_agent_loop
    from pi_course.messages import AgentContext, user_message

    controller = AbortController()

    def listen(event):
        if isinstance(event, ToolProgress):
            controller.abort("stop button")

    model = answering([("bash", {"command": STUBBORN})], "never asked")
    asked = AgentContext([user_message("Run it.")])
    result = run(
        run_agent_loop(
            model=model,
            tools=tools(tmp_path, limits=limits(grace_seconds=0.05)),
            context=asked,
            signal=controller.signal,
            on_event=listen,
        )
    )
    assert (result.reason, len(model.requests)) == ("aborted", 1)
    assert said(result.messages[-1]) == "ready\n\nCommand aborted: stop button"
    assert gone(int((tmp_path / "pid").read_text(encoding="ascii"))) is True


# Lab 8.5 again: those who are left. Last, since a tool that waits for them takes long to fail.


def test_bash_returns_while_children_are_in_the_background(tmp_path):
    """The shell has exited with 0. The call returns soon, and those it has left are gone as well.

    One of them sleeps and holds the pipe, one goes on writing into it, one has closed it.
    """
    # Pi, report 7636
    command = (
        "echo started\n"
        "sleep 60 & echo $! > one\n"
        "while :; do echo more; sleep 0.01; done & echo $! > two\n"
        "sleep 60 >/dev/null 2>&1 & echo $! > three\n"
    )
    coro = bash_in(tmp_path, command, drain_seconds=0.2)
    output = run(coro, "bash waits for a child that it has left in the background", seconds=1.2)
    assert texts(output)[0].startswith("started\n")
    assert output.is_error is False
    for name in ("one", "two", "three"):
        assert gone(int((tmp_path / name).read_text(encoding="ascii"))) is True


# A job of a shell that controls jobs has a group of its own, and so has what `timeout` runs. It
# stays in the session, where a system with /proc shows it. This one answers when asked to end.
JOB = (
    "set -m\n"
    "sh -c 'trap \"echo bye; exit\" TERM; echo $$ > pid; sleep 60 & wait' &\n"
    "while ! [ -s pid ]; do sleep 0.01; done\n"
    "echo ready\n"
)
SHOWS_SESSIONS = os.path.exists("/proc/self/stat")


@pytest.mark.parametrize(
    ("ending", "more", "shown"),
    [("abort", "wait", "ready\nbye\n"), ("exit", "", "ready\n")],
    ids=["abort", "background"],
)
def test_bash_ends_who_has_a_group_of_his_own(tmp_path, ending, more, shown):
    """A job of the shell leaves its group and not its session: it is asked, and ended, as well."""
    context = aborting_at("ready") if ending == "abort" else None
    output = bash(tmp_path, JOB + more, context=context, idle_seconds=0.01)
    assert output.details["ending"] == ending
    pid = int((tmp_path / "pid").read_text(encoding="ascii"))
    if SHOWS_SESSIONS:
        assert texts(output)[0] == shown
        assert gone(pid) is True
    else:
        os.killpg(pid, signal.SIGKILL)


def test_bash_does_not_wait_for_who_has_left_the_session(tmp_path):
    """A daemon with a session of its own is out of reach, and can't hold the call up."""
    code = (
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    print('daemon', flush=True)\n"
        "    with open('new', 'w') as file: file.write(str(os.getpid()))\n"
        "    os.rename('new', 'pid')\n"
        "    time.sleep(20)\n"
        "else:\n"
        "    while not os.path.exists('pid'): time.sleep(0.005)\n"
    )
    try:
        coro = bash_in(tmp_path, python(code), idle_seconds=0.01)
        output = run(coro, "bash waits for a daemon that has left its session", seconds=1.2)
        assert texts(output) == ["daemon\n"]
    finally:
        os.kill(int((tmp_path / "pid").read_text(encoding="ascii")), signal.SIGKILL)
