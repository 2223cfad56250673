/**
 * Reconciles nodes' reports with the records: missing replicas leave the record, unneeded ones are deleted on the node,
 * and returning ones count again if they are of use.
 */

import { RpcError } from '@rocev2/rpc';
import { isDecodable } from './coding/coded-place.js';
import { fragmentKey } from './coding/layout.js';
import { checkFolder, refuseFolder } from './folder-marks.js';
import type { ManagerState } from './manager-state.js';
import type { ManagerMethods, NodePlace } from './messages.js';
import {
  type ExtentRecord,
  type KnownExtent,
  NOBODY,
  type NodeRecord,
  REPLICAS,
  type Versioned,
} from './metadata-schema.js';

export class NodeReports {
  readonly #manager: ManagerState;

  constructor(manager: ManagerState) {
    this.#manager = manager;
  }

  /** Rejects with CONFLICT if it has to join first. */
  async take(report: ManagerMethods['report'][0]): Promise<ManagerMethods['report'][1]> {
    const { node } = report;
    const live = this.#manager.live.get(node);
    const known = live && (await this.#manager.schema.node(node));
    if (live === undefined || known?.value.lives !== report.lives)
      throw new RpcError('CONFLICT', `node ${node} has to join`);
    live.heardNs = this.#manager.parts.clock.nowNs();
    this.#manager.metadataCheck.hear(node, report.seen);
    await this.#noteMark(known, report);
    const { version } = this.#manager.history;
    if (!this.#manager.metadataCheck.isVerified) {
      live.report = report;
      return { version, remove: [], spare: [], removeFragments: [] };
    }
    const reported = new Map(report.replicas.map(({ extent, sealed }) => [extent, sealed]));
    const fragments = new Map(report.fragments.map((id) => [fragmentKey(id), id]));
    const remove: number[] = [];
    const spare: number[] = [];
    const missing = new Set<number>();
    const missingFragments = new Set<string>();
    for (const record of await this.#manager.schema.extents()) {
      const { extent, value } = record;
      const isHere = reported.has(extent);
      const sealed = reported.get(extent);
      reported.delete(extent);
      if (this.#manager.busy.has(extent)) continue;
      for (const key of this.#fragmentsAt(record, node)) {
        if (fragments.delete(key)) continue;
        if (live.missingFragments.has(key)) await this.#lostFragments(record, node);
        else missingFragments.add(key);
      }
      if (value.replicas.includes(node)) {
        // Where it fails, the next report asks again.
        if (isHere) void this.#checkReplica(record, live, sealed).catch(() => {});
        else if (live.missing.has(extent)) await this.#lost(record, node);
        else missing.add(extent); // The report may be older than the replica: the next one decides.
      } else if (isHere) {
        const use = await this.#useOf(record, live, sealed);
        if (use === 'spare') spare.push(extent);
        else if (use === 'stale') remove.push(extent);
      }
    }
    for (const extent of reported.keys()) if (!this.#manager.busy.has(extent)) remove.push(extent);
    const removeFragments = [...fragments.values()].filter(({ extent }) => !this.#manager.busy.has(extent));
    // The records were read after the report was made; if no other manager led then, anything in none of them and not
    // in progress here will never be recorded.
    await this.#manager.parts.confirmLead();
    live.report = report;
    live.missing = missing;
    live.missingFragments = missingFragments;
    live.heardNs = this.#manager.parts.clock.nowNs();
    return { version, remove, spare, removeFragments };
  }

  async #noteMark(known: Versioned<NodeRecord>, report: ManagerMethods['report'][0]): Promise<void> {
    const { mark, node } = report;
    if (mark === undefined || (known.value.mark === mark && known.value.refused === undefined)) return;
    const refusal = this.#manager.metadataCheck.isRebuilding ? undefined : checkFolder(known.value, report);
    if (refusal !== undefined) throw await refuseFolder(this.#manager, report, refusal);
    const { refused: _, ...value } = known.value;
    const isNoted = await this.#manager.schema.commit([
      { key: known.key, version: known.version, value: { ...value, mark } },
    ]);
    if (!isNoted) throw new RpcError('BUSY', `another node ${node} is joining`);
  }

  #fragmentsAt({ extent, value }: KnownExtent, node: number): string[] {
    const ids = value.coded?.fragments.map((one, fragment) => ({ extent, fragment, ...one })) ?? [];
    return ids.filter((id) => id.node === node).map(fragmentKey);
  }

  async #lostFragments({ key, version, value }: KnownExtent, node: number): Promise<void> {
    const fragments = value.coded!.fragments.map((one) => (one.node === node ? { node: NOBODY, making: 0 } : one));
    await this.#manager.schema.commit([{ key, version, value: { ...value, coded: { ...value.coded!, fragments } } }]);
  }

  /** A replica that was whole and is not comes from an old copy of its disk, or has lost what it had synced. */
  async #checkReplica(record: KnownExtent, place: NodePlace, sealed: number | undefined): Promise<void> {
    if ((await this.#sealThere(record, place, sealed)) === false) await this.#lost(record, place.node);
  }

  /** Undefined: it is not known whether it is now; false: it cannot be. */
  async #sealThere(
    { extent, value }: KnownExtent,
    place: NodePlace,
    sealed: number | undefined,
  ): Promise<boolean | undefined> {
    if (value.sealed === undefined) return undefined;
    if (sealed !== undefined) return sealed === value.sealed;
    const request = { extent, epoch: value.epoch, length: value.sealed };
    const answer = await this.#manager.parts.nodes
      .call(place, 'seal', request, this.#manager.parts.timing.callMs)
      .catch(() => undefined);
    return answer?.isSealed;
  }

  /**
   * What a replica that the record does not name is good for. `spare`: the extent is whole without it. `stale`: it is
   * not complete.
   */
  async #useOf(
    record: KnownExtent,
    place: NodePlace,
    sealed: number | undefined,
  ): Promise<'needed' | 'spare' | 'stale'> {
    const { extent, key, version, value } = record;
    if (value.sealed === undefined) return 'needed'; // It is being sealed, and then it will be known who is needed.
    if (value.coded !== undefined && isDecodable(value.coded, (node) => this.#manager.live.isUp(node)))
      return isDecodable(value.coded, (node) => this.#manager.live.isHeard(node)) ? 'spare' : 'needed';
    const { sealed: length } = value;
    const there = value.replicas.filter((node) => this.#manager.live.isUp(node));
    if (there.length >= REPLICAS) {
      const whole = there.filter((node) => this.#manager.live.hasReported(node, extent, length));
      return whole.length < REPLICAS ? 'needed' : 'spare';
    }
    if ((await this.#sealThere(record, place, sealed)) !== true) return 'stale';
    await this.#manager.schema.commit([
      { key, version, value: { ...value, replicas: [...value.replicas, place.node] } },
    ]);
    return 'needed';
  }

  /** A node no longer has a replica. An open extent is sealed by `RepairLoop`. */
  async #lost({ key, version, value }: Versioned<ExtentRecord>, node: number): Promise<void> {
    if (value.sealed === undefined) return;
    await this.#manager.schema.commit([
      { key, version, value: { ...value, replicas: value.replicas.filter((one) => one !== node) } },
    ]);
  }
}
