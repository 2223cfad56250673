/**
 * One seed: makes its plan, runs it on two simulated hosts, and checks everything that can be known: every byte of both regions, every
 * completion, the atomics, the counters, that valid packets were accepted and damaged ones were not, and that it all comes to rest. An audit of side a's wire
 * must find no rule of the transport broken.
 */

import { crc32 } from '../../../../src/core/crc32.js';
import { needsEcho } from '../../../../src/dcqcn/rate-controls.js';
import { senderTraits } from '../../../../src/retransmit/recovery-schemes.js';
import { Access } from '../../../../src/verbs/access.js';
import type { WorkCompletion } from '../../../../src/verbs/completion-queue.js';
import type { MemoryWindow } from '../../../../src/verbs/memory-window.js';
import type { QueuePair } from '../../../../src/verbs/queue-pair.js';
import { capturedDatagram } from '../../../../test/support/captured.js';
import { connectQp, createPair, type Pair, type Player } from '../../../../test/support/pair.js';
import type { ProtectedOptions } from '../../../../test/support/protected-host.js';
import { Audit } from '../../../inspect/src/audit/audit.js';
import { FlowDriver } from './flow-driver.js';
import { finalImage, initialImage, settleFetchAdds } from './image.js';
import { type FlowPlan, type Plan, planSeed, type QpPlan, type Side, withCredit, withPlacement } from './plan.js';

export interface Report {
  readonly seed: number;
  /** Recovery, MTU, link, faults, queue pairs: in one line. */
  readonly description: string;
  /** Empty when everything was right. */
  readonly failures: readonly string[];
  /** Of every packet with its time and direction: the same seed gives the same hash. */
  readonly traceHash: string;
  readonly events: number;
  readonly packets: number;
  readonly lostPackets: number;
  readonly operations: number;
  readonly virtualNs: number;
}

/** No seed needs a tenth of this; a livelock would never end. */
const EVENTS_MAX = 2_000_000;
const FAILURES_MAX = 10;
const SIDES = ['a', 'b'] as const;

/** The same command on every platform. */
export function replayHint(seed: number): string {
  return `replay with: npm run replay -- ${seed}`;
}

/** `tamper` may break the pair on purpose before the traffic starts: tests of the checks themselves do. */
export async function runSeed(seed: number, tamper: (pair: Pair) => void = () => {}): Promise<Report> {
  const plan = planSeed(seed);
  return new SeedRun(plan, await createHosts(plan)).run(tamper);
}

/** The same with packets that are protected, and keys that change every few hundred packets. */
export async function runProtectedSeed(seed: number): Promise<Report> {
  const plan = planSeed(seed);
  return new SeedRun(plan, await createHosts(plan, { rekey: { packets: REKEY_PACKETS } })).run(() => {});
}

/** The same with RCCC in the place of every rate control: each data packet has a trailer, and each acknowledgement behind one. */
export async function runCreditSeed(seed: number): Promise<Report> {
  const plan = withCredit(planSeed(seed));
  return new SeedRun(plan, await createHosts(plan)).run(() => {});
}

/** The same with FLUSH and ATOMIC WRITE among the operations. */
export async function runPlacementSeed(seed: number): Promise<Report> {
  const plan = withPlacement(planSeed(seed));
  return new SeedRun(plan, await createHosts(plan)).run(() => {});
}

/** Far more than a packet can be late in these plans. */
const REKEY_PACKETS = 500;

interface Hosts {
  readonly pair: Pair;
  readonly trace: TraceHash;
  /** Of what side a sends and receives. */
  readonly audit: Audit;
  /** By side, then by connection. */
  readonly qps: Readonly<Record<Side, readonly QueuePair[]>>;
}

class TraceHash {
  #hash = 0;
  readonly #scratch = new Uint8Array(9);
  readonly #view = new DataView(this.#scratch.buffer);

  add(timeNs: number, direction: 'a>b' | 'b>a', bytes: Uint8Array): void {
    this.#view.setFloat64(0, timeNs);
    this.#scratch[8] = direction === 'a>b' ? 1 : 2;
    this.#hash = crc32(bytes, crc32(this.#scratch, this.#hash));
  }

  toString(): string {
    return this.#hash.toString(16).padStart(8, '0');
  }
}

