/** What the parts of a manager share. */

import type { Clock, RandomSource } from 'rocev2/internal/core';
import type { CodeName } from './coding/erasure-code.js';
import type { LiveNodes } from './live-nodes.js';
import type { ManagerCounters, ManagerPlace, Nodes } from './messages.js';
import type { Metadata } from './metadata.js';
import type { MetadataSchema } from './metadata-schema.js';

/** What a manager is made of. */
export interface ManagerParts {
  /** What outlives the manager. */
  readonly metadata: Metadata;
  /** The way to nodes. */
  readonly nodes: Nodes;
  /** Measures all times. */
  readonly clock: Clock;
  /** Spreads extents over nodes that are as good. */
  readonly random: RandomSource;
  /** Times. */
  readonly timing: ManagerTiming;
  /** Bytes at which owners begin another extent: what a node must have room for. */
  readonly extentBytes: number;
  /** What sealed extents are coded with. Missing: they stay in replicas. */
  readonly code?: CodeName | undefined;
  /** Rejects if another manager may have led when it was called. */
  confirmLead(): Promise<void>;
  /** All managers that are there, for people. */
  managers(): Promise<readonly ManagerPlace[]>;
}

/** Times of a manager, milliseconds. */
export interface ManagerTiming {
  /** How long it waits for a node. */
  readonly callMs: number;
  /** How long it waits for a copy of a whole extent. */
  readonly copyMs: number;
  /** A node that has not reported for so long is down. */
  readonly downMs: number;
  /** A node that has not reported for so long, and that no record names, is forgotten. */
  readonly forgetMs: number;
  /** Between two looks at all extents. */
  readonly repairMs: number;
  /** How long an extent stays in replicas after it was sealed. */
  readonly codeAfterMs: number;
}

/** What a manager knows and is doing. */
export interface ManagerState {
  readonly counters: ManagerCounters;
  readonly parts: ManagerParts;
  readonly schema: MetadataSchema;
  readonly live: LiveNodes;
  /** Extents in progress at this manager, whose replicas are not to be deleted. */
  readonly busy: Set<number>;
  /** Replicas and fragments being made of others. */
  copying: number;
  /** Extents being coded. */
  coding: number;
}
