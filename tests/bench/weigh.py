"""Runs a command, and prints its processor time in ms, the peak of its memory in MiB, its status.

A process of its own, since a child's peak counts what its parent had when it was started.
"""

import os
import subprocess
import sys

process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, used = os.wait4(process.pid, 0)
process.returncode = os.waitstatus_to_exitcode(status)
print(1000 * (used.ru_utime + used.ru_stime), used.ru_maxrss / 1024, process.returncode)