async function createHosts(plan: Plan, secure?: ProtectedOptions): Promise<Hosts> {
  const trace = new TraceHash();
  const audit = new Audit();
  const pair: Pair = await createPair({
    seed: plan.seed,
    recovery: plan.recovery,
    mtu: plan.mtu,
    addresses: plan.addresses,
    rateBps: plan.rateBps,
    delayNs: plan.delayNs,
    startPsnA: plan.qps[0].startPsnA,
    startPsnB: plan.qps[0].startPsnB,
    qp: qpInit(plan.qps[0]),
    attrA: qpAttr(plan, plan.qps[0], 'a'),
    attrB: qpAttr(plan, plan.qps[0], 'b'),
    memoryBytes: Math.max(plan.memoryBytes.a, plan.memoryBytes.b),
    ...(plan.faults !== undefined && { faults: plan.faults }),
    ...(secure !== undefined && { secure }),
    onPacket: (direction, bytes) => trace.add(pair.events.nowNs, direction, bytes),
    onWireOfA: (datagram, nowNs) => audit.take(capturedDatagram(datagram, nowNs)),
  });
  const qps = { a: [pair.a.qp], b: [pair.b.qp] };
  for (const qpPlan of plan.qps.slice(1)) {
    const create = ({ pd, cq, recvCq }: Player) => pd.createQp({ sendCq: cq, recvCq, ...qpInit(qpPlan) });
    const a = await create(pair.a);
    const b = await create(pair.b);
    const own = (side: Side) => ({ mtu: plan.mtu, recovery: plan.recovery, attr: qpAttr(plan, qpPlan, side) });
    const { startPsnA, startPsnB } = qpPlan;
    await connectQp(a, { address: pair.b.host.address, qpn: b.qpn, psn: startPsnB }, { ...own('a'), psn: startPsnA });
    await connectQp(b, { address: pair.a.host.address, qpn: a.qpn, psn: startPsnA }, { ...own('b'), psn: startPsnB });
    qps.a.push(a);
    qps.b.push(b);
  }
  return { pair, trace, audit, qps };
}

function qpInit(plan: QpPlan) {
  return {
    maxSendWr: plan.maxSendWr,
    maxRecvWr: plan.maxRecvWr,
    maxSendSge: plan.maxSge,
    maxRecvSge: plan.maxSge,
    maxInlineBytes: plan.maxInlineBytes,
    signalAll: plan.signalAll,
  };
}

function qpAttr(plan: Plan, qp: QpPlan, side: Side) {
  return {
    timeout: plan.timeout,
    inflightPackets: plan.inflightPackets,
    maxRdAtomic: qp.maxRdAtomic,
    maxDestRdAtomic: qp.maxRdAtomic,
    minRnrTimer: qp.minRnrTimer,
    rateControl: qp.rateControl[side],
  };
}

class SeedRun {
  readonly #plan: Plan;
  readonly #pair: Pair;
  readonly #hosts: Hosts;
  readonly #failures: string[] = [];
  readonly #drivers: FlowDriver[] = [];
  /** By side and QPN. */
  readonly #senders: Record<Side, Map<number, FlowDriver>> = { a: new Map(), b: new Map() };
  readonly #receivers: Record<Side, Map<number, FlowDriver>> = { a: new Map(), b: new Map() };
  readonly #windows: Array<{ qp: QueuePair; player: Player; window: MemoryWindow }> = [];

  constructor(plan: Plan, hosts: Hosts) {
    this.#plan = plan;
    this.#hosts = hosts;
    this.#pair = hosts.pair;
  }

