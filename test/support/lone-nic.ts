/**
 * One simulated NIC whose wire is the test: packets made by hand go in, every packet that comes out is parsed and collected. Rules of the
 * transport are tested here against bytes, not against our own other half.
 *
 * PSNs are given and shown relative to the start of their direction: the peer's requests begin at 0, and so do the NIC's own. Both start
 * values stand just below the wrap.
 */

import { expect } from 'vitest';
import { EventQueue } from '../../packages/lab/src/sim/event-queue.js';
import { SimHost } from '../../packages/lab/src/sim/sim-host.js';
import { SeededRandom } from '../../src/core/random.js';
import { highOfBig, lowOfBig } from '../../src/core/u64.js';
import type { NicTuning } from '../../src/nic/nic.js';
import { IpAddress } from '../../src/packet/address.js';
import { checkIcrc, ICRC_OK, IcrcFlow, sealIcrc } from '../../src/packet/icrc.js';
import { OP_ACK, OP_ATOMIC_ACK, OP_READ_RESPONSE, OPCODES, VENDOR_SACK } from '../../src/packet/opcode.js';
import { psnAdd, psnDiff } from '../../src/packet/psn.js';
import { emitRoce, PARSE_OK, parseRoce, type RoceFields, RocePacket, writeCnp } from '../../src/packet/roce.js';
import type { TxBatch } from '../../src/port/datagram.js';
import { Access } from '../../src/verbs/access.js';
import type { CompletionQueue, WorkCompletion } from '../../src/verbs/completion-queue.js';
import { type DeviceEvents, RdmaDevice } from '../../src/verbs/device.js';
import type { MemoryRegion } from '../../src/verbs/memory-region.js';
import type { ProtectionDomain } from '../../src/verbs/protection-domain.js';
import type { QpAttr } from '../../src/verbs/qp-attributes.js';
import type { QueuePair, QueuePairInit } from '../../src/verbs/queue-pair.js';
import { runToRest } from './virtual-time.js';

export const NIC_ADDRESS = IpAddress.parse('192.0.2.1');
export const PEER_ADDRESS = IpAddress.parse('192.0.2.2');
export const PEER_QPN = 0x777777;
export const PEER_SOURCE_PORT = 0xc0de;
export const RQ_START = 0xfffffd;
export const SQ_START = 0xfffffe;
/** The smallest path MTU keeps hand-made messages short. */
export const MTU = 256;
const NOTHING: Uint8Array = new Uint8Array(0);

/** A packet that the NIC sent. */
export interface SentPacket {
  readonly name: string;
  /** PSN relative to the start of its direction. */
  readonly at: number;
  readonly ackReq: boolean;
  readonly solicited: boolean;
  readonly syndrome: number;
  readonly msn: number;
  readonly va: bigint;
  readonly rkey: number;
  readonly dmaLength: number;
  readonly feth: number;
  readonly immediate: number;
  readonly invalidateRkey: number;
  readonly orig: bigint;
  readonly payload: Buffer;
  readonly timeNs: number;
  readonly ecn: number;
  readonly dscp: number;
  /** UDP source port: one a connection. */
  readonly sourcePort: number;
}

/** Fields of a hand-made packet; `va`, `swapAdd`, `compare` and `orig` are 64 bits. */
export type CraftedFields = Partial<Omit<RoceFields, 'opcode' | 'psn'>> & {
  va?: bigint;
  swapAdd?: bigint;
  compare?: bigint;
  orig?: bigint;
};

export interface LoneNicOptions {
  /** How far the QP is taken. Default RTS. */
  state?: 'RESET' | 'INIT' | 'RTR' | 'RTS';
  attr?: QpAttr;
  qp?: Partial<QueuePairInit>;
  mrAccess?: number;
  memoryBytes?: number;
  tuning?: NicTuning;
}

const OPCODE_OF: ReadonlyMap<string, number> = new Map(
  OPCODES.filter((info) => info !== undefined).map(({ transport, name, opcode }) => [`${transport} ${name}`, opcode]),
);

