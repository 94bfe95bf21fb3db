"""What a thread waits for, by the kernel's word (proc_pid_syscall(5))."""

from pathlib import Path

# By the number of a system call, on x86-64 and on ARM: which of its arguments is the time limit.
TIME_LIMIT = {
    "270": 4,  # pselect6
    "72": 4,
    "202": 3,  # futex
    "98": 3,
    "232": 3,  # epoll_wait
    "281": 3,  # epoll_pwait
    "22": 3,
}
# A null pointer; of epoll minus one, as 32 bits or 64.
NO_LIMIT = ("0x0", "0xffffffff", "0xffffffffffffffff")


def threads_of(pid: int) -> list[int]:
    """The ids of the process's threads, its main thread first.

    The kernel's numbers begin anew after the highest: a later thread may have a lower one.
    """
    threads = {int(task.name) for task in Path(f"/proc/{pid}/task").iterdir()}
    return [pid, *sorted(threads - {pid})]


def waits_without_limit(pid: int, thread: int) -> bool:
    """True if the thread sleeps until something happens, and not for some time."""
    line = Path(f"/proc/{pid}/task/{thread}/syscall").read_text()
    number, *arguments = line.split()
    return number in TIME_LIMIT and arguments[TIME_LIMIT[number]] in NO_LIMIT
