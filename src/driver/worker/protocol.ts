/**
 * What crosses between the application's thread and the NIC's: rings and a few words in shared memory for everything that is frequent,
 * messages for everything that is not.
 *
 * Sleeping and waking cannot miss each other: the NIC stores ASLEEP and then looks at its doorbells once more; the application rings and
 * then looks whether the NIC sleeps (both in the one order that all atomics have).
 */

import type { SerializedRoceError } from '../../core/errors.js';
import type { EngineLink } from '../../memory/ring/engine-link.js';
import type { AssociationCounts, AssociationTerms } from '../../memory/ring/protection.js';
import type { ProtectedPortOptions } from '../open-port.js';

/** Words of the control block. */
export const WORD_STATE = 0;
/** Counts up, once per poll, when the event ring has something new. */
export const WORD_INTERRUPTS = 1;
/** 32-bit words of the control block; those without a name are free. */
export const CONTROL_WORDS = 16;

/** A NIC that never ran counts as asleep. */
export const ASLEEP = 0;
/** The NIC looks at its doorbells by itself. */
export const AWAKE = 1;

/** Tells the thread of a NIC from other threads of a program. */
export const ENGINE_THREAD = 'rocev2 engine thread';

/** What the thread is started with. All memory is shared. */
export interface ThreadData {
  /** Always {@link ENGINE_THREAD}. */
  readonly role: typeof ENGINE_THREAD;
  /** Which port to open. */
  readonly port: ProtectedPortOptions;
  /** Modules to load before anything is created. */
  readonly extensions: readonly string[];
  /** Whether the NIC may look again before it sleeps. */
  readonly spin: boolean;
  /** {@link CONTROL_WORDS} words. */
  readonly control: SharedArrayBuffer;
  /** Memory of the command ring. */
  readonly commands: SharedArrayBuffer;
  /** Memory of the event ring. */
  readonly events: SharedArrayBuffer;
  /** Memory of the doorbell ring. */
  readonly doorbells: SharedArrayBuffer;
  /** One f64 a counter. */
  readonly counters: SharedArrayBuffer;
  /** One word for all NICs of the process: who spins. */
  readonly spinner: SharedArrayBuffer;
}

/** Messages to the NIC's thread. */
export type ToThread =
  | { readonly type: 'attach'; readonly id: number; readonly memory: SharedArrayBuffer }
  | { readonly type: 'detach'; readonly id: number }
  /** Up to this index only: memory that later ones name may still be on its way. */
  | { readonly type: 'commands'; readonly end: number }
  | { readonly type: 'wake' }
  | { readonly type: 'associate'; readonly request: number; readonly terms: AssociationTerms }
  | { readonly type: 'begin' | 'retire' | 'dissolve'; readonly spi: number }
  | { readonly type: 'counts'; readonly request: number; readonly spi: number }
  | { readonly type: 'resolve'; readonly request: number; readonly address: string; readonly sharingPort?: number }
  | { readonly type: 'unshare'; readonly address: string; readonly udpPort: number }
  | { readonly type: 'close' };

/** Messages from the NIC's thread. The first is `ready` or `failed`. */
export type FromThread =
  | {
      readonly type: 'ready';
      readonly portDescription: string;
      /** An eventfd that ends the NIC's sleep, or -1: then a message does. */
      readonly wakeFd: number;
      /** Bound; the system chose it where 0 was asked for. */
      readonly udpPort: number;
      /** See {@link EngineLink.memoryDomain}. */
      readonly memoryDomain: string | undefined;
    }
  | { readonly type: 'failed'; readonly error: SerializedRoceError }
  | { readonly type: 'resolved'; readonly request: number; readonly shares: boolean }
  | { readonly type: 'associated'; readonly request: number }
  | { readonly type: 'counted'; readonly request: number; readonly counts: AssociationCounts | undefined }
  | { readonly type: 'refused'; readonly request: number; readonly error: SerializedRoceError }
  | { readonly type: 'closed' };
