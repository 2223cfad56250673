/** Two endpoints on frame ports of a live switch, everything they can say to each other, and a capture of it at the first. */

import { openLiveSwitch } from '../../packages/lab/src/live/live-switch.js';
import { ConnectionManager } from '../../src/cm/connection-manager.js';
import { SeededRandom } from '../../src/core/random.js';
import { parseUdpEndpoint } from '../../src/dgram-ext/udp-endpoint.js';
import { FaultPlan } from '../../src/port/faults/fault-plan.js';
import { Access } from '../../src/verbs/access.js';
import { openDevice } from '../../src/verbs/open-device.js';
import type { QueuePair } from '../../src/verbs/queue-pair.js';
import type { SendWorkRequest } from '../../src/verbs/send-work-request.js';

const ANY_PORT = parseUdpEndpoint('127.0.0.1:0');
const CM_PORT = 7174;
const QKEY = 0x1234567;
const MEMORY_BYTES = 65_536;

export interface Traffic {
  /** The queue pairs that RDMA CM connected, at the capturing end and at the other, and those of the datagrams. */
  readonly rcQpns: readonly [number, number];
  readonly udQpns: readonly [number, number];
}

async function openEnd(address: string, switchPort: number, pcap?: string) {
  const frame = { local: '127.0.0.1:0', remote: `127.0.0.1:${switchPort}` };
  const device = await openDevice({ address, frame, ...(pcap !== undefined && { pcap }) });
  const cm = await ConnectionManager.open(device);
  const cq = await device.createCq(256);
  const pd = await device.createPd();
  const mr = await pd.regMr(MEMORY_BYTES, Access.REMOTE_ALL | Access.MW_BIND);
  return {
    device,
    cm,
    cq,
    pd,
    mr,
    rc: await pd.createQp({ sendCq: cq }),
    ud: await pd.createQp({ type: 'UD', sendCq: cq }),
  };
}

type End = Awaited<ReturnType<typeof openEnd>>;

/** Connects, does one of everything (RC and UD, small and of several packets, refused at last), disconnects. */
export async function captureTraffic(
  file: string,
  addresses: readonly [string, string],
  faults?: string,
): Promise<Traffic> {
  const plan = faults === undefined ? {} : { faults: FaultPlan.parse(faults, new SeededRandom(1)) };
  const wire = await openLiveSwitch({ ports: ['a', 'b'].map((name) => ({ name, local: ANY_PORT })), ...plan });
  const a = await openEnd(addresses[0], wire.local('a').port, file);
  const b = await openEnd(addresses[1], wire.local('b').port);
  const listener = b.cm.listen(CM_PORT);
  const accepting = listener.next().then((request) => request.accept(b.rc));
  const connection = await a.cm.connect(b.device.address, CM_PORT, a.rc, { pathMtu: 1024 });
  await accepting;
  await exchangeDatagrams(a, b);
  await exchangeMessages(a, b);
  await connection.disconnect();
  for (const { cm, device } of [a, b]) {
    await cm.close();
    await device.close();
  }
  await wire.close();
  return { rcQpns: [a.rc.qpn, b.rc.qpn], udQpns: [a.ud.qpn, b.ud.qpn] };
}

async function completed(from: End, qp: QueuePair, request: SendWorkRequest): Promise<string> {
  qp.postSend(request);
  return (await from.cq.next()).statusName;
}

async function exchangeDatagrams(a: End, b: End): Promise<void> {
  for (const { ud } of [a, b]) {
    await ud.modify({ state: 'INIT', pkeyIndex: 0, port: 1, qkey: QKEY });
    await ud.modify({ state: 'RTR' });
    await ud.modify({ state: 'RTS', sqPsn: 0xfffffe });
  }
  const ah = await a.pd.createAh(b.device.address);
  const target = { ah, remoteQpn: b.ud.qpn, remoteQkey: QKEY };
  for (const length of [0, 5, 1024])
    await completed(a, a.ud, { opcode: 'SEND', sges: [a.mr.sge(0, length)], ...target });
  await completed(a, a.ud, { opcode: 'SEND_WITH_IMM', immediate: 0xcafe, sges: [a.mr.sge(0, 7)], ...target });
}

/** The key of a memory window that the peer may invalidate. */
async function boundWindow(end: End): Promise<number> {
  const mw = await end.pd.allocMw(2);
  const rkey = mw.nextRkey();
  const range = { mr: end.mr, offset: 0, length: 4096, access: Access.REMOTE_WRITE };
  await completed(end, end.rc, { opcode: 'BIND_MW', mw, rkey, ...range });
  return rkey;
}

async function exchangeMessages(a: End, b: End): Promise<void> {
  for (let i = 0; i < 8; i++) b.rc.postRecv({ sges: [b.mr.sge(0, 8192)] });
  const keys = [await boundWindow(b), await boundWindow(b)];
  const there = { remoteAddr: b.mr.addr, rkey: b.mr.rkey };
  const some = (length: number) => ({ sges: [a.mr.sge(0, length)] });
  const requests: SendWorkRequest[] = [
    { opcode: 'SEND', ...some(3) },
    { opcode: 'SEND', ...some(5000) },
    { opcode: 'SEND_WITH_IMM', immediate: 1, ...some(5001) },
    { opcode: 'SEND_WITH_IMM', immediate: 2, ...some(0) },
    { opcode: 'RDMA_WRITE', ...some(9), ...there },
    { opcode: 'RDMA_WRITE', ...some(5002), ...there },
    { opcode: 'RDMA_WRITE_WITH_IMM', immediate: 3, ...some(5003), ...there },
    { opcode: 'RDMA_WRITE_WITH_IMM', immediate: 4, ...some(1), ...there },
    { opcode: 'RDMA_READ', ...some(2), ...there },
    { opcode: 'RDMA_READ', ...some(5004), ...there },
    { opcode: 'ATOMIC_FETCH_AND_ADD', add: 1n, ...some(8), ...there },
    { opcode: 'ATOMIC_CMP_AND_SWP', compare: 1n, swap: 2n, ...some(8), ...there },
    { opcode: 'SEND_WITH_INV', invalidateRkey: keys[0], ...some(2000) },
    { opcode: 'SEND_WITH_INV', invalidateRkey: keys[1], ...some(2) },
    { opcode: 'RDMA_WRITE', ...some(10), remoteAddr: b.mr.addr, rkey: keys[0] }, // refused
  ];
  const statuses = [];
  for (const request of requests) statuses.push(await completed(a, a.rc, request));
  const refused = statuses.pop();
  if (refused !== 'REM_ACCESS_ERR' || statuses.some((status) => status !== 'SUCCESS')) {
    throw new Error(`the traffic did not go as planned: ${[...statuses, refused]}`);
  }
}
