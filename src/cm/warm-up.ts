/**
 * Warms up a device before it has peers: V8 compiles the NIC's code during most of the first GiB, at half of the later
 * speed (docs/performance.md, "Warm-up").
 */

import { randomInt } from 'node:crypto';
import { checkKind, checkOptions, checkWhole, type OptionNames } from '../core/arguments.js';
import { RoceError } from '../core/errors.js';
import { NS_PER_MS } from '../core/units.js';
import { PSN_COUNT } from '../packet/psn.js';
import { Access } from '../verbs/access.js';
import { type CompletionQueue, checkCompletion } from '../verbs/completion-queue.js';
import type { RdmaDevice } from '../verbs/device.js';
import type { MemoryRegion } from '../verbs/memory-region.js';
import type { ProtectionDomain } from '../verbs/protection-domain.js';
import type { QueuePair } from '../verbs/queue-pair.js';
import { connectQueuePair, initializeQueuePair } from './queue-pair-setup.js';

/** Options of {@link warmUp}. */
export interface WarmUpOptions {
  /**
   * Duration in milliseconds, 1 to 60,000. Default 1,000: less leaves much to be compiled, more gains little.
   */
  readonly durationMs?: number | undefined;
}

const WARM_UP_OPTIONS: OptionNames<WarmUpOptions> = { durationMs: true };
const WARM_UP_MS_DEFAULT = 1_000;
export const WARM_UP_MS_MAX = 60_000;

/** Few large messages for the code of a packet, many small ones for that of a message and of a NIC poll. */
interface Kind {
  readonly opcode: 'RDMA_WRITE' | 'RDMA_READ' | 'SEND';
  readonly bytes: number;
  readonly inFlight: number;
}

const KINDS: readonly Kind[] = [
  { opcode: 'RDMA_WRITE', bytes: 1_048_576, inFlight: 4 },
  { opcode: 'SEND', bytes: 64, inFlight: 32 },
  { opcode: 'RDMA_WRITE', bytes: 65_536, inFlight: 4 },
  { opcode: 'RDMA_READ', bytes: 65_536, inFlight: 4 },
  { opcode: 'RDMA_WRITE', bytes: 4096, inFlight: 16 },
];
/** The largest values in KINDS. */
const BYTES_MAX = 1_048_576;
const IN_FLIGHT_MAX = 32;
/** Messages of one kind before the next: each kind runs several times, so that code is optimised for all of them. */
const SLICE_NS = 20 * NS_PER_MS;

type Two<T> = readonly [T, T];

/**
 * Sends messages of several sizes and operations from the device to itself, until V8 has compiled most code of a
 * transfer. They pass through its UDP port and so appear in counters, captures, traces and telemetry, and are subject
 * to fault rules. The event loop keeps running and peers are served.
 *
 *     const device = await openDevice({ address: '192.0.2.7' });
 *     await warmUp(device);
 *
 * Rejects with ERR_ROCE_UNSUPPORTED for a device that cannot reach itself: one that protects its packets, or one on a
 * frame link. With ERR_ROCE_OUT_OF_RANGE or ERR_ROCE_UNKNOWN_NAME for invalid options, and ERR_ROCE_CLOSED if the
 * device is closed during the call.
 */
export async function warmUp(device: RdmaDevice, options: WarmUpOptions = {}): Promise<void> {
  checkKind('device', device, typeof device?.createPd === 'function', 'what openDevice() gave');
  checkOptions('warmUp', options, WARM_UP_OPTIONS);
  const durationMs = checkWhole('durationMs', options.durationMs ?? WARM_UP_MS_DEFAULT, 1, WARM_UP_MS_MAX);
  if (device.security !== undefined) throw unreachable('a device that protects its packets connects to others alone');
  const { link, address, attributes } = device;
  // With the first queue pair that is closed, fields change that V8 treated as constants, and it deoptimises code that
  // relies on them. So one is closed early.
  await exchangeFor(device, 0);
  const mayShareMemory = link.memoryDomain !== undefined;
  await exchangeFor(device, (durationMs * NS_PER_MS) / (mayShareMemory ? 2 : 1));
  if (!mayShareMemory) return;
  // Peers may use either transport.
  await link.resolve(address, attributes.udpPort);
  try {
    await exchangeFor(device, (durationMs * NS_PER_MS) / 2);
  } finally {
    link.unshare(address, attributes.udpPort);
  }
}

