"""Requests that make no sense, sent by libnbd with its own checks switched off: each has its errno, and the connection lives."""

import errno
import os

import nbd

h.set_strict_mode(0)
size = h.get_size()


def refused(expected, what, *args, **flags):
    try:
        what(*args, **flags)
    except nbd.Error as error:
        assert error.errno == errno.errorcode[expected], (what, args, error)
        h.pread(512, 0)
        return
    raise AssertionError("%s%s was done" % (what, args))


refused(errno.EINVAL, h.pread, 512, size)
refused(errno.EINVAL, h.pread, 4096, 2**63 - 512)
refused(errno.ENOSPC, h.pwrite, b"x" * 512, size - 256)
refused(errno.ENOSPC, h.zero, 1024, size - 512)
refused(errno.EINVAL, h.trim, 1024, size - 512)
refused(errno.EINVAL, h.trim, 512, 0, flags=8)
refused(errno.EINVAL, h.cache, 512, size)
refused(errno.EINVAL, h.cache, 512, 0, flags=16)
refused(errno.EINVAL, h.block_status, 65536, 0, lambda *_: 0)

try:
    h.pread(0, 0)
except nbd.Error:
    pass  # An error or no bytes: both are right. What matters is that the connection is still there.
assert len(h.pread(3, 1)) == 3
assert len(h.pread(32 << 20, 0)) == 32 << 20
data = os.urandom(1 << 20)
h.pwrite(data, 12345)
assert h.pread(1 << 20, 12345) == data
h.flush()
h.zero(65536, 12345, nbd.CMD_FLAG_FUA | nbd.CMD_FLAG_NO_HOLE)
assert h.pread(65536, 12345) == bytes(65536)
h.cache(65536, 0)

# Fast zeros are zeros, or refused at once with nothing changed.
h.pwrite(data, 1 << 20)
try:
    h.zero(1 << 20, 1 << 20, nbd.CMD_FLAG_FAST_ZERO)
    data = bytes(1 << 20)
except nbd.Error as error:
    assert error.errno == "ENOTSUP", error
assert h.pread(1 << 20, 1 << 20) == data
