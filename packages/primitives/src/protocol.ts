import { defineService } from '@rocev2/rpc';
import { isCount, isDecimal, shape } from '@rocev2/rpc/internal';

export const KINDS = ['counter', 'sequencer', 'lock', 'semaphore', 'barrier', 'ring'] as const;

export type PrimitiveKind = (typeof KINDS)[number];

/** Where the region is. */
export interface WordRegion {
  /** Address of its first byte, decimal: JSON has no numbers of 64 bits. */
  readonly addr: string;
  readonly rkey: number;
  readonly producer: number;
}

export interface CellQuestion {
  readonly kind: PrimitiveKind;
  readonly name: string;
  readonly size?: number | undefined;
  readonly leaseMs?: number | undefined;
}

export interface Cell {
  /** Of the first word in the region, bytes. */
  readonly offset: number;
  readonly size: number;
  readonly bytes: number;
  readonly leaseMs: number;
}

export type CellAnswer = Cell | { readonly error: string; readonly message: string };

const isOptionalCount = (value: unknown) => value === undefined || isCount(value);

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
        KINDS.includes(kind as PrimitiveKind) &&
        typeof name === 'string' &&
        isOptionalCount(size) &&
        isOptionalCount(leaseMs),
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