  async run(tamper: (pair: Pair) => void): Promise<Report> {
    const { events } = this.#pair;
    const first = initialImage(this.#plan);
    for (const side of SIDES) this.#pair[side].mr.bytes.set(first[side]);
    for (const flow of this.#plan.flows) await this.#addFlow(flow);
    tamper(this.#pair);

    for (const driver of this.#drivers) driver.start();
    let count = events.run({ eventsMax: EVENTS_MAX, done: () => this.#poll() });
    count += events.run({ eventsMax: EVENTS_MAX - count });
    const virtualNs = events.nowNs;
    this.#poll();
    if (events.nextNs !== Number.POSITIVE_INFINITY) this.#fail(`still running after ${count} events`);
    for (const driver of this.#drivers) if (!driver.isDone) this.#fail(`not done: ${driver}`);
    this.#checkMemory();
    this.#checkCounters();
    if (this.#failures.length === 0) await this.#checkQueuePairs();
    if (this.#failures.length === 0) this.#checkWindows();
    if (this.#pair.ports === undefined) this.#checkAudit(); // It sees packets that came in the clear.
    return this.#report(count, virtualNs);
  }

  async #addFlow(plan: FlowPlan): Promise<void> {
    const { qps } = this.#hosts;
    const [from, to] = [plan.from, plan.to].map((side) => ({ qp: qps[side][plan.qp], mr: this.#pair[side].mr }));
    const windowKeys: number[] = [];
    for (const { offset, length } of plan.windows) {
      const player = this.#pair[plan.to];
      const window = await player.pd.allocMw(2);
      this.#windows.push({ qp: to.qp, player, window });
      if (!this.#bind(to.qp, player, window, offset, length)) this.#fail('a window cannot be bound');
      windowKeys.push(window.rkey);
    }
    const driver = new FlowDriver({
      plan,
      from,
      to,
      windowKeys,
      signalAll: this.#plan.qps[plan.qp].signalAll,
      receiveDepth: this.#plan.qps[plan.qp].maxRecvWr,
      events: this.#pair.events,
      fail: (what) => this.#fail(what),
    });
    this.#drivers.push(driver);
    this.#senders[plan.from].set(from.qp.qpn, driver);
    this.#receivers[plan.to].set(to.qp.qpn, driver);
  }

  #bind(qp: QueuePair, player: Player, mw: MemoryWindow, offset: number, length: number): boolean {
    const { cq, mr } = player;
    qp.postSend({ opcode: 'BIND_MW', mw, rkey: mw.nextRkey(), mr, offset, length, access: Access.REMOTE_WRITE });
    return this.#pair.completions(cq, 1)[0]?.status === 0;
  }

  /** Hands completions to their flows. True when all is done, or something is wrong. */
  #poll(): boolean {
    for (const side of SIDES) {
      const { cq, recvCq } = this.#pair[side];
      for (let wc = cq.pollOne(); wc !== undefined; wc = cq.pollOne()) this.#deliver(this.#senders[side], wc, true);
      for (let wc = recvCq.pollOne(); wc !== undefined; wc = recvCq.pollOne())
        this.#deliver(this.#receivers[side], wc, false);
    }
    return this.#failures.length > 0 || this.#drivers.every((driver) => driver.isDone);
  }

  #deliver(drivers: Map<number, FlowDriver>, wc: WorkCompletion, isSend: boolean): void {
    const driver = drivers.get(wc.qpn);
    if (driver === undefined) this.#fail(`a completion of a QP that has no flow: ${wc.opcode}`);
    else if (isSend) driver.onSendCompletion(wc);
    else driver.onReceiveCompletion(wc);
  }

  #checkMemory(): void {
    const actual = { a: this.#pair.a.mr.bytes, b: this.#pair.b.mr.bytes };
    const expected = finalImage(this.#plan);
    for (const wrong of settleFetchAdds(this.#plan, expected, actual)) this.#fail(wrong);
    for (const side of SIDES) {
      const size = expected[side].length;
      if (actual[side].subarray(0, size).equals(expected[side])) continue;
      const at = expected[side].findIndex((byte, i) => byte !== actual[side][i]);
      this.#fail(`memory of ${side} is wrong from byte ${at} of ${size} on`);
    }
  }

  #checkCounters(): void {
    const { link } = this.#pair;
    for (const side of SIDES) {
      const c = this.#pair[side].device.counters();
      const drops = Object.entries(c).reduce((sum, [name, n]) => (name.startsWith('rx_drop_') ? sum + n : sum), 0);
      this.#equal(`${side}: rx_packets`, c.rx_packets, c.rx_accepted + drops + c.rx_icrc_errors);
      const out = link.counters[side === 'a' ? 'a>b' : 'b>a'];
      const into = link.counters[side === 'a' ? 'b>a' : 'a>b'];
      const isProtected = this.#pair.ports !== undefined;
      this.#equal(`${side}: tx_packets`, isProtected ? c.secure_tx_sealed : c.tx_packets, out.packets);
      // Every damaged packet is refused, and no other.
      if (isProtected) this.#equal(`${side}: secure_drop_forged`, c.secure_drop_forged, into.faults_corrupted);
      const accepted = c.rx_packets - (isProtected ? 0 : into.faults_corrupted);
      this.#damageRefused(`${side}: rx_accepted`, c.rx_accepted, accepted, into.faults_corrupted);
      // Those that came twice, that were damaged, or that told of a key and carried nothing, have not reached the NIC.
      const kept = isProtected
        ? c.secure_drop_replayed + c.secure_drop_forged + (c.secure_rx_opened - c.rx_packets)
        : 0;
      const arrivedAtMost = into.packets - into.dropped + into.faults_duplicated - kept;
      if (c.rx_packets > arrivedAtMost || c.rx_packets < arrivedAtMost - into.faults_delayed) {
        this.#fail(
          `${side}: rx_packets is ${c.rx_packets}, the link delivered ${arrivedAtMost} less those it still holds`,
        );
      }
      this.#equal(`${side}: req_cqe_error + resp_cqe_error`, c.req_cqe_error + c.resp_cqe_error, 0);
      this.#equal(`${side}: resp_nak_fatal`, c.resp_nak_fatal, 0);
    }
  }

  /** `count` is `wanted`; where packets have trailers, which the ICRC does not cover, up to `spared` more: damage there is no damage to the packet. */
  #damageRefused(what: string, count: number, wanted: number, spared: number): void {
    const { recovery, qps } = this.#plan;
    const hasTrailers =
      senderTraits(recovery).wantsEcho ||
      qps.some(({ rateControl }) => SIDES.some((side) => needsEcho(rateControl[side])));
    const isCovered = !hasTrailers || this.#pair.ports !== undefined;
    const isSpared = !isCovered && Math.abs(count - wanted) <= Math.abs(spared) && (count - wanted) * spared >= 0;
    if (!isSpared) this.#equal(what, count, wanted);
  }

  /** Damage on the wire is found as damage (rule 11), and nothing else is found: but that go-back-0 asks for READs anew in other parts. */
  #checkAudit(): void {
    const { findings, packets, choices } = this.#hosts.audit.report();
    // The responder would count the parts of such a READ as messages (rule 40).
    const part = choices.find(({ rule }) => rule === 63);
    if (part !== undefined && this.#plan.recovery === 'selective-repeat') {
      this.#fail(`audit: packet ${part.packet}: ${part.choice}`);
    }
    const expected = new Set(this.#plan.recovery === 'go-back-0' ? [11, 61, 62, 63] : [11]);
    for (const { rule, verdict, text, packets } of findings) {
      if (verdict === 'violation' && !expected.has(rule))
        this.#fail(`audit: rule ${rule}, packets ${packets}: ${text}`);
    }
    if (packets.roce === 0) this.#fail('audit: no packets');
    const { faults_corrupted: corrupted } = this.#pair.link.counters['b>a'];
    this.#damageRefused('audit: packets that are dropped', packets.unsound, corrupted, -corrupted);
  }

  /** Both ends must have arrived at the same PSNs. */
  async #checkQueuePairs(): Promise<void> {
    const { qps } = this.#hosts;
    for (let k = 0; k < qps.a.length; k++) {
      const [a, b] = [await qps.a[k].query(), await qps.b[k].query()];
      if (a.state !== 'RTS' || b.state !== 'RTS') this.#fail(`QP ${k} is in ${a.state} at a, ${b.state} at b`);
      this.#equal(`QP ${k}: PSN expected at b`, b.rqPsn, a.sqPsn);
      this.#equal(`QP ${k}: PSN expected at a`, a.rqPsn, b.sqPsn);
    }
  }

  /** A type 2 window can be bound only when it is not bound: each must have been invalidated. */
  #checkWindows(): void {
    for (const { qp, player, window } of this.#windows) {
      if (!this.#bind(qp, player, window, 0, 1)) this.#fail(`window 0x${window.rkey.toString(16)} was not invalidated`);
    }
  }

  #equal(what: string, found: number, expected: number): void {
    if (found !== expected) this.#fail(`${what} is ${found}, should be ${expected}`);
  }

  #fail(what: string): void {
    if (this.#failures.length < FAILURES_MAX) this.#failures.push(what);
  }

  #report(events: number, virtualNs: number): Report {
    const plan = this.#plan;
    const { counters } = this.#pair.link;
    return {
      seed: plan.seed,
      description:
        `${plan.recovery} mtu ${plan.mtu} ${(plan.rateBps / 1e9).toFixed(1)} Gb/s ${plan.delayNs} ns, ` +
        `${plan.qps.length} QPs, ${plan.inflightPackets} in flight, timeout ${plan.timeout}, faults ${plan.faults ?? 'none'}`,
      failures: this.#failures,
      traceHash: this.#hosts.trace.toString(),
      events,
      packets: counters['a>b'].packets + counters['b>a'].packets,
      lostPackets: counters['a>b'].dropped + counters['b>a'].dropped,
      operations: plan.flows.reduce((sum, flow) => sum + flow.operations.length, 0),
      virtualNs,
    };
  }
}
