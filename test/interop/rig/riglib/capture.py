"""Packet capture inside the namespace, by dumpcap, to a pcapng file."""
import os
import signal
import subprocess
import time

from . import network, process, record
from .host import RigError

HEADER_BYTES = 28  # a pcapng section header block: the file has begun
SETTLE_S = 0.3  # the kernel hands packets to dumpcap in blocks; later ones than this belong to what comes next


def start(rig, file, interface, packet_filter):
    if rig['capture'] is not None:
        raise RigError('a capture is running (rig cap stop)')
    namespace = network.require_bridge(rig)
    # dumpcap writes to its standard output because it gives up root before it would open the file.
    command = network.inside(namespace, 'dumpcap', '-q', '-i', interface, '-f', packet_filter, '-w', '-')
    log_path = record.path('capture.log')
    with open(file, 'wb') as output, open(log_path, 'w') as log:
        dumpcap = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=log, start_new_session=True)
    rig['capture'] = process.identify(dumpcap.pid)
    record.save(rig)
    deadline = time.monotonic() + 10
    while os.path.getsize(file) < HEADER_BYTES:
        if dumpcap.poll() is not None or time.monotonic() > deadline:
            stop(rig)
            with open(log_path) as log:
                raise RigError('dumpcap did not start: %s' % log.read().strip())
        time.sleep(0.02)


def stop(rig):
    if rig['capture'] is None:
        return
    time.sleep(SETTLE_S)
    process.stop(rig['capture'], signal.SIGINT)
    rig['capture'] = None
    record.save(rig)