async function exchangeFor(device: RdmaDevice, durationNs: number): Promise<void> {
  const sendCq = await device.createCq(IN_FLIGHT_MAX);
  const recvCq = await device.createCq(IN_FLIGHT_MAX);
  const pd = await device.createPd();
  try {
    const pair = await LoopedPair.create(pd, sendCq, recvCq);
    const { clock } = device;
    const endNs = clock.nowNs() + durationNs;
    let slice = 0;
    do {
      const sliceEndNs = Math.min(endNs, clock.nowNs() + SLICE_NS);
      await pair.exchange(KINDS[slice++ % KINDS.length], () => clock.nowNs() >= sliceEndNs);
    } while (clock.nowNs() < endNs);
  } finally {
    // Queue pairs and regions close with their domain, also those that a failed exchange has left.
    for (const resource of [pd, sendCq, recvCq]) await resource.close();
  }
}

class LoopedPair {
  readonly #sendCq: CompletionQueue;
  readonly #recvCq: CompletionQueue;
  readonly #sender: QueuePair;
  readonly #receiver: QueuePair;
  readonly #from: MemoryRegion;
  readonly #to: MemoryRegion;

  private constructor(cqs: Two<CompletionQueue>, qps: Two<QueuePair>, regions: Two<MemoryRegion>) {
    [this.#sendCq, this.#recvCq] = cqs;
    [this.#sender, this.#receiver] = qps;
    [this.#from, this.#to] = regions;
  }

  static async create(pd: ProtectionDomain, sendCq: CompletionQueue, recvCq: CompletionQueue): Promise<LoopedPair> {
    const init = { sendCq, recvCq, maxSendWr: IN_FLIGHT_MAX, maxRecvWr: IN_FLIGHT_MAX };
    const qps = [await pd.createQp(init), await pd.createQp(init)] as const;
    // Memory that no peer can write is sent without a copy.
    const regions = [
      await pd.regMr(BYTES_MAX, Access.LOCAL_WRITE),
      await pd.regMr(BYTES_MAX, Access.REMOTE_ALL),
    ] as const;
    for (const qp of qps) await initializeQueuePair(qp);
    const { address, attributes } = pd.device;
    const own = {
      pathMtu: attributes.pathMtuMax,
      reliable: {
        toRtr: { maxDestRdAtomic: IN_FLIGHT_MAX, minRnrTimer: 1, inflightPackets: attributes.receiveBudgetPackets },
        toRts: { timeout: 14, retryCnt: 7, rnrRetry: 7, maxRdAtomic: IN_FLIGHT_MAX },
      },
    };
    const ends = qps.map(({ qpn }) => ({ address, udpPort: attributes.udpPort, qpn, psn: randomInt(PSN_COUNT) }));
    for (const [i, qp] of qps.entries()) await connectQueuePair(qp, { ...own, psn: ends[i].psn }, ends[1 - i]);
    return new LoopedPair([sendCq, recvCq], qps, regions);
  }

  async exchange(kind: Kind, isOver: () => boolean): Promise<void> {
    this.#post(kind);
    for (let inFlight = 1; inFlight > 0; inFlight--) {
      for (; inFlight < kind.inFlight && !isOver(); inFlight++) this.#post(kind);
      const wc = await this.#sendCq.next();
      if (wc.statusName === 'RETRY_EXC_ERR') throw unreachable('its packets do not come back to its own address');
      checkCompletion(wc);
      this.#recvCq.poll(IN_FLIGHT_MAX);
    }
  }

  #post({ opcode, bytes }: Kind): void {
    const sges = [this.#from.sge(0, bytes)];
    if (opcode === 'SEND') {
      this.#receiver.postRecv({ sges: [this.#to.sge(0, bytes)] });
      this.#sender.postSend({ opcode, sges });
    } else {
      this.#sender.postSend({ opcode, sges, remoteAddr: this.#to.addr, rkey: this.#to.rkey });
    }
  }
}

function unreachable(why: string): RoceError {
  return new RoceError('ERR_ROCE_UNSUPPORTED', 'the device cannot warm itself up', why);
}
