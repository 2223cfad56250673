/**
 * Two simulated hosts on one link, with verbs objects on both sides: the rig of all protocol tests. Time is virtual, and every run ends:
 * at rest, at its limit, or with the verdict `DidNotSettle`.
 */

import { EventQueue } from '../../packages/lab/src/sim/event-queue.js';
import { SimHost } from '../../packages/lab/src/sim/sim-host.js';
import { SimLink } from '../../packages/lab/src/sim/sim-link.js';
import { SeededRandom } from '../../src/core/random.js';
import { IpAddress } from '../../src/packet/address.js';
import { datagramOf, type RxDatagram } from '../../src/port/datagram.js';
import { FaultPlan } from '../../src/port/faults/fault-plan.js';
import type { SecurePort } from '../../src/port/secure/secure-port.js';
import type { RecoveryOptions } from '../../src/retransmit/recovery-schemes.js';
import { Access } from '../../src/verbs/access.js';
import type { CompletionQueue, WorkCompletion } from '../../src/verbs/completion-queue.js';
import { RdmaDevice } from '../../src/verbs/device.js';
import { Estats, type EstatsInit } from '../../src/verbs/estats/estats.js';
import type { MemoryRegion } from '../../src/verbs/memory-region.js';
import type { ProtectionDomain } from '../../src/verbs/protection-domain.js';
import type { QpAttr } from '../../src/verbs/qp-attributes.js';
import type { QueuePair, QueuePairInit } from '../../src/verbs/queue-pair.js';
import { associate, type ProtectedOptions, protect } from './protected-host.js';
import { runToRest } from './virtual-time.js';

export interface PairOptions {
  seed?: number;
  /** Fault rules of docs/faults.md; the hosts are `a` and `b`. */
  faults?: string;
  rateBps?: number;
  delayNs?: number;
  mtu?: number;
  recovery?: RecoveryOptions;
  /** Of side b, if it differs. */
  recoveryB?: RecoveryOptions;
  startPsnA?: number;
  startPsnB?: number;
  /** Overrides for `modify` to RTR and RTS, per side. */
  attrA?: QpAttr;
  attrB?: QpAttr;
  qp?: Partial<QueuePairInit>;
  memoryBytes?: number;
  addresses?: readonly [string, string];
  receiveBudgetPackets?: number;
  /** Telemetry on both sides; `windowNs` is the length of its windows. */
  estats?: Pick<EstatsInit, 'windowNs' | 'groupsMax'>;
  onPacket?: (direction: 'a>b' | 'b>a', bytes: Uint8Array) => void;
  /** Packets are protected, and both sides have the keys. */
  secure?: ProtectedOptions;
  /** Sees what side a sends and receives, as a capture on its wire would: behind its own faults and before its NIC. In the clear. */
  onWireOfA?: (datagram: RxDatagram, nowNs: number) => void;
}

export interface Player {
  host: SimHost;
  device: RdmaDevice;
  pd: ProtectionDomain;
  cq: CompletionQueue;
  recvCq: CompletionQueue;
  qp: QueuePair;
  mr: MemoryRegion;
  startPsn: number;
}

export class Pair {
  readonly events: EventQueue;
  readonly link: SimLink;
  readonly a: Player;
  readonly b: Player;
  /** The stages that protect, if packets are protected. */
  ports: readonly [SecurePort, SecurePort] | undefined;

  constructor(events: EventQueue, link: SimLink, a: Player, b: Player) {
    this.events = events;
    this.link = link;
    this.a = a;
    this.b = b;
  }

  /** Runs virtual time until everything is at rest, or a limit is reached; throws `DidNotSettle` if neither comes. */
  run(limits: { untilNs?: number; eventsMax?: number } = {}): void {
    runToRest(this.events, limits);
  }

  /**
   * Runs until `cq` has given `count` completions, and returns them. Throws if everything comes to rest before, and `DidNotSettle` if
   * nothing does.
   */
  completions(cq: CompletionQueue, count: number, eventsMax?: number): WorkCompletion[] {
    const got: WorkCompletion[] = [];
    const done = () => {
      got.push(...cq.poll(count - got.length));
      return got.length >= count;
    };
    runToRest(this.events, { done, ...(eventsMax !== undefined && { eventsMax }) });
    if (!done()) throw new Error(`everything is at rest after ${got.length} of ${count} completions`);
    return got;
  }
}

const PAIR_DEFAULTS = {
  pkeyIndex: 0,
  port: 1,
  accessFlags: Access.REMOTE_ALL | Access.FLUSH_GLOBAL,
  maxDestRdAtomic: 16,
  maxRdAtomic: 16,
  minRnrTimer: 12,
  timeout: 14,
  retryCnt: 7,
  rnrRetry: 7,
} as const;

