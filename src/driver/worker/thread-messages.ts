/**
 * Sleeping and waking cannot miss each other: the NIC stores ASLEEP and then looks at its doorbells once more; the
 * application rings and then checks whether the NIC sleeps (both in the one order that all atomics have).
 */

import type { SerializedRoceError } from '../../core/errors.js';
import type { EngineLink } from '../../memory/ring/engine-link.js';
import type { AssociationCounts, AssociationTerms } from '../../memory/ring/protection.js';
import type { ProtectedPortOptions } from '../open-port.js';

export const WORD_STATE = 0;
/** Counts up, once per poll, when the event ring has something new. */
export const WORD_INTERRUPTS = 1;
export const CONTROL_WORDS = 16;

/** A NIC that never ran counts as asleep. */
export const ASLEEP = 0;
export const AWAKE = 1;

export const ENGINE_THREAD = 'rocev2 engine thread';

export interface ThreadData {
  readonly role: typeof ENGINE_THREAD;
  readonly port: ProtectedPortOptions;
  readonly extensions: readonly string[];
  readonly spin: boolean;
  readonly control: SharedArrayBuffer;
  readonly commands: SharedArrayBuffer;
  readonly events: SharedArrayBuffer;
  readonly doorbells: SharedArrayBuffer;
  readonly counters: SharedArrayBuffer;
  readonly spinner: SharedArrayBuffer;
}

export type ToThread =
  | { readonly type: 'attach'; readonly id: number; readonly memory: SharedArrayBuffer }
  | { readonly type: 'detach'; readonly id: number }
  /** Only up to this index: memory of later ones may still be in transfer. */
  | { readonly type: 'commands'; readonly end: number }
  | { readonly type: 'wake' }
  | { readonly type: 'associate'; readonly request: number; readonly terms: AssociationTerms }
  | { readonly type: 'begin' | 'retire' | 'dissolve'; readonly spi: number }
  | { readonly type: 'counts'; readonly request: number; readonly spi: number }
  | { readonly type: 'resolve'; readonly request: number; readonly address: string; readonly sharingPort?: number }
  | { readonly type: 'unshare'; readonly address: string; readonly udpPort: number }
  | { readonly type: 'close' };

export type FromThread =
  | {
      readonly type: 'ready';
      readonly portDescription: string;
      /** An eventfd that ends the NIC's sleep, or -1: then a message does. */
      readonly wakeFd: number;
      readonly udpPort: number;
      /** See {@link EngineLink.memoryDomain}. */
      readonly memoryDomain: string | undefined;
      /** Whether there is an {@link EngineLink.mapping}. */
      readonly mapsMemory: boolean;
    }
  | { readonly type: 'failed'; readonly error: SerializedRoceError }
  | { readonly type: 'resolved'; readonly request: number; readonly shares: boolean }
  | { readonly type: 'associated'; readonly request: number }
  | { readonly type: 'counted'; readonly request: number; readonly counts: AssociationCounts | undefined }
  | { readonly type: 'refused'; readonly request: number; readonly error: SerializedRoceError }
  | { readonly type: 'closed' };
