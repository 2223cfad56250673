import { NS_PER_MS } from 'rocev2/internal/core';
import { CodingRepair } from './coding/coding-repair.js';
import { type ExtentRecord, type KnownExtent, REPLICAS, type Versioned } from './metadata-schema.js';
import type { StreamManager } from './stream-manager.js';

/** Copies at a time: each is an incast of one at its target. */
const COPIES_MAX = 4;

export class RepairLoop {
  readonly #manager: StreamManager;
  readonly #coding: CodingRepair;
  #isStopped = false;
  #stopTimer: () => void = () => {};

  constructor(manager: StreamManager) {
    this.#manager = manager;
    this.#coding = new CodingRepair(manager);
  }

  start(): void {
    const { clock, timing } = this.#manager.parts;
    this.#stopTimer = clock.wakeAt(clock.nowNs() + timing.repairMs * NS_PER_MS, async () => {
      await this.look().catch(() => {});
      if (!this.#isStopped) this.start();
    });
  }

  stop(): void {
    this.#isStopped = true;
    this.#stopTimer();
  }

  async look(): Promise<void> {
    const { schema, live, metadataCheck } = this.#manager;
    if (!metadataCheck.isVerified) return;
    const extents = await schema.extents();
    await this.#forgetNodes(extents);
    this.#coding.forget(extents);
    this.#forgetWaiting(extents);
    const used = new Set((await schema.streams()).flatMap(({ value }) => value.extents));
    for (const record of extents) {
      const { extent, value } = record;
      if (this.#manager.busy.has(extent)) continue;
      if (!used.has(extent)) await this.#delete(record);
      else if (value.sealed === undefined) {
        if (!value.replicas.every((node) => live.isAppendable(node, extent)))
          await this.#manager.seal(extent).catch(() => {});
      } else if (value.coded !== undefined) await this.#coding.tend(record);
      else {
        await this.#restore(record);
        await this.#coding.consider(record);
      }
    }
  }

  /**
   * Nodes that are gone permanently, and their content: a cluster of machines that come and go would remember
   * all of them. One that comes back joins again.
   */
  async #forgetNodes(extents: readonly KnownExtent[]): Promise<void> {
    const { schema, live, parts } = this.#manager;
    const gone = [...live.all()].filter(({ node }) => live.silentMs(node) >= parts.timing.forgetMs);
    if (gone.length === 0) return;
    const named = new Set(extents.flatMap(({ value }) => [...value.replicas, ...fragmentNodes(value)]));
    for (const place of gone) {
      if (named.has(place.node)) continue;
      const record = await schema.node(place.node);
      // A concurrent join writes another version.
      const removal = record && [{ key: record.key, version: record.version }];
      if (removal === undefined || (await schema.commit(removal))) live.remove(place);
    }
  }

  #forgetWaiting(extents: readonly KnownExtent[]): void {
    const { waiting } = this.#manager;
    if (waiting.size === 0) return;
    const there = new Set(extents.map(({ extent }) => extent));
    for (const extent of waiting.keys()) if (!there.has(extent)) waiting.delete(extent);
  }

  async #delete({ key, version }: Versioned<ExtentRecord>): Promise<void> {
    if (await this.#manager.schema.commit([{ key, version }])) this.#manager.counters.deleted++;
  }

  async #restore(record: KnownExtent): Promise<void> {
    const { live, busy, schema } = this.#manager;
    const { extent, key, version, value } = record;
    const there = value.replicas.filter((node) => live.isUp(node));
    if (there.length >= REPLICAS && value.replicas.length > REPLICAS) {
      const told = there.filter((node) => live.hasReported(node, extent, value.sealed!)).slice(0, REPLICAS);
      if (told.length === REPLICAS) await schema.commit([{ key, version, value: { ...value, replicas: told } }]);
    }
    if (there.length === 0 || there.length >= REPLICAS || this.#manager.copying >= COPIES_MAX) return;
    const [target] = live.choose(1, { taken: value.replicas, avoided: new Set(), bytes: value.sealed! });
    if (target === undefined) return;
    this.#manager.copying++;
    busy.add(extent);
    const done = () => {
      this.#manager.copying--;
      busy.delete(extent);
    };
    this.#copy(extent, value, target).then(done, done);
  }

  async #copy(
    extent: number,
    { sealed, epoch, replicas, of }: ExtentRecord,
    target: { node: number; address: string },
  ): Promise<void> {
    const { parts, live, schema, counters } = this.#manager;
    const origin = of !== undefined && { of };
    const request = { extent, epoch, length: sealed!, from: live.addresses(replicas), ...origin };
    await parts.nodes.call(target, 'copy', request, parts.timing.copyMs);
    const { key, version, value } = await schema.extent(extent);
    const there = value.replicas.filter((node) => live.isHeard(node));
    // Who is down is left out once there are enough without it.
    const kept = there.length + 1 >= REPLICAS ? there : value.replicas;
    const isAdded = await schema.commit([
      { key, version, value: { ...value, replicas: [...new Set([...kept, target.node])] } },
    ]);
    if (isAdded) counters.copies++;
  }
}

function fragmentNodes({ coded }: ExtentRecord): number[] {
  return coded?.fragments.map(({ node }) => node) ?? [];
}