/** Takes a QP as far as RTS against the given peer. */
export async function connectQp(
  qp: QueuePair,
  peer: { address: IpAddress; qpn: number; psn: number },
  own: { psn: number; mtu: number; recovery: RecoveryOptions; attr?: QpAttr },
): Promise<void> {
  const attr = { ...PAIR_DEFAULTS, ...own.attr };
  await qp.modify({ state: 'INIT', pkeyIndex: attr.pkeyIndex, port: attr.port, accessFlags: attr.accessFlags });
  await qp.modify({
    state: 'RTR',
    av: { address: peer.address },
    pathMtu: own.mtu,
    destQpn: peer.qpn,
    remoteSourcePort: 'flow',
    rqPsn: peer.psn,
    ...(qp.type === 'RC' && {
      maxDestRdAtomic: attr.maxDestRdAtomic,
      minRnrTimer: attr.minRnrTimer,
      recovery: own.recovery,
    }),
    ...(attr.inflightPackets !== undefined && { inflightPackets: attr.inflightPackets }),
    ...(attr.rateControl !== undefined && { rateControl: attr.rateControl }),
  });
  const { timeout, retryCnt, rnrRetry, maxRdAtomic, totalTimeout } = attr;
  const reliability = {
    timeout,
    retryCnt,
    rnrRetry,
    maxRdAtomic,
    ...(totalTimeout !== undefined && { totalTimeout }),
  };
  await qp.modify({ state: 'RTS', sqPsn: own.psn, ...(qp.type === 'RC' && reliability) });
}

function tap(host: SimHost, onDatagram: (datagram: RxDatagram) => void): void {
  const connect = host.connect.bind(host);
  const receive = host.receive.bind(host);
  host.connect = (transmit) =>
    connect((batch) => {
      onDatagram(datagramOf(batch, 0));
      return transmit(batch);
    });
  host.receive = (datagram) => {
    onDatagram(datagram);
    receive(datagram);
  };
}

export async function createPair(options: PairOptions = {}): Promise<Pair> {
  const random = new SeededRandom(options.seed ?? 1);
  const events = new EventQueue();
  const [addressA, addressB] = (options.addresses ?? ['192.0.2.1', '192.0.2.2']).map((text) => IpAddress.parse(text));
  const host = (name: string, address: IpAddress) =>
    new SimHost({
      address,
      events,
      random: random.stream(`host ${name}`),
      ...(options.receiveBudgetPackets !== undefined && { receiveBudgetPackets: options.receiveBudgetPackets }),
    });
  const hostA = host('a', addressA);
  if (options.onWireOfA !== undefined) tap(hostA, (datagram) => options.onWireOfA?.(datagram, events.nowNs));
  const hostB = host('b', addressB);
  const ports =
    options.secure && ([protect(hostA, events, options.secure), protect(hostB, events, options.secure)] as const);
  if (ports !== undefined) await associate(...ports);
  const link = new SimLink(hostA, hostB, {
    events,
    rateBps: options.rateBps ?? 10e9,
    delayNs: options.delayNs ?? 2_000,
    ...(options.faults !== undefined && { faults: FaultPlan.parse(options.faults, random) }),
    ...(options.onPacket !== undefined && { onPacket: options.onPacket }),
  });
  const player = async (simHost: SimHost, startPsn: number): Promise<Player> => {
    const estats =
      options.estats &&
      new Estats({ nowNs: () => events.nowNs, epochMs: 0, counters: simHost.counters, ...options.estats });
    const device = await RdmaDevice.over(simHost, estats);
    const pd = await device.createPd();
    const cq = await device.createCq(1024);
    const recvCq = await device.createCq(1024);
    const qp = await pd.createQp({ sendCq: cq, recvCq, maxSendSge: 4, maxRecvSge: 4, ...options.qp });
    const mr = await pd.regMr(options.memoryBytes ?? 1 << 20, Access.REMOTE_ALL | Access.FLUSH_GLOBAL | Access.MW_BIND);
    return { host: simHost, device, pd, cq, recvCq, qp, mr, startPsn };
  };
  const a = await player(hostA, options.startPsnA ?? 0x000100);
  const b = await player(hostB, options.startPsnB ?? 0xfffffa);
  const common = { mtu: options.mtu ?? 1024, recovery: options.recovery ?? 'go-back-n' } as const;
  await connectQp(
    a.qp,
    { address: addressB, qpn: b.qp.qpn, psn: b.startPsn },
    { ...common, psn: a.startPsn, ...(options.attrA !== undefined && { attr: options.attrA }) },
  );
  await connectQp(
    b.qp,
    { address: addressA, qpn: a.qp.qpn, psn: a.startPsn },
    {
      ...common,
      recovery: options.recoveryB ?? common.recovery,
      psn: b.startPsn,
      ...(options.attrB !== undefined && { attr: options.attrB }),
    },
  );
  const pair = new Pair(events, link, a, b);
  pair.ports = ports;
  return pair;
}
