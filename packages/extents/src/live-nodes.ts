/**
 * Which nodes are up, by their reports. A manager that has just started waits for reports before it declares a node
 * dead.
 */

import { type Clock, NS_PER_MS, type RandomSource, randomUnit } from 'rocev2/internal/core';
import type { ManagerMethods, NodePlace } from './messages.js';

export interface LiveNode extends NodePlace {
  readonly domain: string;
  report: ManagerMethods['report'][0] | undefined;
  missing: ReadonlySet<number>;
  missingFragments: ReadonlySet<string>;
  heardNs: number;
}

export class LiveNodes {
  readonly #clock: Clock;
  readonly #random: RandomSource;
  readonly #downMs: number;
  readonly #nodes = new Map<number, LiveNode>();

  constructor(clock: Clock, random: RandomSource, downMs: number) {
    this.#clock = clock;
    this.#random = random;
    this.#downMs = downMs;
  }

  add(node: NodePlace & { readonly domain: string }): LiveNode {
    const nothing = { report: undefined, missing: new Set<number>(), missingFragments: new Set<string>() };
    const live = { ...node, ...nothing, heardNs: this.#clock.nowNs() };
    this.put(live);
    return live;
  }

  put(live: LiveNode): void {
    this.#nodes.set(live.node, live);
  }

  get(node: number): LiveNode | undefined {
    return this.#nodes.get(node);
  }

  remove(live: LiveNode): void {
    if (this.#nodes.get(live.node) === live) this.#nodes.delete(live.node);
  }

  all(): Iterable<LiveNode> {
    return this.#nodes.values();
  }

  isUp(node: number): boolean {
    return this.silentMs(node) < this.#downMs;
  }

  silentMs(node: number): number {
    const live = this.#nodes.get(node);
    return live === undefined ? Number.POSITIVE_INFINITY : (this.#clock.nowNs() - live.heardNs) / NS_PER_MS;
  }

  /**
   * Whether the node has reported to this manager that it has a complete sealed extent. Reports to other managers do
   * not count for releasing other copies.
   */
  hasReported(node: number, extent: number, sealed: number): boolean {
    const report = this.isUp(node) ? this.#nodes.get(node)!.report : undefined;
    return report?.replicas.some((replica) => replica.extent === extent && replica.sealed === sealed) === true;
  }

  isHeard(node: number): boolean {
    return this.isUp(node) && this.#nodes.get(node)!.report !== undefined;
  }

  isWritable(node: number): boolean {
    return this.isHeard(node) && this.#nodes.get(node)!.report!.readOnly === undefined;
  }

  /** Whether the node is up, takes data, and has not said that its replica of an open extent takes no more of it. */
  isAppendable(node: number, extent: number): boolean {
    if (!this.isUp(node)) return false;
    const report = this.#nodes.get(node)!.report;
    if (report === undefined) return true;
    const isStopped = report.replicas.some((replica) => replica.extent === extent && replica.isStopped === true);
    return report.readOnly === undefined && !isStopped;
  }

  addresses(nodes: readonly number[]): NodePlace[] {
    const addresses = nodes.flatMap((node) => this.#nodes.get(node) ?? []);
    return addresses
      .sort((a, b) => Number(this.isUp(b.node)) - Number(this.isUp(a.node)))
      .map(({ node, address }) => ({ node, address }));
  }

  /**
   * Up to `count` writable nodes for replicas or fragments in addition to those on `taken`: spread evenly over fault
   * domains, then where there is space. None of `avoided`.
   */
  choose(
    count: number,
    { taken, avoided, bytes }: { taken: readonly number[]; avoided: ReadonlySet<number>; bytes: number },
  ): NodePlace[] {
    const load = new Map<string | undefined, number>();
    const loadOf = (domain: string | undefined) => load.get(domain) ?? 0;
    for (const node of taken) {
      const domain = this.#nodes.get(node)?.domain;
      load.set(domain, loadOf(domain) + 1);
    }
    const candidates = [...this.#nodes.values()]
      .filter(
        ({ node, report }) =>
          this.isWritable(node) && !taken.includes(node) && !avoided.has(node) && report!.freeBytes >= bytes,
      )
      // Two of equal space are as good: without chance the first one would get everything.
      .map((node) => ({ node, weight: (0.5 + randomUnit(this.#random)) * node.report!.freeBytes }))
      .sort((a, b) => b.weight - a.weight);
    const chosen: NodePlace[] = [];
    while (chosen.length < count && candidates.length > 0) {
      const least = Math.min(...candidates.map(({ node }) => loadOf(node.domain)));
      const [{ node }] = candidates.splice(
        candidates.findIndex((one) => loadOf(one.node.domain) === least),
        1,
      );
      load.set(node.domain, least + 1);
      chosen.push({ node: node.node, address: node.address });
    }
    return chosen;
  }
}
