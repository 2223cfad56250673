/** What a client learns about an export: its size and what it can do. */

import {
  BLOCK_STATUS_PAYLOAD,
  CAN_MULTI_CONN,
  HAS_FLAGS,
  READ_ONLY,
  SEND_CACHE,
  SEND_DF,
  SEND_FAST_ZERO,
  SEND_FLUSH,
  SEND_FUA,
  SEND_TRIM,
  SEND_WRITE_ZEROES,
} from './wire.js';

/** A disk under a name. */
export interface NbdExport {
  /** What clients ask for. */
  readonly name: string;
  /** For people; may be empty. */
  readonly description: string;
  /** What the disk holds. */
  readonly sizeBytes: number;
  /** Smallest unit of a request. */
  readonly blockBytes: number;
  /** Clients can only read. Default false. */
  readonly readOnly?: boolean;
}

/** What clients should use where they can choose: the unit of CRCs and of most disks. */
export const PREFERRED_BLOCK_BYTES = 4096;

const ALWAYS = HAS_FLAGS | SEND_FLUSH | CAN_MULTI_CONN | SEND_CACHE;
const WRITING = SEND_FUA | SEND_TRIM | SEND_WRITE_ZEROES | SEND_FAST_ZERO;

/** What the flags of an export depend on beside the export. */
export interface AgreedForm {
  /** Replies are sent in chunks; only then "don't fragment" means something. */
  readonly structuredReplies: boolean;
  /** Headers have lengths of 64 bits, */
  readonly extendedHeaders: boolean;
  /** and BLOCK_STATUS may be asked for: then it may name its contexts. */
  readonly allocationContext: boolean;
}

/** The transmission flags of an export. */
export function transmissionFlags({ readOnly = false }: NbdExport, form: AgreedForm): number {
  const { structuredReplies, extendedHeaders, allocationContext } = form;
  return (
    ALWAYS |
    (readOnly ? READ_ONLY : WRITING) |
    (structuredReplies ? SEND_DF : 0) |
    (extendedHeaders && allocationContext ? BLOCK_STATUS_PAYLOAD : 0)
  );
}

/** Looks an export up. The empty name means the first, as proto.md recommends. */
export function findExport<E extends NbdExport>(exports: readonly E[], name: string): E | undefined {
  return name === '' ? exports[0] : exports.find((candidate) => candidate.name === name);
}