/** The number of an opcode by its transport and its name in the spec. */
function opcodeOf(transport: string, name: string): number {
  const opcode = OPCODE_OF.get(`${transport} ${name}`);
  if (opcode === undefined) throw new RangeError(`${name} is not an opcode of ${transport}`);
  return opcode;
}

/** The number of an RC opcode by its name in the spec. */
export function rcOpcode(name: string): number {
  return opcodeOf('RC', name);
}

/** `length` bytes that differ along the way and between seeds. */
export function pattern(length: number, seed = 1): Buffer {
  return Buffer.from(Uint8Array.from({ length }, (_, i) => (i * 7 + (i >> 8) + seed * 13) & 255));
}

/** What `take` shows for an ACK. */
export const ack = (at: number, msn: number) => ({ name: 'ACKNOWLEDGE', at, syndrome: 0x1f, msn });
/** What `take` shows for a NAK, RNR NAKs (0x20 | timer) included. */
export const nak = (syndrome: number, at: number) => ({ name: 'ACKNOWLEDGE', at, syndrome });

export class LoneNic {
  readonly events: EventQueue;
  readonly host: SimHost;
  readonly device: RdmaDevice;
  readonly pd: ProtectionDomain;
  readonly cq: CompletionQueue;
  readonly recvCq: CompletionQueue;
  readonly qp: QueuePair;
  readonly mr: MemoryRegion;
  /** Async events of the QP, oldest first. */
  readonly asyncEvents: string[] = [];
  #sent: SentPacket[] = [];
  readonly #txFlows = new Map<number, IcrcFlow>();
  readonly #rxFlow = new IcrcFlow(PEER_ADDRESS, NIC_ADDRESS, PEER_SOURCE_PORT, 4791);

