"""A program with two queue pairs of one device that are connected to each other. `lifecycle.py fork` forks without exec
while they exist; `lifecycle.py restart` survives the end of the NIC process, which it asks for by a line on its output.
"""
import ctypes
import os
import platform
import signal
import sys
import threading

from pyverbs import enums as e
from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CQ, CompChannel
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsError, PyverbsRDMAError
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import RecvWR, SGE, SendWR

SIZE = 8192


class Pair:
    def __init__(self):
        self.context = Context(name='rocev2_0')
        self.pd = PD(self.context)
        self.channel = CompChannel(self.context)
        self.cq = CQ(self.context, 64, None, self.channel, 0)
        access = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE
        self.mr = MR(self.pd, 2 * SIZE, access)
        self.qps = [self.queue_pair(), self.queue_pair()]
        for qp, peer in (self.qps, self.qps[::-1]):
            self.connect(qp, peer.qp_num)

    def queue_pair(self):
        init = QPInitAttr(qp_type=e.IBV_QPT_RC, scq=self.cq, rcq=self.cq, cap=QPCap(max_send_wr=8, max_recv_wr=8))
        qp = QP(self.pd, init)
        attr = QPAttr(port_num=1)
        attr.qp_access_flags = e.IBV_ACCESS_REMOTE_WRITE
        qp.to_init(attr)
        return qp

    def connect(self, qp, number):
        route = GlobalRoute(dgid=self.context.query_gid(1, 0), sgid_index=0)
        attr = QPAttr(port_num=1)
        attr.ah_attr = AHAttr(is_global=1, gr=route, port_num=1)
        attr.path_mtu = e.IBV_MTU_1024
        attr.dest_qp_num = number
        attr.max_rd_atomic = attr.max_dest_rd_atomic = 1
        attr.min_rnr_timer = 12
        attr.timeout = 16
        attr.retry_cnt = attr.rnr_retry = 7
        qp.to_rts(attr)

    def post_receive(self):
        self.qps[1].post_recv(RecvWR(sg=[SGE(self.mr.buf + SIZE, SIZE, self.mr.lkey)], num_sge=1))

    def post_send(self):
        self.qps[0].post_send(SendWR(sg=[SGE(self.mr.buf, SIZE, self.mr.lkey)], num_sge=1))

    def exchange(self, byte):
        self.mr.write(byte * SIZE, SIZE)
        self.post_receive()
        self.post_send()
        left = 2
        while left > 0:
            count, completions = self.cq.poll(left)
            left -= count
            for completion in completions:
                assert completion.status == e.IBV_WC_SUCCESS, completion
        assert self.mr.read(SIZE, SIZE) == byte.encode() * SIZE, 'the data of another process were sent'


def say(line):
    print(line, flush=True)


def wait_for(child):
    _, status = os.waitpid(child, 0)
    assert status == 0, f'the child has ended with {status}'


def fork():
    pair = Pair()
    pair.exchange('a')
    child = os.fork()
    if child == 0:
        # It has copies of the buffers, which the NIC must not see, and can open a device of its own.
        signal.pause()
        os._exit(1)
    pair.exchange('b')
    second = os.fork()
    if second == 0:
        Pair().exchange('c')
        os._exit(0)
    wait_for(second)
    pair.exchange('d')
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    pair.exchange('e')


def refused(what, call):
    """The call fails at once, with an error."""
    try:
        result = call()
    except (PyverbsError, PyverbsRDMAError):
        return
    raise AssertionError(f'{what} has no error, but returns {result}')


def polls_until_refused(pair):
    while True:
        pair.cq.poll()


def restart():
    pair = Pair()
    pair.exchange('a')
    say('end the NIC')
    event = pair.context.get_async_event()
    assert event.event_type == e.IBV_EVENT_DEVICE_FATAL, event.event_type
    event.ack()
    refused('ibv_poll_cq', lambda: polls_until_refused(pair))
    refused('ibv_post_send', pair.post_send)
    refused('ibv_post_recv', pair.post_receive)
    refused('ibv_reg_mr', lambda: MR(pair.pd, SIZE, e.IBV_ACCESS_LOCAL_WRITE))
    refused('ibv_get_cq_event', lambda: pair.channel.get_cq_event(pair.cq))
    for thing in (*pair.qps, pair.mr, pair.cq, pair.channel, pair.pd, pair.context):
        thing.close()
    say('start the NIC')
    sys.stdin.readline()
    Pair().exchange('b')


def poll():
    """A thread that finds the end of the NIC by polling alone."""
    pair = Pair()
    say('end the NIC')
    refused('ibv_poll_cq', lambda: polls_until_refused(pair))


def channel():
    """A thread waits for an event of librdmacm while another one destroys the channel."""
    library = ctypes.CDLL('librdmacm.so.1')
    library.rdma_create_event_channel.restype = ctypes.c_void_p
    events = ctypes.c_void_p(library.rdma_create_event_channel())
    returned = threading.Event()

    def wait():
        library.rdma_get_cm_event(events, ctypes.byref(ctypes.c_void_p()))
        returned.set()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    receives = {'x86_64': '45 ', 'aarch64': '207 '}[platform.machine()]
    while not open(f'/proc/self/task/{thread.native_id}/syscall').read().startswith(receives):
        os.sched_yield()
    library.rdma_destroy_event_channel(events)
    for _ in range(5):
        Pair().exchange('a')
    os._exit(1 if returned.is_set() else 0)


{'fork': fork, 'restart': restart, 'poll': poll, 'channel': channel}[sys.argv[1]]()
