/** What a client asks of the owner before it does everything by itself: where the region is, and which words a name has. Calls of `rocev2/rpc`. */

import { defineService } from '@rocev2/rpc';
import { isCount, isDecimal, shape } from '@rocev2/rpc/internal';

/** What a name stands for. */
export const KINDS = ['counter', 'sequencer', 'lock', 'semaphore', 'barrier', 'ring'] as const;

/** One of {@link KINDS}. */
export type Kind = (typeof KINDS)[number];

/** Where the region is. */
export interface WordRegion {
  /** Address of its first byte, decimal: JSON has no numbers of 64 bits. */
  readonly addr: string;
  /** Key for READs, WRITEs and atomics. */
  readonly rkey: number;
  /** Number of this client among those that write into rings. */
  readonly producer: number;
}

/** A question for a name, of which the owner alone makes rings. What is missing is as whoever made the name has said, or the default. */
export interface CellQuestion {
  /** What it must be. */
  readonly kind: Kind;
  /** 1 to 128 bytes of UTF-8. Each kind has names of its own. */
  readonly name: string;
  /** Permits of a semaphore, parties of a barrier. */
  readonly size?: number;
  /** Of a lock or a semaphore, milliseconds. */
  readonly leaseMs?: number;
}

/** The words of a name. */
export interface Cell {
  /** Of the first word in the region, bytes. */
  readonly offset: number;
  /** Permits of a semaphore, parties of a barrier, slots of a ring, else 1. */
  readonly size: number;
  /** Longest message of a ring; else 0. */
  readonly bytes: number;
  /** Of a lock or a semaphore, milliseconds; else 0. */
  readonly leaseMs: number;
}

/** The words of a name, or the code and text of an error. */
export type CellAnswer = Cell | { readonly error: string; readonly message: string };

const isOptionalCount = (value: unknown) => value === undefined || isCount(value);

/** The methods of an owner. */
export const PRIMITIVES_SERVICE = defineService({
  region: {
    input: shape<object>('question', () => true),
    output: shape<WordRegion>(
      'place of a region',
      ({ addr, rkey, producer }) => isDecimal(addr) && isCount(rkey) && isCount(producer),
    ),
  },
  cell: {
    input: shape<CellQuestion>(
      'question for a name',
      ({ kind, name, size, leaseMs }) =>
        KINDS.includes(kind as Kind) && typeof name === 'string' && isOptionalCount(size) && isOptionalCount(leaseMs),
    ),
    output: shape<CellAnswer>(
      'answer',
      ({ offset, size, bytes, leaseMs, error, message }) =>
        [offset, size, bytes, leaseMs].every(isCount) || (typeof error === 'string' && typeof message === 'string'),
    ),
  },
  wake: {
    input: shape<{ readonly name: string }>('name of a ring', ({ name }) => typeof name === 'string'),
    output: shape<object>('answer', () => true),
  },
});
