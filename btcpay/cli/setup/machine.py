"""The machine's side of `blocktill setup`: users, folders, and the file of settings."""

import os
import pwd
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from btcpay.values.errors import CommandError

PROGRAM = Path(sys.executable).with_name("blocktill")
STATE = Path("/var/lib/blocktill")  # systemd makes it too (StateDirectory=)
OWNER_READS_WRITES = stat.S_IRUSR | stat.S_IWUSR
BEYOND_GROUP_READING = stat.S_IWGRP | stat.S_IXGRP | stat.S_IRWXO


def has_blocks(stream: TextIO) -> bool:
    """True for a terminal that can show the characters of which a QR code is made."""
    try:
        "\u2580\u2584\u2588".encode(stream.encoding)
    except UnicodeEncodeError:
        return False
    return stream.isatty()


def this_user() -> pwd.struct_passwd:
    """Raises CommandError if the user's number has no name, as some containers start it."""
    try:
        return pwd.getpwuid(os.geteuid())
    except KeyError:
        raise CommandError(
            f"this system has no name for the user {os.geteuid()}"
        ) from None


def make_user(name: str) -> pwd.struct_passwd:
    """The user of that name. If there is none, root makes one without a login.

    Raises CommandError.
    """
    with suppress(KeyError):
        return pwd.getpwnam(name)
    command = ["useradd", "--system", "--home-dir", str(STATE)]
    command += ["--shell", "/usr/sbin/nologin", name]
    try:
        subprocess.run(
            command, capture_output=True, encoding="utf-8", errors="replace", check=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        reason = getattr(error, "stderr", "").strip() or error
        raise CommandError(
            f"cannot create user {name}: {reason}; create it or use --user"
        ) from None
    return pwd.getpwnam(name)


def as_user(user: pwd.struct_passwd, work: Callable[[], int | None]) -> None:
    """Does the work as this user. Ends the program with its status unless that is 0 or None.

    Root leaves the work to a child process that becomes the user for good: its files are the
    user's, and whatever the user planted in a database has the user's rights alone. Only a status
    comes back. Raises CommandError if the user may not run this program.
    """
    status = _status_of(user, work)
    if status:
        sys.exit(status)


def _status_of(user: pwd.struct_passwd, work: Callable[[], int | None]) -> int | None:
    if user.pw_uid == os.geteuid():
        return work()
    child = os.fork()
    if child == 0:
        _become(user)
        # The child shows an error and ends, as a program without a child would.
        sys.exit(work())
    _, wait_status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(wait_status)


def _become(user: pwd.struct_passwd) -> None:
    os.setgroups([])
    os.setresgid(user.pw_gid, user.pw_gid, user.pw_gid)
    os.setresuid(user.pw_uid, user.pw_uid, user.pw_uid)
    # PostgreSQL's library looks for certificates in it.
    os.environ["HOME"] = user.pw_dir
    if not all(os.access(file, os.X_OK) for file in (PROGRAM, sys.executable)):
        raise CommandError(
            f"{user.pw_name} may not run {PROGRAM}: install it outside of a home, as in"
            " /opt/blocktill (docs/operators/install.md)"
        )


def make_folder(folder: Path, user: pwd.struct_passwd) -> None:
    """Makes the folder, if it is missing, as the user's own.

    The user may own its parent, and put a link in its place: the link's target is left alone.
    """
    if folder.is_dir():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(stat.S_IRWXU)
    if user.pw_uid != os.geteuid():
        os.chown(folder, user.pw_uid, user.pw_gid, follow_symlinks=False)


def is_closed(file: Path) -> bool:
    """True for a file that only its owner and the service's group may read."""
    return file.exists() and not file.stat().st_mode & BEYOND_GROUP_READING


def text_of(file: Path, if_missing: str) -> str:
    """The text of the file of settings. Raises CommandError."""
    try:
        with open(file, encoding="utf-8", opener=_open_settings) as stream:
            return stream.read()
    except FileNotFoundError:
        return if_missing
    except UnicodeDecodeError:
        raise CommandError(f"{file} is not in UTF-8") from None


def _open_settings(file: str, flags: int) -> int:
    """Opens the file as `os.open` does, but root follows no link.

    The service's user may own the folder, and may later read the file into which root copies these
    settings.
    """
    if os.geteuid() == 0:
        flags |= os.O_NOFOLLOW
    return os.open(file, flags)


def write_settings(file: Path, text: str, user: pwd.struct_passwd) -> None:
    """Replaces the file once the new text is on the disk.

    The file belongs to whoever runs this. If `user` is another one, that user's group may read it.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    new_file = file.with_name(f".{file.name}.new")
    new_file.unlink(missing_ok=True)  # a run that was killed may have left one
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    handle = os.open(new_file, flags, OWNER_READS_WRITES)
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        if user.pw_uid != os.geteuid():
            os.fchown(handle, -1, user.pw_gid)
            os.fchmod(handle, OWNER_READS_WRITES | stat.S_IRGRP)
        os.fsync(handle)
    new_file.replace(file)
