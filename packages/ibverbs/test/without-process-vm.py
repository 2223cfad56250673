"""Runs a command in which process_vm_readv(2) and process_vm_writev(2) fail with EPERM, as a container's filter may."""
import ctypes
import errno
import os
import platform
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, FAIL = 0x7FFF0000, 0x00050000
READ, WRITE = {'x86_64': (310, 311), 'aarch64': (270, 271)}[platform.machine()]

PROGRAM = [
    (LOAD, 0, 0, 0),
    (EQUAL, 2, 0, READ),
    (EQUAL, 1, 0, WRITE),
    (RETURN, 0, 0, ALLOW),
    (RETURN, 0, 0, FAIL | errno.EPERM),
]

libc = ctypes.CDLL(None, use_errno=True)
code = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *instruction) for instruction in PROGRAM))
filter = struct.pack('HxxxxxxQ', len(PROGRAM), ctypes.addressof(code))
assert libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
assert libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter, 0, 0) == 0, os.strerror(ctypes.get_errno())
assert libc.process_vm_readv(os.getpid(), None, 0, None, 0, 0) == -1, 'the filter has no effect'
os.execvp(sys.argv[1], sys.argv[1:])
