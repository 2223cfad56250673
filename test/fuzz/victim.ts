/**
 * The NIC under attack: queue pairs in every state and of every recovery scheme, with work outstanding, on memory in which each byte
 * that no peer may change is watched.
 */

import { EventQueue } from '../../packages/lab/src/sim/event-queue.js';
import { SimHost } from '../../packages/lab/src/sim/sim-host.js';
import { SeededRandom } from '../../src/core/random.js';
import type { RateControlOptions } from '../../src/dcqcn/rate-controls.js';
import type { QpStateName } from '../../src/memory/ring/enums.js';
import { IpAddress } from '../../src/packet/address.js';
import { checkIcrc, ICRC_OK, IcrcFlow } from '../../src/packet/icrc.js';
import { PARSE_OK, parseRoce, RocePacket } from '../../src/packet/roce.js';
import type { TxBatch } from '../../src/port/datagram.js';
import { entropyOfPort } from '../../src/qp/path.js';
import {
  entropiesOf,
  type RecoveryName,
  recoveryNames,
  recoverySettings,
} from '../../src/retransmit/recovery-schemes.js';
import { Access } from '../../src/verbs/access.js';
import type { CompletionQueue } from '../../src/verbs/completion-queue.js';
import { RdmaDevice } from '../../src/verbs/device.js';
import type { MemoryRegion } from '../../src/verbs/memory-region.js';
import type { ProtectionDomain } from '../../src/verbs/protection-domain.js';
import type { QueuePair } from '../../src/verbs/queue-pair.js';
import { fillRandom } from '../support/dice.js';

export const VICTIM = IpAddress.parse('192.0.2.1');
export const PEERS = [IpAddress.parse('192.0.2.2'), IpAddress.parse('192.0.2.3')] as const;
export const MTU = 256;
/** Of both peers, and of attackers that know it. */
export const PEER_SOURCE_PORT = 0xc000;
export const UD_QKEY = 0x11111111;

const PAGE = 2048;
/** Regions stand in one buffer, a page of nobody's memory before, between and behind them. */
const REGIONS = ['open', 'readOnly', 'noAtomics', 'otherPd', 'local'] as const;
type RegionName = (typeof REGIONS)[number];
const ACCESS: Record<RegionName, number> = {
  open: Access.REMOTE_ALL,
  readOnly: Access.REMOTE_READ,
  noAtomics: Access.LOCAL_WRITE | Access.REMOTE_WRITE,
  otherPd: Access.REMOTE_ALL,
  local: Access.LOCAL_WRITE,
};
/** In `local`: buffers of this size, each with a gap behind it. Receives and READs use them in turn. */
const SLOT_BYTES = 192;
const GAP_BYTES = 64;
const SLOTS = PAGE / (SLOT_BYTES + GAP_BYTES);
const RECEIVES = 8;
const SQ_DEPTH = 16;
/** What a receive takes. */
export const RECEIVE_BYTES = 2 * SLOT_BYTES;
/** What the peer owes for the work that {@link Victim.tend} posts, by PSN: SEND of three packets, READ of two, atomic, WRITE. */
export const OWED = ['ack', 'ack', 'ack', 'first', 'last', 'atomic', 'ack'] as const;
export const READ_LAST_BYTES = 2 * SLOT_BYTES - MTU;

const START_PSN = 0xfffff8;
const PLANNED_STATES: readonly QpStateName[] = ['RTS', 'RTS', 'RTR', 'SQD'];

/** One of each kind, fast enough not to slow the run down. */
const RATE_CONTROLS: Readonly<Record<RecoveryName, RateControlOptions>> = {
  'go-back-n': { name: 'dcqcn', linkRateBps: 100e9, minimumRateBps: 10e9, cnpIntervalNs: 0 },
  'go-back-0': { name: 'none' },
  'selective-repeat': { name: 'patched-timely', linkRateBps: 100e9, minimumRateBps: 10e9 },
  irn: { name: 'hpcc' },
  rack: { name: 'swift' },
  multipath: { name: 'theta-powertcp' },
  melo: { name: 'dctcp' },
  dcp: { name: 'hpcc-pint' },
};

