/**
 * The live lab behind the dashboard: endpoint A, endpoint B and the switch as processes, with traffic from A to B until
 * the lab is closed. Traffic pauses while no page watches.
 */

import { ChildService, whileAlive } from '@rocev2/command';
import { SWITCH_PROGRAM, type SwitchService } from '@rocev2/lab/internal';
import { PromiseMutex } from 'rocev2/internal/core';
import { nowNs } from 'rocev2/internal/driver';
import type { RecoveryName } from 'rocev2/internal/retransmit';
import type { LabMessages, LabPackets, LabSettings, LabState } from '../messages/lab-messages.js';
import type { DashboardSource } from '../server.js';
import type { LabEndpointService } from './endpoint-process.js';
import { LabHistory } from './lab-history.js';
import { NETWORKS, rateControlOf } from './network.js';
import { packetStory } from './packet-story.js';
import { choices, parseSettings } from './settings.js';

/** Addresses from the range for benchmarks (RFC 2544). */
const ADDRESS_A = '198.18.0.1';
const ADDRESS_B = '198.18.0.2';
const ENDPOINT_PROGRAM = new URL('./endpoint-process.js', import.meta.url);
const SAMPLE_INTERVAL_MS = 250;
/** Traffic stops after this time without a viewer. A page reload takes less. */
const REST_AFTER_NS = 30e9;

/** Four times the distance between losses of `ip-id-lsb=0xff`. */
const MESSAGE_BYTES = 1024 * 1024;
const MTU = 1024;

const FIRST_SETTINGS: LabSettings = {
  op: 'write',
  scheme: 'go-back-0',
  loss: 'ip-id-lsb=0xff',
  link: 'fast',
  cc: 'none',
};

type Target = { readonly remoteAddr: bigint; readonly rkey: number };

export class Lab implements DashboardSource, AsyncDisposable {
  readonly #switch = new ChildService<SwitchService>('the switch', SWITCH_PROGRAM);
  readonly #a = new ChildService<LabEndpointService>('endpoint a', ENDPOINT_PROGRAM);
  readonly #b = new ChildService<LabEndpointService>('endpoint b', ENDPOINT_PROGRAM);
  readonly #queuePairs: number;
  readonly #restAfterNs: number;
  readonly #history: LabHistory;
  readonly #subscribers = new Set<(name: string, data: unknown) => void>();
  #targets: { a: Target; b: Target } | undefined;
  #qpns: { a: readonly number[]; b: readonly number[] } = { a: [], b: [] };
  #settings: LabSettings = FIRST_SETTINGS;
  readonly #mutex = new PromiseMutex();
  #timer: NodeJS.Timeout | undefined;
  #isSampling = false;
  #lookedNs = nowNs();
  #isResting = false;

  readonly documents = {
    state: (): LabState => {
      this.#looked();
      return this.#history.state;
    },
    packets: (): Promise<LabPackets> => {
      this.#looked();
      return this.#mutex.run(() => this.#packets());
    },
  };

  readonly died: Promise<never>;
  #fail: (error: Error) => void = () => {};

