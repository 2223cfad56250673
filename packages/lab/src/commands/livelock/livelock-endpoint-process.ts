/**
 * One end of the livelock experiment as a process: a NIC on a frame port, one queue pair, one buffer. The sender keeps
 * two messages posted so that the link never waits for the application.
 */

import { randomInt } from 'node:crypto';
import { fillPattern, method, patternMismatch, serveParent } from '@rocev2/command';
import { NS_PER_S, RoceError } from 'rocev2/internal/core';
import { nowNs } from 'rocev2/internal/driver';
import { IpAddress, PSN_COUNT } from 'rocev2/internal/packet';
import { type RecoveryName, senderTraits } from 'rocev2/internal/retransmit';
import {
  Access,
  type CompletionQueue,
  type MemoryRegion,
  openDevice,
  type QueuePair,
  type RdmaDevice,
} from 'rocev2/internal/verbs';
import { z } from 'zod';
import { connectQueuePair } from '../../live/connect-queue-pair.js';
import { LIVELOCK_OPS } from './ops.js';

const MESSAGES_POSTED = 2;
const RECEIVES_POSTED = 8;
const PATTERN_SEED = 0x5a;
/** Messages that are in progress when the time is over may finish, so that their packets are not counted as waste. */
const DRAIN_LIMIT_MS = 5_000;

interface Endpoint {
  readonly device: RdmaDevice;
  readonly sendCq: CompletionQueue;
  readonly recvCq: CompletionQueue;
  readonly qp: QueuePair;
  readonly memory: MemoryRegion;
  readonly psn: number;
  readonly recovery: RecoveryName;
}

let current: Endpoint | undefined;
let messagesCompleted = 0;

function endpoint(): Endpoint {
  if (current === undefined) throw new RoceError('ERR_ROCE_INVALID_STATE', 'the endpoint is not open');
  return current;
}

async function serveReceives({ qp, recvCq, memory }: Endpoint): Promise<void> {
  const post = () => qp.postRecv({ sges: [memory.sge()] });
  for (let i = 0; i < RECEIVES_POSTED; i++) post();
  for await (const wc of recvCq) {
    if (wc.status !== 0 || qp.isClosed) return;
    post();
  }
}

const remoteSchema = { remoteAddr: z.bigint(), rkey: z.number().int() };

const service = {
  open: method(
    {
      address: z.string(),
      switchPort: z.string(),
      messageBytes: z.number().int(),
      isSource: z.boolean(),
      recovery: z.custom<RecoveryName>(),
      trace: z.string().optional(),
    },
    async ({ address, switchPort, messageBytes, isSource, recovery, trace }) => {
      const frame = { local: '127.0.0.1:0', remote: switchPort };
      const device = await openDevice({ address, frame, ...(trace !== undefined && { trace }) });
      const sendCq = await device.createCq(2 * MESSAGES_POSTED);
      const recvCq = await device.createCq(2 * RECEIVES_POSTED);
      const pd = await device.createPd();
      const qp = await pd.createQp({ sendCq, recvCq, maxSendWr: MESSAGES_POSTED, maxRecvWr: RECEIVES_POSTED });
      const memory = await pd.regMr(messageBytes, Access.REMOTE_ALL);
      if (isSource) fillPattern(memory.bytes, PATTERN_SEED);
      current = { device, sendCq, recvCq, qp, memory, psn: randomInt(PSN_COUNT), recovery };
      messagesCompleted = 0;
      return { qpn: qp.qpn, psn: current.psn, remoteAddr: memory.addr, rkey: memory.rkey };
    },
  ),
  connect: method(
    {
      peerAddress: z.string(),
      peerQpn: z.number().int(),
      peerPsn: z.number().int(),
      mtu: z.number().int(),
      windowPackets: z.number().int(),
      receives: z.boolean(),
    },
    async ({ peerAddress, peerQpn, peerPsn, mtu, windowPackets, receives }) => {
      const self = endpoint();
      await connectQueuePair(self.device, self.qp, self.psn, {
        peerAddress: IpAddress.parse(peerAddress),
        peerQpn,
        peerPsn,
        mtu,
        windowPackets,
        recovery: self.recovery,
      });
      if (receives) void serveReceives(self);
    },
  ),
  transfer: method({ op: z.enum(LIVELOCK_OPS), seconds: z.number(), ...remoteSchema }, async (args) => {
    const { qp, sendCq, memory, recovery } = endpoint();
    const { remoteAddr, rkey } = args;
    const opcode = ({ send: 'SEND', write: 'RDMA_WRITE', read: 'RDMA_READ' } as const)[args.op];
    const sges = [memory.sge()];
    const post = () => qp.postSend(opcode === 'SEND' ? { opcode, sges } : { opcode, sges, remoteAddr, rkey });
    const startNs = nowNs();
    const endNs = startNs + args.seconds * NS_PER_S;
    let outstanding = MESSAGES_POSTED;
    for (let i = 0; i < MESSAGES_POSTED; i++) post();
    let isDrained = false;
    let failure: string | null = null;
    const pump = async () => {
      for await (const wc of sendCq) {
        if (wc.status !== 0) {
          failure = wc.statusName;
          return;
        }
        messagesCompleted++;
        if (nowNs() < endNs) post();
        else if (--outstanding === 0) break;
      }
      isDrained = true;
    };
    const giveUp = new AbortController();
    const timeIsUp = (async () => {
      await sleep(args.seconds * 1000, giveUp.signal);
      if (messagesCompleted > 0 || !senderTraits(recovery).restartsMessages) await sleep(DRAIN_LIMIT_MS, giveUp.signal);
    })();
    await Promise.race([pump(), timeIsUp]);
    giveUp.abort();
    const seconds = (nowNs() - startNs) / NS_PER_S;
    if (!isDrained) await qp.modify({ state: 'ERR' });
    return { messagesCompleted, seconds, failure };
  }),
  status: method({}, () => ({ messagesCompleted, counters: endpoint().device.counters() })),
  hasData: method({}, () => patternMismatch(endpoint().memory.bytes, PATTERN_SEED) < 0),
  close: method({}, async () => {
    await current?.device.close();
    current = undefined;
  }),
};

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

export type LivelockEndpointService = typeof service;

serveParent(service);
