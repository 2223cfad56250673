/**
 * The manager's work on codes: schedules coding of sealed extents, drops replicas once all fragments are durable, and
 * has lost fragments rebuilt. It plans; nodes move the data.
 */

import { NS_PER_MS } from 'rocev2/internal/core';
import type { ManagerState } from '../manager-state.js';
import { type CodedRecord, type KnownExtent, REPLICAS } from '../metadata-schema.js';
import { codedPlace, isDecodable } from './coded-place.js';
import { erasureCode } from './erasure-code.js';
import { fragmentBytes } from './layout.js';

/** Extents coded at a time: each reads a whole replica and sends half as much again. */
const CODINGS_MAX = 2;
/** Fragments made again at a time: each is an incast at its target. */
const REBUILDS_MAX = 4;

export class CodingRepair {
  readonly #manager: ManagerState;
  readonly #sealedNs = new Map<number, number>();

  constructor(manager: ManagerState) {
    this.#manager = manager;
  }

  get waiting(): number {
    return this.#sealedNs.size;
  }

  forget(extents: readonly KnownExtent[]): void {
    if (this.#sealedNs.size === 0) return;
    const there = new Set(extents.map(({ extent }) => extent));
    for (const extent of this.#sealedNs.keys()) if (!there.has(extent)) this.#sealedNs.delete(extent);
  }

  async consider({ extent, value }: KnownExtent): Promise<void> {
    const { live, busy, schema, parts } = this.#manager;
    const { clock, timing, random, code: name } = parts;
    if (name === undefined || this.#manager.coding >= CODINGS_MAX || busy.has(extent)) return;
    const sinceNs = this.#sealedNs.get(extent) ?? clock.nowNs();
    this.#sealedNs.set(extent, sinceNs);
    if (clock.nowNs() - sinceNs < timing.codeAfterMs * NS_PER_MS) return;
    const code = erasureCode(name);
    const shape = { code: name, length: value.sealed!, ...(value.of !== undefined && { of: value.of }) };
    const bytes = fragmentBytes(shape);
    if (bytes * code.total >= REPLICAS * shape.length) return;
    const holders = value.replicas.filter((node) => live.isUp(node));
    if (holders.length === 0) return;
    const targets = live.choose(code.total, { taken: [], avoided: new Set(), bytes });
    if (targets.length < code.total) return;
    busy.add(extent);
    this.#manager.coding++;
    const done = () => {
      busy.delete(extent);
      this.#manager.coding--;
    };
    const holder = holders[random.u32() % holders.length];
    const make = async () => {
      const making = await schema.newMaking();
      const [place] = live.addresses([holder]);
      await parts.nodes.call(place, 'encode', { extent, making, ...shape, targets }, timing.copyMs);
      await this.#take(extent, { code: name, fragments: targets.map(({ node }) => ({ node, making })) });
    };
    make().then(done, done);
  }

  async #take(extent: number, coded: CodedRecord): Promise<void> {
    const { schema, counters } = this.#manager;
    const { key, version, value } = await schema.extent(extent);
    if (await schema.commit([{ key, version, value: { ...value, replicas: [], coded } }])) counters.codings++;
    this.#sealedNs.delete(extent);
  }

  async tend({ extent, key, version, value }: KnownExtent): Promise<void> {
    const { live, busy, schema } = this.#manager;
    const coded = value.coded!;
    const code = erasureCode(coded.code);
    if (value.replicas.length > 0) {
      // A replica returned while too many fragments were away: one of both is enough.
      const { coded: _gone, ...replicated } = value;
      const isEnough = isDecodable(coded, (node) => live.isHeard(node));
      if (!isEnough && isDecodable(coded, (node) => live.isUp(node))) return;
      await schema.commit([{ key, version, value: isEnough ? { ...value, replicas: [] } : replicated }]);
      return;
    }
    const lost = coded.fragments.findIndex(({ node }) => !live.isUp(node));
    if (lost < 0 || this.#manager.copying >= REBUILDS_MAX) return;
    const place = codedPlace(coded, live);
    const there = place.fragments.map(({ fragment }) => fragment);
    if (code.plan([lost], there) === undefined) return;
    const shape = { code: coded.code, length: value.sealed!, ...(value.of !== undefined && { of: value.of }) };
    const taken = coded.fragments.filter((_, k) => k !== lost).map(({ node }) => node);
    const [target] = live.choose(1, { taken, avoided: new Set(), bytes: fragmentBytes(shape) });
    if (target === undefined) return;
    busy.add(extent);
    this.#manager.copying++;
    const done = () => {
      busy.delete(extent);
      this.#manager.copying--;
    };
    const rebuild = async () => {
      const { parts, counters } = this.#manager;
      const making = await schema.newMaking();
      const request = { extent, fragment: lost, making, ...shape, fragments: place.fragments };
      await parts.nodes.call(target, 'rebuild', request, parts.timing.copyMs);
      const now = await schema.extent(extent);
      if (now.value.coded === undefined) return;
      const fragments = now.value.coded.fragments.map((one, k) => (k === lost ? { node: target.node, making } : one));
      const changed = { ...now.value, coded: { ...now.value.coded, fragments } };
      if (await schema.commit([{ key: now.key, version: now.version, value: changed }])) counters.rebuilds++;
    };
    rebuild().then(done, done);
  }
}
