/**
 * Two simulated hosts, each with a connection manager on virtual time, and a link on which single management datagrams can be lost or
 * doubled by name. Unlike the pair of the queue pair tests it runs promises between events.
 */

import { EventQueue } from '../../packages/lab/src/sim/event-queue.js';
import { SimHost } from '../../packages/lab/src/sim/sim-host.js';
import { virtualClock } from '../../packages/lab/src/sim/virtual-clock.js';
import type { CmListener } from '../../src/cm/cm-listener.js';
import { ConnectionManager, type ConnectionManagerOptions } from '../../src/cm/connection-manager.js';
import { type CmMad, type MessageName, parseMad } from '../../src/cm/messages.js';
import { SeededRandom } from '../../src/core/random.js';
import { IpAddress } from '../../src/packet/address.js';
import { datagramOf, type TxBatch } from '../../src/port/datagram.js';
import { Access } from '../../src/verbs/access.js';
import type { CompletionQueue } from '../../src/verbs/completion-queue.js';
import { RdmaDevice } from '../../src/verbs/device.js';
import type { MemoryRegion } from '../../src/verbs/memory-region.js';
import type { ProtectionDomain } from '../../src/verbs/protection-domain.js';
import type { QueuePair } from '../../src/verbs/queue-pair.js';
import { forgeMad } from '../attack/toolkit/forged-requests.js';
import { until } from '../support/virtual-time.js';

const FLIGHT_NS = 10_000;
const BTH_DETH_BYTES = 20;
const ICRC_BYTES = 4;
const UD_SEND_ONLY = 0x64;

/** What becomes of the `nth` (from 1) datagram of this name from this side; undefined: it passes. */
export type Fate = 'lose' | 'double' | 'corrupt' | undefined;
export type Fates = (from: 'a' | 'b', name: MessageName, nth: number) => Fate;

export class Side {
  readonly host: SimHost;
  readonly device: RdmaDevice;
  readonly cm: ConnectionManager;
  readonly pd: ProtectionDomain;
  readonly cq: CompletionQueue;
  readonly mr: MemoryRegion;

  constructor(
    host: SimHost,
    device: RdmaDevice,
    cm: ConnectionManager,
    pd: ProtectionDomain,
    cq: CompletionQueue,
    mr: MemoryRegion,
  ) {
    this.host = host;
    this.device = device;
    this.cm = cm;
    this.pd = pd;
    this.cq = cq;
    this.mr = mr;
  }

  get address(): IpAddress {
    return this.device.address;
  }

  newQp(): Promise<QueuePair> {
    return this.pd.createQp({ sendCq: this.cq, maxSendWr: 4, maxRecvWr: 4 });
  }
}

export class TwoManagers {
  readonly events = new EventQueue();
  /** Names of the datagrams sent, as `a REQ`. */
  readonly log: string[] = [];
  fates: Fates = () => undefined;
  /** Takes management datagrams for addresses where neither side is; by default they are lost. */
  onStray: (to: IpAddress, mad: CmMad) => void = () => {};
  /** DSCPs of what each side has sent. */
  readonly dscps = { a: new Set<number>(), b: new Set<number>() };
  a!: Side;
  b!: Side;
  readonly #random: SeededRandom;
  readonly #seen = new Map<string, number>();
  readonly #addresses: readonly [string, string];

  private constructor(seed: number, addresses: readonly [string, string]) {
    this.#random = new SeededRandom(seed);
    this.#addresses = addresses;
  }

  static async create(
    options: { seed?: number; addresses?: readonly [string, string]; dscpOfA?: number } & Pick<
      ConnectionManagerOptions,
      'timing' | 'limits' | 'claimedAddress'
    > = {},
  ): Promise<TwoManagers> {
    const { seed = 1, addresses = ['192.0.2.1', '192.0.2.2'], dscpOfA = 0, ...managers } = options;
    const world = new TwoManagers(seed, addresses);
    world.a = await world.#newSide('a', 'first', { ...managers, dscp: dscpOfA });
    world.b = await world.#newSide('b', 'first', managers);
    return world;
  }

  /** A new process at the address of `a`; the old one is gone without a word. `life` names its random numbers. */
  async restartA(life: string): Promise<void> {
    this.a.host.connect(() => this.events.nowNs);
    this.a = await this.#newSide('a', life, {});
  }

