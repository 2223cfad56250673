"""Commands in a guest, over its virtio-serial ports. guest/rig-agent is the other end and states the format."""
import base64
import collections
import fcntl
import os
import socket
import time

from . import process, record
from .host import RigError, run

CHANNELS = 4  # so many commands run at a time in one guest
TIMED_OUT = 124  # the exit status of timeout(1)
KILLED = 128 + 9

CONSOLE_LINES = 80  # of a guest that died: an oops and what led to it

Result = collections.namedtuple('Result', 'status stdout stderr')


def console(number):
    return record.path('g%d.console' % number)


def console_tail(number):
    """The last that the guest's kernel said. The file goes with the rig: whoever reports a dead guest has to quote it."""
    lines = run('tail', '-n', str(CONSOLE_LINES), console(number), check=False).replace('\r', '').strip()
    return 'its console:\n%s' % (lines or '(nothing)')


def socket_name(number, index):
    return 'g%d.c%d' % (number, index)


def acquire(number, deadline):
    """A free channel of the guest as (index, lock file): one command at a time goes through each."""
    while True:
        for index in range(1, CHANNELS + 1):
            lock = open(record.path(socket_name(number, index) + '.lock'), 'w')
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return index, lock
            except BlockingIOError:
                lock.close()
        if time.monotonic() > deadline:
            raise RigError('all %d command channels of guest %d are busy' % (CHANNELS, number))
        time.sleep(0.02)


def connect(name):
    channel = socket.socket(socket.AF_UNIX)
    directory = os.open(record.directory(), os.O_PATH)
    try:  # by way of a file descriptor, because a socket's path may have no more than 107 bytes
        channel.connect('/proc/self/fd/%d/%s' % (directory, name))
    finally:
        os.close(directory)
    return channel


def execute(guest, command, timeout_s):
    """Run a shell command in the guest: Result(status, stdout, stderr); status 124 when it ran too long."""
    number = guest['number']
    started = time.monotonic()
    deadline = started + timeout_s + 20  # the guest's own timeout comes first; this one is for a guest that hangs

    def gone():
        return RigError('guest %d is gone; %s' % (number, console_tail(number)))
    index, lock = acquire(number, deadline)
    with lock:
        try:
            channel = connect(socket_name(number, index))
        except OSError:
            raise gone()
        with channel:
            request = 'q%d.%d' % (os.getpid(), time.monotonic_ns())
            encoded = base64.b64encode(command.encode()).decode()
            channel.sendall(('\n%s %g %s\n' % (request, timeout_s, encoded)).encode())
            channel.settimeout(1)
            answer = b''
            while True:
                try:
                    received = channel.recv(1 << 16)
                    if not received:
                        raise gone()
                    answer += received
                except ConnectionResetError:
                    raise gone()
                except socket.timeout:
                    if not process.is_alive(guest['process']):
                        raise gone()
                    if time.monotonic() > deadline:
                        raise RigError('guest %d does not answer; %s' % (number, console_tail(number)))
                result = parse(answer, request)
                if result is not None:
                    break
    if result.status == KILLED and time.monotonic() - started >= timeout_s:
        return result._replace(status=TIMED_OUT)  # it ignored SIGTERM
    return result


def parse(answer, request):
    """The Result in these bytes, or None while it is incomplete."""
    start = answer.find(b'R %s ' % request.encode())  # what stands before it is for a sender that went away
    end = answer.find(b'\n', start)
    if start < 0 or end < 0:
        return None
    status, stdout_bytes, stderr_bytes = map(int, answer[start:end].split()[2:])
    body = answer[end + 1:]
    if len(body) < stdout_bytes + stderr_bytes:
        return None
    return Result(status, body[:stdout_bytes], body[stdout_bytes:stdout_bytes + stderr_bytes])