  private constructor(parts: Pick<LoneNic, 'events' | 'host' | 'device' | 'pd' | 'cq' | 'recvCq' | 'qp' | 'mr'>) {
    this.events = parts.events;
    this.host = parts.host;
    this.device = parts.device;
    this.pd = parts.pd;
    this.cq = parts.cq;
    this.recvCq = parts.recvCq;
    this.qp = parts.qp;
    this.mr = parts.mr;
    this.host.connect((batch) => this.#onSent(batch));
    for (const name of [
      'COMM_EST',
      'SQ_DRAINED',
      'QP_FATAL',
      'QP_LAST_WQE_REACHED',
      'CQ_ERR',
      'QP_SOURCE_PORT',
      'QP_UNSENT_RESPONSE',
      'QP_REORDER_CONFLICT',
    ] as const) {
      this.device.events.on(name as keyof DeviceEvents, () => this.asyncEvents.push(name));
    }
  }

  static async create(options: LoneNicOptions = {}): Promise<LoneNic> {
    const events = new EventQueue();
    const random = new SeededRandom(7).stream('nic');
    const host = new SimHost({ address: NIC_ADDRESS, events, random, ...options.tuning });
    const device = await RdmaDevice.over(host);
    const pd = await device.createPd();
    const cq = await device.createCq(1024);
    const recvCq = await device.createCq(1024);
    const qp = await pd.createQp({ sendCq: cq, recvCq, maxSendSge: 4, maxRecvSge: 4, ...options.qp });
    const access = options.mrAccess ?? Access.REMOTE_ALL | Access.MW_BIND;
    const mr = await pd.regMr(options.memoryBytes ?? 64 * 1024, access);
    const nic = new LoneNic({ events, host, device, pd, cq, recvCq, qp, mr });
    await connectToPeer(qp, options.state ?? 'RTS', options.attr);
    return nic;
  }

  get nowNs(): number {
    return this.events.nowNs;
  }

  #onSent(batch: TxBatch): number {
    const bytes = Buffer.from(batch.payloadView(0));
    const sourcePort = batch.sourcePorts[0];
    let flow = this.#txFlows.get(sourcePort);
    if (flow === undefined) {
      flow = new IcrcFlow(NIC_ADDRESS, PEER_ADDRESS, sourcePort, 4791);
      this.#txFlows.set(sourcePort, flow);
    }
    const p = new RocePacket();
    expect(parseRoce(bytes, 0, bytes.length, p)).toBe(PARSE_OK);
    expect(checkIcrc(flow, bytes, 0, bytes.length, batch.ipIds[0])).toBe(ICRC_OK);
    expect(p.destQpn).toBe(PEER_QPN);
    const isResponse = [OP_ACK, OP_READ_RESPONSE, OP_ATOMIC_ACK].includes(p.info.kind);
    this.#sent.push({
      name: p.info.name,
      at: psnDiff(p.psn, isResponse ? RQ_START : SQ_START),
      ackReq: p.ackReq,
      solicited: p.solicited,
      syndrome: p.syndrome,
      msn: p.msn,
      va: (BigInt(p.vaHigh) << 32n) | BigInt(p.vaLow),
      rkey: p.rkey,
      dmaLength: p.dmaLength,
      feth: p.feth,
      immediate: p.immediate,
      invalidateRkey: p.invalidateRkey,
      orig: (BigInt(p.origHigh) << 32n) | BigInt(p.origLow),
      payload: bytes.subarray(p.payloadOffset, p.payloadOffset + p.payloadBytes),
      timeNs: this.nowNs,
      ecn: batch.ecns[0],
      dscp: batch.dscps[0],
      sourcePort,
    });
    return this.nowNs;
  }

  /** Delivers the packet (BTH .. pad), with a right ICRC unless a bit of it is to be flipped. */
  deliver(packet: Uint8Array, mishap: { bit?: number; ecn?: number; sourcePort?: number } = {}): void {
    const bytes = new Uint8Array(packet.length + 4);
    bytes.set(packet);
    const { sourcePort = PEER_SOURCE_PORT } = mishap;
    const flow =
      sourcePort === PEER_SOURCE_PORT ? this.#rxFlow : new IcrcFlow(PEER_ADDRESS, NIC_ADDRESS, sourcePort, 4791);
    sealIcrc(flow, bytes, 0, bytes.length, 0, undefined);
    if (mishap.bit !== undefined) bytes[mishap.bit >> 3] ^= 0x80 >> (mishap.bit & 7);
    this.host.receive({
      bytes,
      offset: 0,
      length: bytes.length,
      source: PEER_ADDRESS,
      sourcePort,
      destination: NIC_ADDRESS,
      destinationPort: 4791,
      ecn: mishap.ecn ?? 0,
      dscp: 0,
      ipId: 0,
    });
  }

  #craft(name: string, psn: number, fields: CraftedFields, payload: Uint8Array): Uint8Array {
    const { va, swapAdd, compare, orig, ...rest } = fields;
    return emitRoce(
      {
        opcode: opcodeOf(this.qp.type, name),
        psn,
        destQpn: this.qp.qpn,
        ...(va !== undefined && { vaHigh: highOfBig(va), vaLow: lowOfBig(va) }),
        ...(swapAdd !== undefined && { swapHigh: highOfBig(swapAdd), swapLow: lowOfBig(swapAdd) }),
        ...(compare !== undefined && { compareHigh: highOfBig(compare), compareLow: lowOfBig(compare) }),
        ...(orig !== undefined && { origHigh: highOfBig(orig), origLow: lowOfBig(orig) }),
        ...rest,
      },
      payload,
    );
  }

  /** A request packet. Address, key and length default to the whole payload at the start of the NIC's region. */
  craftRequest(name: string, at: number, fields: CraftedFields = {}, payload = NOTHING): Uint8Array {
    const defaults = { va: this.mr.addr, rkey: this.mr.rkey, dmaLength: payload.length };
    return this.#craft(name, psnAdd(RQ_START, at), { ...defaults, ...fields }, payload);
  }

  /** The peer sends a request packet. */
  request(name: string, at: number, fields: CraftedFields = {}, payload = NOTHING): void {
    this.deliver(this.craftRequest(name, at, fields, payload));
  }

  /** The peer answers one of the NIC's requests. The syndrome defaults to a plain ACK. */
  response(name: string, at: number, fields: CraftedFields = {}, payload = NOTHING): void {
    this.deliver(this.#craft(name, psnAdd(SQ_START, at), { syndrome: 0x1f, ...fields }, payload));
  }

  /** The peer acknowledges the NIC's request PSN `at`; with a syndrome, a NAK. */
  ack(at: number, syndrome = 0x1f): void {
    this.response('ACKNOWLEDGE', at, { syndrome });
  }

  /** The peer's selective acknowledgement: `at` is missing, bit i of the bitmap says that `at` + 1 + i is there. */
  sack(at: number, bitmap: Uint8Array): void {
    const fields = { opcode: VENDOR_SACK, psn: psnAdd(SQ_START, at), destQpn: this.qp.qpn, syndrome: 0x60 };
    this.deliver(emitRoce(fields, bitmap));
  }

  /** The peer's NIC says that the NIC's packets meet congestion. */
  congestionNotification(mishap: { bit?: number; sourcePort?: number } = {}): void {
    const packet = new Uint8Array(28);
    writeCnp(packet, 0, this.qp.qpn);
    this.deliver(packet, mishap);
  }

  /** Everything sent since the last call, after the NIC has sent all it can at this time. */
  take(): SentPacket[] {
    runToRest(this.events, { untilNs: this.nowNs, eventsMax: 100_000 });
    const sent = this.#sent;
    this.#sent = [];
    return sent;
  }

  /** Lets time pass and returns everything sent meanwhile. */
  advance(ns: number): SentPacket[] {
    runToRest(this.events, { untilNs: this.nowNs + ns, eventsMax: 1_000_000 });
    return this.take();
  }

  /** The clock has jumped by `ns`, as on a machine that was suspended: what was due meanwhile is found to be due now. */
  jump(ns: number): void {
    this.host.nic.onDeadline(this.nowNs + ns);
    this.host.ringDoorbell(this.qp.qpn);
  }

  /** Send completions so far. */
  done(): WorkCompletion[] {
    runToRest(this.events, { untilNs: this.nowNs, eventsMax: 100_000 });
    return this.cq.poll(1024);
  }

  /** Receive completions so far. */
  received(): WorkCompletion[] {
    return this.recvCq.poll(1024);
  }

  async state(): Promise<string> {
    return (await this.qp.query()).state;
  }
}

