/**
 * Whether the metadata of a manager may be an older copy: a restored backup of its folder, or of etcd. Nodes remember
 * the last state of the metadata that a manager has shown them. A started manager makes no decision before enough nodes
 * have confirmed its metadata, nor after a node has seen a later state.
 */

import { RpcError } from '@rocev2/rpc';
import { type Clock, NS_PER_MS } from 'rocev2/internal/core';
import type { LiveNodes } from './live-nodes.js';
import type { MetadataState } from './messages.js';
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
  /** Nothing is decided before the metadata is rebuilt. */
  readonly isRecovering: boolean;
}

export class MetadataCheck {
  readonly #parts: MetadataCheckParts;
  readonly #heard = new Set<number>();
  readonly #seen = new Map<number, MetadataVersion>();
  readonly #waiting = new Set<() => void>();
  #isVerified = false;
  #outdated: string | undefined;

  constructor(parts: MetadataCheckParts) {
    this.#parts = parts;
  }

  get isVerified(): boolean {
    if (this.#outdated !== undefined) return false;
    const { isTrusted, isRecovering } = this.#parts;
    this.#isVerified ||= !isRecovering && (isTrusted || this.#heard.size >= this.#needed);
    return this.#isVerified;
  }

  /** Whether the metadata is being rebuilt from the nodes, so that it says nothing about them. */
  get isRebuilding(): boolean {
    return this.#parts.isRecovering && !this.#isVerified;
  }

  get state(): MetadataState {
    if (this.#outdated !== undefined) return { state: 'outdated', reason: this.#outdated };
    if (this.isVerified) return { state: 'current' };
    const known = [...this.#parts.live.all()].length;
    if (this.#parts.isRecovering) {
      const reason = `the metadata is being rebuilt, ${this.#seen.size} nodes have reported; start all nodes, then run 'rocev2 extents recover'`;
      return { state: 'unverified', reason };
    }
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
    if (seen !== undefined) this.#seen.set(node, seen);
    if (seen !== undefined && !this.isRebuilding && !history.has(seen)) {
      const own = history.version.number;
      this.#outdated ??= `the metadata is an older copy: node ${node} has seen transaction ${seen.number} of a manager, which is not in it (it has ${own}); nothing is deleted. Stop the manager, and restore the latest copy of its metadata, or run 'rocev2 extents recover', which rebuilds it from the nodes`;
    } else this.#heard.add(node);
    if (this.#outdated !== undefined || this.isVerified) for (const wake of [...this.#waiting]) wake();
    this.#checkOutdated();
  }

  /** The metadata was rebuilt from the nodes that have reported. */
  async accept(): Promise<void> {
    await this.#parts.history.accept([...this.#seen.values()]);
    this.#outdated = undefined;
    this.#isVerified = true;
    for (const wake of [...this.#waiting]) wake();
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