/** A queue pair, what it should be, and what an eavesdropper would know of it. */
export interface Target {
  readonly qp: QueuePair;
  readonly state: QpStateName;
  readonly recovery: RecoveryName;
  readonly peer: IpAddress;
  readonly destQpn: number;
  /** PSN its responder expects, as far as known; PSN its requester will use next. */
  rqPsn: number;
  sqPsn: number;
  /** Opcode of the FIRST packet of a message in progress towards its responder, or -1. */
  message: number;
}

export class Victim {
  readonly host: SimHost;
  readonly events: EventQueue;
  readonly device: RdmaDevice;
  readonly targets: Target[] = [];
  readonly regions: Readonly<Record<RegionName, MemoryRegion>>;
  /** What went wrong. */
  readonly failures: string[] = [];
  /** How often a queue pair had to be set up again because the attack had broken it. */
  broken = 0;
  emitted = 0;
  readonly #memory: Buffer;
  readonly #pristine: Buffer;
  readonly #pd: ProtectionDomain;
  readonly #cq: CompletionQueue;
  readonly #packet = new RocePacket();
  /** Where each emitted destination QPN may be addressed to. */
  readonly #known = new Map<
    number,
    { peer: IpAddress; flows: Map<number, IcrcFlow>; sourcePort: number; ways: number }
  >();
  #slot = 0;