/** Takes a QP against the test as its peer. */
export async function connectToPeer(
  qp: QueuePair,
  state: 'RESET' | 'INIT' | 'RTR' | 'RTS' = 'RTS',
  overrides: QpAttr = {},
): Promise<void> {
  const attr = {
    accessFlags: Access.REMOTE_ALL,
    maxDestRdAtomic: 4,
    maxRdAtomic: 4,
    minRnrTimer: 12,
    timeout: 14,
    retryCnt: 3,
    rnrRetry: 3,
    pathMtu: MTU,
    remoteSourcePort: PEER_SOURCE_PORT,
    ...overrides,
  };
  if (state === 'RESET') return;
  await qp.modify({ state: 'INIT', pkeyIndex: 0, port: 1, accessFlags: attr.accessFlags });
  if (state === 'INIT') return;
  await qp.modify({
    state: 'RTR',
    av: { address: PEER_ADDRESS, ...attr.av },
    pathMtu: attr.pathMtu,
    destQpn: PEER_QPN,
    rqPsn: RQ_START,
    remoteSourcePort: attr.remoteSourcePort,
    ...(qp.type === 'RC' && { maxDestRdAtomic: attr.maxDestRdAtomic, minRnrTimer: attr.minRnrTimer }),
    ...(attr.recovery !== undefined && { recovery: attr.recovery }),
    ...(attr.inflightPackets !== undefined && { inflightPackets: attr.inflightPackets }),
    ...(attr.rateControl !== undefined && { rateControl: attr.rateControl }),
  });
  if (state === 'RTR') return;
  const { timeout, retryCnt, rnrRetry, maxRdAtomic, totalTimeout } = attr;
  const reliability = {
    ...{ timeout, retryCnt, rnrRetry, maxRdAtomic },
    ...(totalTimeout !== undefined && { totalTimeout }),
  };
  await qp.modify({ state: 'RTS', sqPsn: SQ_START, ...(qp.type === 'RC' && reliability) });
}
