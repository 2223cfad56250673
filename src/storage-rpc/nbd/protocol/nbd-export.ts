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

export interface NbdExport {
  readonly name: string;
  readonly description: string;
  readonly sizeBytes: number;
  readonly blockBytes: number;
  readonly readOnly?: boolean;
}

/** What clients should use where they can choose: the unit of CRCs and of most disks. */
export const PREFERRED_BLOCK_BYTES = 4096;

const ALWAYS = HAS_FLAGS | SEND_FLUSH | CAN_MULTI_CONN | SEND_CACHE;
const WRITING = SEND_FUA | SEND_TRIM | SEND_WRITE_ZEROES | SEND_FAST_ZERO;

export interface AgreedForm {
  /** Replies are sent in chunks; only then "don't fragment" means something. */
  readonly structuredReplies: boolean;
  readonly extendedHeaders: boolean;
  readonly allocationContext: boolean;
}

export function transmissionFlags({ readOnly = false }: NbdExport, form: AgreedForm): number {
  const { structuredReplies, extendedHeaders, allocationContext } = form;
  return (
    ALWAYS |
    (readOnly ? READ_ONLY : WRITING) |
    (structuredReplies ? SEND_DF : 0) |
    (extendedHeaders && allocationContext ? BLOCK_STATUS_PAYLOAD : 0)
  );
}

/** The empty name means the first, as proto.md recommends. */
export function findExport<E extends NbdExport>(exports: readonly E[], name: string): E | undefined {
  return name === '' ? exports[0] : exports.find((candidate) => candidate.name === name);
}