  constructor(queuePairs: number, restAfterNs: number = REST_AFTER_NS) {
    this.#queuePairs = queuePairs;
    this.#restAfterNs = restAfterNs;
    this.#history = new LabHistory({ messageBytes: MESSAGE_BYTES, mtu: MTU, queuePairs, choices: choices() });
    const failed = new Promise<never>((_, reject) => {
      this.#fail = reject;
    });
    this.died = whileAlive([this.#switch, this.#a, this.#b], failed);
    this.died.catch(() => {});
  }

  open(): Promise<void> {
    return whileAlive([this.#switch, this.#a, this.#b], this.#open());
  }

  subscribe(send: (name: string, data: unknown) => void): () => void {
    this.#subscribers.add(send);
    this.#looked();
    return () => {
      this.#subscribers.delete(send);
      this.#looked();
    };
  }

  readonly apply = async (change: unknown): Promise<LabSettings> => {
    const wanted = parseSettings(change);
    this.#looked();
    await this.#mutex
      .run(() => this.#change({ ...this.#settings, ...wanted }))
      .catch((error: Error) => {
        this.#fail(error); // Only half of it may have changed.
        throw error;
      });
    return this.#settings;
  };

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all([this.#a.stop(), this.#b.stop(), this.#switch.stop()]);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #open(): Promise<void> {
    await this.#build(this.#settings);
    this.#timer = setInterval(() => void this.#sample(), SAMPLE_INTERVAL_MS);
  }

  async #build(settings: LabSettings): Promise<void> {
    const { switchConfig: config, endpointRateBps: rateBps } = NETWORKS[settings.link];
    const ports = await this.#switch.call('open', { ports: ['a', 'b'], loss: settings.loss, seed: 1, config });
    const common = { rateBps, messageBytes: MESSAGE_BYTES };
    const [a, b] = await Promise.all([
      this.#a.call('open', { address: ADDRESS_A, switchPort: ports['a'], ...common }),
      this.#b.call('open', { address: ADDRESS_B, switchPort: ports['b'], ...common }),
    ]);
    this.#targets = { a, b };
    await this.#connect(settings);
  }

  async #rebuild(settings: LabSettings): Promise<void> {
    this.#history.restarted();
    await Promise.all([this.#a.call('close', {}), this.#b.call('close', {})]);
    await this.#switch.call('close', {});
    await this.#build(settings);
  }

  async #change(wanted: LabSettings): Promise<void> {
    const before = this.#settings;
    const changed = Object.entries(wanted).filter(([name, value]) => before[name as keyof LabSettings] !== value);
    if (changed.length === 0) return;
    if (wanted.link !== before.link) await this.#rebuild(wanted);
    else if (wanted.loss !== before.loss) await this.#switch.call('setLoss', { loss: wanted.loss });
    const isLossAlone = changed.every(([name]) => name === 'loss');
    if (wanted.link === before.link && !isLossAlone) await this.#connect(wanted);
    // The page shows what the change does, not packets from before.
    await Promise.all([this.#a, this.#b].map((end) => end.call('forgetPackets', {})));
    this.#settings = wanted;
    this.#send('event', this.#history.note('settings', changed.map(([name, value]) => `${name}: ${value}`).join(', ')));
  }

  async #connect({ op, scheme, link, cc }: LabSettings): Promise<void> {
    const [flowsA, flowsB] = await Promise.all([
      this.#a.call('renew', { count: this.#queuePairs }),
      this.#b.call('renew', { count: this.#queuePairs }),
    ]);
    const network = NETWORKS[link];
    const { windowPackets, timeout } = network;
    const recovery = scheme as RecoveryName;
    const path = { mtu: MTU, windowPackets, timeout, recovery, rateControl: rateControlOf(network, cc) };
    await Promise.all([
      this.#a.call('connect', { ...path, peerAddress: ADDRESS_B, peerFlows: flowsB }),
      this.#b.call('connect', { ...path, peerAddress: ADDRESS_A, peerFlows: flowsA }),
    ]);
    const { a, b } = this.#targets!;
    if (op === 'read') await this.#b.call('start', { op, target: a });
    else await this.#a.call('start', { op, target: b });
    this.#qpns = { a: flowsA.map(({ qpn }) => qpn), b: flowsB.map(({ qpn }) => qpn) };
    this.#history.reconnected(this.#qpns.a);
  }

  async #sample(): Promise<void> {
    if (this.#isSampling || this.#isResting) return;
    this.#isSampling = true;
    await this.#mutex.run(() => (this.#isWatched ? this.#read() : this.#rest())).catch(() => {});
    this.#isSampling = false;
  }

  get #isWatched(): boolean {
    return this.#subscribers.size > 0 || nowNs() - this.#lookedNs < this.#restAfterNs;
  }

  async #rest(): Promise<void> {
    this.#isResting = true;
    await Promise.all([this.#a, this.#b].map((end) => end.call('renew', { count: this.#queuePairs })));
  }

  #looked(): void {
    this.#lookedNs = nowNs();
    if (!this.#isResting) return;
    this.#isResting = false;
    const goOn = async () => {
      this.#history.restarted();
      await this.#connect(this.#settings);
      this.#send('event', this.#history.note('settings', 'traffic continues: it was paused while no page was open'));
    };
    void this.#mutex.run(goOn).catch(() => {});
  }

  async #read(): Promise<void> {
    const [a, b, ports, queues] = await Promise.all([
      this.#a.call('sample', {}),
      this.#b.call('sample', {}),
      this.#switch.call('counters', {}),
      this.#switch.call('queues', {}),
    ]);
    const settings = this.#settings;
    const { sample, events } = this.#history.add({ settings, a, b, ports, queues });
    for (const event of events) this.#send('event', event);
    this.#send('sample', sample);
    const { failures } = settings.op === 'read' ? b : a;
    if (failures.length > 0) await this.#connect(settings);
  }

  async #packets(): Promise<LabPackets> {
    const [a, b] = await Promise.all([this.#a.call('packets', {}), this.#b.call('packets', {})]);
    return packetStory({ qpns: this.#qpns.a, ...a }, { qpns: this.#qpns.b, ...b });
  }

  #send<N extends keyof LabMessages>(name: N, data: LabMessages[N]): void {
    for (const send of this.#subscribers) send(name, data);
  }
}