  private constructor(
    host: SimHost,
    events: EventQueue,
    device: RdmaDevice,
    pd: ProtectionDomain,
    cq: CompletionQueue,
    memory: Buffer,
    regions: Record<RegionName, MemoryRegion>,
  ) {
    this.host = host;
    this.events = events;
    this.device = device;
    this.#pd = pd;
    this.#cq = cq;
    this.#memory = memory;
    this.#pristine = Buffer.from(memory);
    this.regions = regions;
    host.connect((batch) => this.#onEmitted(batch));
  }

  static async create(seed: number): Promise<Victim> {
    const random = new SeededRandom(seed);
    const events = new EventQueue();
    const host = new SimHost({ address: VICTIM, events, random: random.stream('victim') });
    const device = await RdmaDevice.over(host);
    const [pd, otherPd] = [await device.createPd(), await device.createPd()];
    const cq = await device.createCq(65_536);
    const memory = device.allocate((2 * REGIONS.length + 1) * PAGE);
    fillRandom(memory, random.stream('memory'));
    const regions = {} as Record<RegionName, MemoryRegion>;
    for (const [i, name] of REGIONS.entries()) {
      const bytes = memory.subarray((2 * i + 1) * PAGE, (2 * i + 2) * PAGE);
      regions[name] = await (name === 'otherPd' ? otherPd : pd).regMr(bytes, ACCESS[name]);
    }
    const victim = new Victim(host, events, device, pd, cq, memory, regions);
    for (const recovery of recoveryNames()) {
      for (const state of PLANNED_STATES) await victim.#addTarget(recovery, state);
    }
    for (const state of ['RESET', 'INIT', 'ERR'] as const) await victim.#addTarget('go-back-n', state);
    for (const state of PLANNED_STATES) await victim.#addTarget('go-back-n', state, 'UC');
    await victim.#addUd();
    return victim;
  }

  async #addTarget(recovery: RecoveryName, state: QpStateName, type: 'RC' | 'UC' = 'RC'): Promise<void> {
    const qp = await this.#pd.createQp({
      type,
      sendCq: this.#cq,
      maxSendWr: SQ_DEPTH,
      maxRecvWr: RECEIVES,
      maxSendSge: 2,
      maxRecvSge: 2,
    });
    const index = this.targets.length;
    const target: Target = {
      qp,
      state,
      recovery,
      peer: PEERS[index % PEERS.length],
      destQpn: 0x1000 + index,
      rqPsn: START_PSN,
      sqPsn: START_PSN,
      message: -1,
    };
    this.targets.push(target);
    await this.#bringUp(target);
  }

  async #addUd(): Promise<void> {
    const qp = await this.#pd.createQp({ type: 'UD', sendCq: this.#cq, maxRecvWr: RECEIVES, maxRecvSge: 2 });
    await qp.modify({ state: 'INIT', pkeyIndex: 0, port: 1, qkey: UD_QKEY });
    await qp.modify({ state: 'RTR' });
    await qp.modify({ state: 'RTS', sqPsn: 0 });
    const target: Target = {
      qp,
      state: 'RTS',
      recovery: 'go-back-n',
      peer: PEERS[0],
      destQpn: 0,
      rqPsn: 0,
      sqPsn: 0,
      message: -1,
    };
    this.targets.push(target);
  }

  async #bringUp(target: Target): Promise<void> {
    const { qp, state, peer, destQpn, recovery } = target;
    if (state === 'RESET') return;
    await qp.modify({ state: 'INIT', pkeyIndex: 0, port: 1, accessFlags: Access.REMOTE_ALL });
    if (state === 'INIT') return;
    await qp.modify({
      state: 'RTR',
      av: { address: peer },
      // Of the other peer it is learned, perhaps from an attacker.
      ...(peer === PEERS[0] && { remoteSourcePort: PEER_SOURCE_PORT }),
      pathMtu: MTU,
      destQpn,
      rqPsn: START_PSN,
      ...(qp.type === 'RC' && { maxDestRdAtomic: 4, minRnrTimer: 1, recovery }),
      rateControl: RATE_CONTROLS[recovery],
    });
    const { sourcePort } = await this.device.command('queryQp', { qpn: qp.qpn });
    const ways = qp.type === 'RC' ? entropiesOf(recoverySettings(recovery)) : 1;
    this.#known.set(destQpn, { peer, flows: new Map(), sourcePort, ways });
    if (state === 'RTR') return;
    const reliability = { timeout: 8, retryCnt: 7, rnrRetry: 7, maxRdAtomic: 4 };
    await qp.modify({ state: 'RTS', sqPsn: START_PSN, ...(qp.type === 'RC' && reliability) });
    if (state === 'ERR') await qp.modify({ state: 'ERR' });
    if (state === 'SQD') {
      this.#postSends(target);
      await qp.modify({ state: 'SQD' });
    }
  }

  /** Between bursts of the attack: polls, posts, sets up again what was broken, and learns the PSNs. */
  async tend(): Promise<void> {
    while (this.#cq.poll(256).length > 0);
    for (const target of this.targets) {
      const { qp, state } = target;
      if (qp.type === 'UD') {
        this.#postReceives(target);
        continue;
      }
      if ((await qp.query()).state !== state) {
        this.broken++;
        await qp.modify({ state: 'RESET' });
        await this.#bringUp(target);
        target.message = -1;
      }
      if (state === 'RTS' || state === 'RTR' || state === 'SQD') this.#postReceives(target);
      if (state === 'RTS') this.#postSends(target);
      const { rqPsn, sqPsn } = await qp.query();
      target.rqPsn = rqPsn;
      target.sqPsn = sqPsn;
    }
  }

  #postReceives({ qp }: Target): void {
    for (let n = 0; n < RECEIVES; n++) {
      try {
        qp.postRecv({ sges: [this.#nextSlot(), this.#nextSlot()] });
      } catch {
        return; // Full.
      }
    }
  }

  #postSends({ qp }: Target): void {
    if (qp.sendRoom < SQ_DEPTH) return;
    const { open } = this.regions;
    const target = { remoteAddr: 0x1000n, rkey: 0x1234 };
    if (qp.type === 'UC') {
      qp.postSend(
        { opcode: 'SEND', sges: [open.sge(0, 3 * MTU - 7)] },
        { opcode: 'RDMA_WRITE_WITH_IMM', immediate: 1, sges: [open.sge(7, MTU + 5)], ...target },
      );
      return;
    }
    qp.postSend(
      { opcode: 'SEND', sges: [open.sge(0, 3 * MTU - 7)] },
      { opcode: 'RDMA_READ', sges: [this.#nextSlot(), this.#nextSlot()], ...target },
      { opcode: 'ATOMIC_FETCH_AND_ADD', sges: [{ ...this.#nextSlot(), length: 8 }], add: 1n, ...target },
      { opcode: 'RDMA_WRITE', sges: [open.sge(7, 5)], ...target },
      { opcode: 'RDMA_READ', sges: [this.#nextSlot()], ...target, fence: true },
    );
  }

  #nextSlot() {
    this.#slot = (this.#slot + 1) % SLOTS;
    return this.regions.local.sge(this.#slot * (SLOT_BYTES + GAP_BYTES), SLOT_BYTES);
  }

  /** Puts back what peers may change, and reports every other byte that is not what it was. */
  checkMemory(): void {
    const allow = (from: number, length: number) => this.#memory.copy(this.#pristine, from, from, from + length);
    const start = (name: RegionName) => (2 * REGIONS.indexOf(name) + 1) * PAGE;
    allow(start('open'), PAGE);
    allow(start('noAtomics'), PAGE);
    for (let slot = 0; slot < SLOTS; slot++) allow(start('local') + slot * (SLOT_BYTES + GAP_BYTES), SLOT_BYTES);
    if (this.#memory.equals(this.#pristine)) return;
    const at = this.#memory.findIndex((byte, i) => byte !== this.#pristine[i]);
    this.#fail(`byte ${at} of memory that nobody may write was changed`);
  }

  /** `received`: datagrams given to the NIC so far. */
  checkCounters(received: number): void {
    const c = this.device.counters();
    const drops = Object.entries(c).reduce((sum, [name, n]) => (name.startsWith('rx_drop_') ? sum + n : sum), 0);
    if (c.rx_packets !== received) this.#fail(`rx_packets is ${c.rx_packets} after ${received} datagrams`);
    if (c.rx_packets !== c.rx_accepted + drops + c.rx_icrc_errors) {
      this.#fail(
        `rx_packets ${c.rx_packets} is not accepted ${c.rx_accepted} + dropped ${drops} + ICRC ${c.rx_icrc_errors}`,
      );
    }
    const reasons = this.host.nic.parseDrops.reduce((sum, n) => sum + n, 0);
    if (reasons !== c.rx_drop_parse)
      this.#fail(`rx_drop_parse is ${c.rx_drop_parse}, its reasons add up to ${reasons}`);
    if (c.tx_packets !== this.emitted) this.#fail(`tx_packets is ${c.tx_packets}, ${this.emitted} were emitted`);
  }

  /** Everything that leaves must be well formed, sealed, and meant for the peer of a queue pair. */
  #onEmitted(batch: TxBatch): number {
    this.emitted++;
    const packet = this.#packet;
    const offset = batch.payloadOffset(0);
    if (parseRoce(batch.slab, offset, batch.lengths[0], packet) !== PARSE_OK) this.#fail('emitted a malformed packet');
    const known = this.#known.get(packet.destQpn);
    if (known === undefined) this.#fail(`emitted a packet to the unknown QP 0x${packet.destQpn.toString(16)}`);
    else if (!batch.destinations[0].equals(known.peer)) this.#fail(`emitted a packet to ${batch.destinations[0]}`);
    else {
      const [sourcePort] = batch.sourcePorts;
      if (
        batch.destinationPorts[0] !== 4791 ||
        (sourcePort !== known.sourcePort && entropyOfPort(known.sourcePort, sourcePort) >= known.ways)
      )
        this.#fail('wrong UDP ports');
      let flow = known.flows.get(sourcePort);
      if (flow === undefined) {
        flow = new IcrcFlow(VICTIM, known.peer, sourcePort, 4791);
        known.flows.set(sourcePort, flow);
      }
      const verdict = checkIcrc(flow, batch.slab, offset, batch.lengths[0], batch.ipIds[0]);
      if (verdict !== ICRC_OK) this.#fail('emitted a packet with a wrong ICRC');
    }
    return this.events.nowNs + 50;
  }

  #fail(what: string): void {
    if (this.failures.length < 10 && !this.failures.includes(what)) this.failures.push(what);
  }
}
