"""Creates system users, folders and the settings file for `blocktill setup`."""

import os
import pwd
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from btcpay.values.errors import CommandError

PROGRAM = Path(sys.executable).with_name("blocktill")
STATE = Path("/var/lib/blocktill")  # systemd creates it too (StateDirectory=)
OWNER_READS_WRITES = stat.S_IRUSR | stat.S_IWUSR
BEYOND_GROUP_READING = stat.S_IWGRP | stat.S_IXGRP | stat.S_IRWXO
KEEP_OWNER = -1  # for chown(2)


def this_user() -> pwd.struct_passwd:
    """Returns the passwd entry of the effective user.

    Raises CommandError if there is none, as in some containers.
    """
    try:
        return pwd.getpwuid(os.geteuid())
    except KeyError:
        raise CommandError(
            f"this system has no name for the user {os.geteuid()}"
        ) from None


def make_user(name: str) -> pwd.struct_passwd:
    """Returns the passwd entry of the user `name`.

    Creates a system user without a login if there is none, which only root can do.
    Raises CommandError if useradd fails.
    """
    with suppress(KeyError):
        return pwd.getpwnam(name)
    command = ["useradd", "--system", "--home-dir", str(STATE)]
    command += ["--shell", "/usr/sbin/nologin", name]
    try:
        subprocess.run(
            command,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=True,
        )
    except (OSError, subprocess.CalledProcessError) as error:
        reason = getattr(error, "stderr", "").strip() or error
        raise CommandError(
            f"cannot create user {name}: {reason}; create it or use --user"
        ) from None
    return pwd.getpwnam(name)


def as_user(user: pwd.struct_passwd, work: Callable[[], int | None]) -> None:
    """Runs `work` with the rights of this user.

    - If this process runs as that user already, it runs `work` itself. An exception of
      `work` is passed on.
    - Otherwise only root can call this function. A forked child process gives up root's
      rights for good, and runs `work`. So the files that `work` creates belong to the
      user, and code that the user has hidden in a database gets only the user's rights.
      The child fails if the user may not run this program.

    If `work` returns a status other than 0 or None, or if the child fails, this process
    exits with that status.
    """
    status = _status_of(user, work)
    if status:
        sys.exit(status)


def _status_of(user: pwd.struct_passwd, work: Callable[[], int | None]) -> int | None:
    """Runs `work`, and returns its exit status; None means 0.

    If it must run as another user, it runs in a child process. The child exits with the
    status, and never returns from this function.
    """
    if user.pw_uid == os.geteuid():
        return work()
    child = os.fork()
    if child == 0:
        _become(user)
        # An exception is printed by the child's own main(), which then exits.
        sys.exit(work())
    _, wait_status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(wait_status)


def _become(user: pwd.struct_passwd) -> None:
    """Gives this process the rights of the user, for good.

    Raises CommandError if the user may not run this program.
    """
    # The groups first: without root's rights they could no longer be changed.
    os.setgroups([])
    os.setresgid(user.pw_gid, user.pw_gid, user.pw_gid)
    os.setresuid(user.pw_uid, user.pw_uid, user.pw_uid)
    # libpq looks for certificates in the home folder.
    os.environ["HOME"] = user.pw_dir
    if not all(os.access(file, os.X_OK) for file in (PROGRAM, sys.executable)):
        raise CommandError(
            f"{user.pw_name} may not run {PROGRAM}: install it outside of a home, as in"
            " /opt/blocktill (docs/operators/install.md)"
        )


def make_folder(folder: Path, user: pwd.struct_passwd) -> None:
    """Creates the folder with mode 700 for this user, unless it exists.

    A user who owns the parent folder could replace the new folder by a symlink. Even
    then the owner of the symlink's target does not change.
    """
    if folder.is_dir():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(stat.S_IRWXU)
    if user.pw_uid != os.geteuid():
        os.chown(folder, user.pw_uid, user.pw_gid, follow_symlinks=False)


def has_right_mode(file: Path, user: pwd.struct_passwd) -> bool:
    """True if the settings file exists, and its mode and group are right.

    The mode is right if only the owner may write to the file, and nobody but the owner
    and the group may read it. If `user` is not the user of this process, the group must
    be that of `user`, and must be able to read the file.

    A file that was copied from another machine may have a wrong mode or group.
    """
    if not file.exists():
        return False
    status = file.stat()
    if status.st_mode & BEYOND_GROUP_READING:
        return False
    if user.pw_uid == os.geteuid():
        return True
    may_group_read = bool(status.st_mode & stat.S_IRGRP)
    return status.st_gid == user.pw_gid and may_group_read


def text_of(file: Path, if_missing: str) -> str:
    """Returns the text of the settings file, or `if_missing` if there is no file.

    Raises CommandError if the file is not UTF-8, and OSError if it cannot be read.
    """
    try:
        with open(file, encoding="utf-8", opener=_open_settings) as stream:
            return stream.read()
    except FileNotFoundError:
        return if_missing
    except UnicodeDecodeError:
        raise CommandError(f"{file} is not in UTF-8") from None


def _open_settings(file: str, flags: int) -> int:
    """Opens the file as `os.open` does; as root it follows no symlink.

    The service's user may own the folder, and may later read the file that root writes.
    With a symlink to a secret file, root would copy the secret into it.
    """
    if os.geteuid() == 0:
        flags |= os.O_NOFOLLOW
    return os.open(file, flags)


def write_settings(file: Path, text: str, user: pwd.struct_passwd) -> None:
    """Replaces the settings file by a new one atomically.

    The file belongs to the user of this process. If `user` is another one, the group of
    `user` may read the file. Raises CommandError if this process may not write there.
    """
    try:
        _replace(file, text, user)
    except PermissionError:
        raise CommandError(
            f"{this_user().pw_name} may not write {file}: run {PROGRAM} setup as root"
        ) from None


def _replace(file: Path, text: str, user: pwd.struct_passwd) -> None:
    """Writes a new file beside `file`, then renames it: a crash leaves a whole file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    new_file = file.with_name(f".{file.name}.new")
    new_file.unlink(missing_ok=True)  # a killed run may have left one
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    descriptor = os.open(new_file, flags, OWNER_READS_WRITES)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        if user.pw_uid != os.geteuid():
            os.fchown(descriptor, KEEP_OWNER, user.pw_gid)
            os.fchmod(descriptor, OWNER_READS_WRITES | stat.S_IRGRP)
        os.fsync(descriptor)
    new_file.replace(file)
