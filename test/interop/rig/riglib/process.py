"""Processes the rig started, known by process id and start time, so that a reused id is never taken for ours."""
import os
import signal
import time


def start_time(pid):
    """Clock ticks since boot at which the process started; None when there is no such process (any more)."""
    try:
        with open('/proc/%d/stat' % pid) as stat:
            fields = stat.read().rsplit(')', 1)[1].split()
    except OSError:
        return None
    return None if fields[0] == 'Z' else int(fields[19])


def identify(pid):
    return {'pid': pid, 'startTime': start_time(pid)}


def is_alive(process):
    return process['startTime'] is not None and start_time(process['pid']) == process['startTime']


def stop(process, first_signal=signal.SIGTERM, patience_s=5.0):
    """Ask it to end, wait, then insist. Harmless when it has ended already."""
    if not is_alive(process):
        return
    os.kill(process['pid'], first_signal)
    deadline = time.monotonic() + patience_s
    while is_alive(process) and time.monotonic() < deadline:
        time.sleep(0.02)
    if is_alive(process):
        os.kill(process['pid'], signal.SIGKILL)
