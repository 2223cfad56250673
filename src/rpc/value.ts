/**
 * Encoding of values: JSON, and after it the unchanged bytes of every Uint8Array in the value.
 *
 *     json bytes 4   pieces 4   bytes of each piece 4 ...   JSON   pieces
 *
 * In the JSON, the string NUL + number stands for a piece. A string of the program that begins with NUL gets a second NUL.
 */

import { RoceError } from '../core/errors.js';

const MARK = '\0';
/** Most byte arrays in a value. */
const PIECES_MAX = 1024;

/** A byte array in a value that is being written. Unlike a Buffer it has no toJSON, which would make an array of numbers of it first. */
class Piece {
  readonly bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }
}

/** Parts of an encoded value, in order. Pieces are the program's own bytes, which must not change until they are sent. */
export function encodeValue(value: unknown): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  const write = (_key: string, shown: unknown) => {
    if (shown instanceof Piece) return `${MARK}${pieces.push(shown.bytes) - 1}`;
    if (isBytes(shown)) return `${MARK}${pieces.push(shown) - 1}`; // What a toJSON has returned.
    if (typeof shown === 'bigint') throw unsupported('a bigint', 'pass it as a string');
    if (typeof shown === 'string' && shown.startsWith(MARK)) return MARK + shown;
    return withPieces(shown);
  };
  const json = Buffer.from(
    JSON.stringify(value instanceof Uint8Array ? new Piece(value) : (value ?? null), write) ?? 'null',
  );
  if (pieces.length > PIECES_MAX) throw unsupported(`${pieces.length} byte arrays`, `${PIECES_MAX} at most`);
  const head = Buffer.alloc(8 + 4 * pieces.length);
  head.writeUInt32LE(json.length, 0);
  head.writeUInt32LE(pieces.length, 4);
  for (const [k, piece] of pieces.entries()) head.writeUInt32LE(piece.length, 8 + 4 * k);
  return [head, json, ...pieces];
}

/** The object or array itself; one that has byte arrays as a copy with pieces in their places. */
function withPieces(shown: unknown): unknown {
  if (Array.isArray(shown)) {
    return shown.some(isBytes) ? shown.map((one) => (isBytes(one) ? new Piece(one) : one)) : shown;
  }
  if (typeof shown !== 'object' || shown === null || !Object.values(shown).some(isBytes)) return shown;
  return Object.fromEntries(Object.entries(shown).map(([name, one]) => [name, isBytes(one) ? new Piece(one) : one]));
}

function isBytes(value: unknown): value is Uint8Array {
  return value instanceof Uint8Array;
}

function unsupported(what: string, hint: string): RoceError {
  return new RoceError('ERR_ROCE_INVALID_ARGUMENT', `a value with ${what} cannot be sent`, hint);
}

/** The value in `body`; its byte arrays are views of `body`. Throws ERR_ROCE_MALFORMED if `body` is not an encoded value. */
export function decodeValue(body: Buffer): unknown {
  const count = body.length >= 8 ? body.readUInt32LE(4) : PIECES_MAX + 1;
  const headBytes = 8 + 4 * count;
  if (count > PIECES_MAX || body.length < headBytes) throw malformed('a body without a header');
  const jsonEnd = headBytes + body.readUInt32LE(0);
  const pieces: Buffer[] = [];
  let at = jsonEnd;
  for (let k = 0; k < count; k++) {
    const end = at + body.readUInt32LE(8 + 4 * k);
    pieces.push(body.subarray(at, end));
    at = end;
  }
  if (at !== body.length) throw malformed('lengths that do not add up');
  try {
    return JSON.parse(body.toString('utf8', headBytes, jsonEnd), (_key, value: unknown) =>
      typeof value === 'string' && value.startsWith(MARK) ? unmarked(value, pieces) : value,
    );
  } catch (error) {
    if (error instanceof RoceError) throw error;
    throw malformed('a body without valid JSON'); // Or nested too deeply for the stack.
  }
}

function unmarked(text: string, pieces: readonly Buffer[]): unknown {
  const rest = text.slice(1);
  if (rest.startsWith(MARK)) return rest;
  const piece = /^\d{1,4}$/.test(rest) ? pieces[Number(rest)] : undefined;
  if (piece === undefined) throw malformed('a reference to a missing piece');
  return piece;
}

function malformed(what: string): RoceError {
  return new RoceError('ERR_ROCE_MALFORMED', `the peer sent ${what}`);
}