  async #newSide(name: 'a' | 'b', life: string, options: ConnectionManagerOptions): Promise<Side> {
    const host = new SimHost({
      address: IpAddress.parse(this.#addresses[name === 'a' ? 0 : 1]),
      events: this.events,
      // The QPNs of a life repeat, as those of a restarted kernel do.
      random: this.#random.stream(`host ${name}`),
    });
    host.connect((batch) => this.#carry(name, batch));
    const device = await RdmaDevice.over(host);
    const cm = await ConnectionManager.open(device, {
      clock: virtualClock(this.events),
      random: this.#random.stream(`cm ${name} ${life}`),
      ...options,
    });
    const cq = await device.createCq(1024);
    const pd = await device.createPd();
    const mr = await pd.regMr(4096, Access.REMOTE_ALL);
    return new Side(host, device, cm, pd, cq, mr);
  }

  #carry(from: 'a' | 'b', batch: TxBatch): number {
    const datagram = datagramOf(batch, 0);
    const { bytes } = datagram;
    this.dscps[from].add(datagram.dscp);
    const fate = this.#fateOf(from, bytes);
    if (fate === 'corrupt') bytes[BTH_DETH_BYTES + 24] ^= 1;
    const to = from === 'a' ? this.b : this.a;
    if (!datagram.destination.equals(to.address)) {
      const mad = madOf(bytes);
      if (mad !== undefined) this.onStray(datagram.destination, mad);
      return this.events.nowNs + 1000;
    }
    const copies = fate === 'lose' ? 0 : fate === 'double' ? 2 : 1;
    for (let copy = 1; copy <= copies; copy++) {
      this.events.after(copy * FLIGHT_NS, () => to.host.receive({ ...datagram, bytes: bytes.slice() }));
    }
    return this.events.nowNs + 1000;
  }

  #fateOf(from: 'a' | 'b', bytes: Uint8Array): Fate {
    const mad = madOf(bytes);
    if (mad === undefined) return undefined;
    const label = `${from} ${mad.name}`;
    this.log.push(label);
    const nth = (this.#seen.get(label) ?? 0) + 1;
    this.#seen.set(label, nth);
    return this.fates(from, mad.name, nth);
  }

  /** A datagram to QP1 of `b`, as from `source`: a stranger, or one who only says so. */
  forge(source: IpAddress, mad: Uint8Array): void {
    const path = { from: source.text, sourcePort: 0xc000, to: this.b.address.text };
    const bytes = forgeMad(path, mad);
    this.b.host.receive({
      bytes,
      offset: 0,
      length: bytes.length,
      source,
      sourcePort: path.sourcePort,
      destination: this.b.address,
      destinationPort: 4791,
      ecn: 0,
      dscp: 0,
      ipId: 0,
    });
  }

  /** Runs virtual time, and promises between its events, until `outcome` has settled. */
  until<T>(outcome: Promise<T>): Promise<T> {
    return until(this.events, outcome);
  }

  /** Runs everything that happens within `ns`. */
  async pass(ns: number): Promise<void> {
    const endNs = this.events.nowNs + ns;
    await this.until(new Promise<void>((resolve) => this.events.at(endNs, resolve)));
  }

  /** Accepts `count` requests on fresh QPs of `b`. */
  async acceptAll(listener: CmListener, count: number) {
    const accepted = [];
    for (let i = 0; i < count; i++) {
      const request = await listener.next();
      accepted.push(request.accept(await this.b.newQp()));
    }
    return Promise.all(accepted);
  }

  /** One connection from `a` to a listener of `b` on port 7174. */
  async connectOne() {
    const listener = this.b.cm.listen(7174);
    const accepting = this.acceptAll(listener, 1);
    const qp = await this.a.newQp();
    const [active, [passive]] = await this.until(Promise.all([this.a.cm.connect(this.b.address, 7174, qp), accepting]));
    listener.close();
    return { active, passive };
  }

  /** Sends 16 bytes from one side to the other over connected QPs. */
  async exchange(from: { side: Side; qp: QueuePair }, to: { side: Side; qp: QueuePair }): Promise<void> {
    to.qp.postRecv({ sges: [to.side.mr.sge(0, 16)] });
    from.qp.postSend({ opcode: 'SEND', sges: [from.side.mr.sge(16, 16)] });
    const [sent, received] = await this.until(Promise.all([from.side.cq.next(), to.side.cq.next()]));
    if (sent.status !== 0 || received.status !== 0 || received.byteLen !== 16) throw new Error('the exchange failed');
  }
}

function madOf(bytes: Uint8Array): CmMad | undefined {
  if (bytes[0] !== UD_SEND_ONLY) return undefined;
  const mad = parseMad(bytes.subarray(BTH_DETH_BYTES, bytes.length - ICRC_BYTES));
  return typeof mad === 'string' ? undefined : mad;
}
