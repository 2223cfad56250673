/** What the parts of a manager share. */

import type { Clock, RandomSource } from 'rocev2/internal/core';
import type { CodeName } from './coding/erasure-code.js';
import type { LiveNodes } from './live-nodes.js';
import type { ManagerCounters, ManagerPlace, Nodes } from './messages.js';
import type { Metadata } from './metadata.js';
import type { MetadataCheck } from './metadata-check.js';
import type { MetadataHistory } from './metadata-history.js';
import type { MetadataSchema } from './metadata-schema.js';

export interface ManagerParts {
  readonly metadata: Metadata;
  readonly nodes: Nodes;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly timing: ManagerTiming;
  readonly extentBytes: number;
  readonly code?: CodeName | undefined;
  readonly trustsMetadata?: boolean | undefined;
  /** The metadata is to be rebuilt from the nodes. */
  readonly isRecovering?: boolean | undefined;
  confirmLead(): Promise<void>;
  managers(): Promise<readonly ManagerPlace[]>;
}

export interface ManagerTiming {
  readonly callMs: number;
  readonly copyMs: number;
  readonly downMs: number;
  readonly forgetMs: number;
  readonly repairMs: number;
  readonly codeAfterMs: number;
}

export interface WaitingExtent {
  /** All replicas that answered are fenced with it. */
  readonly epoch: number;
  readonly reason: string;
}

/** What a manager knows and is doing. */
export interface ManagerState {
  readonly counters: ManagerCounters;
  readonly parts: ManagerParts;
  readonly history: MetadataHistory;
  readonly metadataCheck: MetadataCheck;
  readonly schema: MetadataSchema;
  readonly live: LiveNodes;
  /** Extents in progress at this manager, whose replicas are not to be deleted. */
  readonly busy: Set<number>;
  /** Extents whose length is not certain. */
  readonly waiting: Map<number, WaitingExtent>;
  /** Replicas and fragments being made of others. */
  copying: number;
  /** Extents being coded. */
  coding: number;
}
