/**
 * Whether the metadata of a manager may be an older copy: a restored backup of its folder, or of etcd. Nodes remember
 * the last state of the metadata that a manager has shown them. A manager that has started decides nothing before
 * enough nodes have confirmed its metadata, and nothing any more once a node has seen a later state.
 */

import { RpcError } from '@rocev2/rpc';
import { type Clock, NS_PER_MS } from 'rocev2/internal/core';
import type { LiveNodes } from './live-nodes.js';
import type { MetadataHistory, MetadataVersion } from './metadata-history.js';
import { REPLICAS } from './metadata-schema.js';

export interface MetadataCheckParts {
  readonly history: MetadataHistory;
  readonly live: LiveNodes;
  readonly clock: Clock;
  /** Requests wait this long for nodes. */
  readonly waitMs: number;
  /** The operator says that the metadata is the latest: the number of nodes does not matter. */
  readonly isTrusted: boolean;
}

/** What is known of the metadata. */
export interface MetadataState {
  /** `unverified`: too few nodes have confirmed it. `outdated`: a node has seen a later state. */
  readonly state: 'current' | 'unverified' | 'outdated';
  /** Why requests are refused, and what to do; missing if they are not. */
  readonly reason?: string;
}

export class MetadataCheck {
  readonly #parts: MetadataCheckParts;
  readonly #heard = new Set<number>();
  readonly #waiting = new Set<() => void>();
  #isVerified = false;
  #outdated: string | undefined;

  constructor(parts: MetadataCheckParts) {
    this.#parts = parts;
  }

  get isVerified(): boolean {
    if (this.#outdated !== undefined) return false;
    this.#isVerified ||= this.#parts.isTrusted || this.#heard.size >= this.#needed;
    return this.#isVerified;
  }

  get state(): MetadataState {
    if (this.#outdated !== undefined) return { state: 'outdated', reason: this.#outdated };
    if (this.isVerified) return { state: 'current' };
    const known = [...this.#parts.live.all()].length;
    const reason = `${this.#heard.size} of ${known} nodes have confirmed that the metadata is the latest, and ${this.#needed} are needed; start more nodes, or start the manager with --trust-metadata if the metadata is the latest`;
    return { state: 'unverified', reason };
  }

  /**
   * Each state that owners depend on is shown to at least three nodes. Without any two nodes one of those is left, and
   * two nodes are needed because one of them may itself be an old copy.
   */
  get #needed(): number {
    const known = [...this.#parts.live.all()].length;
    return Math.max(Math.min(known, 2), known - (REPLICAS - 1));
  }

  /** A node has reported. Throws OUTDATED if it has seen a later state. */
  hear(node: number, seen: MetadataVersion | undefined): void {
    const { history } = this.#parts;
    if (seen !== undefined && !history.has(seen)) {
      const own = history.version.number;
      this.#outdated ??= `the metadata is an older copy: node ${node} has seen transaction ${seen.number} of a manager, which is not in it (it has ${own}); nothing is deleted. Stop the manager, and restore the latest copy of its metadata`;
    } else this.#heard.add(node);
    if (this.#outdated !== undefined || this.isVerified) for (const wake of [...this.#waiting]) wake();
    this.#checkOutdated();
  }

  #checkOutdated(): void {
    if (this.#outdated !== undefined) throw new RpcError('OUTDATED', this.#outdated);
  }

  /** Resolves when the manager may decide. Rejects with OUTDATED, or with UNVERIFIED after a while. */
  async passed(): Promise<void> {
    if (!this.isVerified && this.#outdated === undefined) await this.#wait();
    this.#checkOutdated();
    if (!this.isVerified) throw new RpcError('UNVERIFIED', this.state.reason!);
  }

  #wait(): Promise<void> {
    const { clock, waitMs } = this.#parts;
    return new Promise((resolve) => {
      const end = () => {
        cancel();
        this.#waiting.delete(end);
        resolve();
      };
      const cancel = clock.wakeAt(clock.nowNs() + waitMs * NS_PER_MS, end);
      this.#waiting.add(end);
    });
  }
}
