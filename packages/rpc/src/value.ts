/**
 * Encoding of values: JSON, and after it the unchanged bytes of every Uint8Array in the value.
 *
 *     json bytes 4   pieces 4   bytes of each piece 4 ...   JSON   pieces
 *
 * In the JSON, the string NUL + number represents a piece. A string of the program that begins with NUL gets a second
 * NUL.
 */

import { RoceError } from 'rocev2/internal/core';

const MARK = '\0';
const MARK_IN_JSON = '\\u0000';
/** Deeper values could exhaust the stack of schemas. */
const NESTING_MAX = 1000;
/** Shorter JSON is neither nested too deeply nor has it too many elements. */
const SHORT = 1024;
const DEPTH_MAX = 8;
const OTHER = Symbol('other');
const PIECES_MAX = 1024;

/** Unlike a Buffer it has no toJSON, which would make an array of numbers of it first. */
class Piece {
  readonly bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }
}

/** Pieces are the program's own bytes, which must not change until they are sent. */
export function encodeValue(value: unknown): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  const plain = marked(value ?? null, pieces, 0);
  if (plain !== OTHER) return encoded(JSON.stringify(plain), pieces);
  pieces.length = 0;
  const write = (_key: string, shown: unknown) => {
    if (shown instanceof Piece) return `${MARK}${pieces.push(shown.bytes) - 1}`;
    if (isBytes(shown)) return `${MARK}${pieces.push(shown) - 1}`; // What a toJSON has returned.
    if (typeof shown === 'bigint') throw unsupported('a bigint', 'pass it as a string');
    if (typeof shown === 'string' && shown.startsWith(MARK)) return MARK + shown;
    return withPieces(shown);
  };
  return encoded(JSON.stringify(value, write) ?? 'null', pieces);
}

function encoded(text: string, pieces: readonly Uint8Array[]): Uint8Array[] {
  const json = Buffer.from(text);
  if (pieces.length > PIECES_MAX) throw unsupported(`${pieces.length} byte arrays`, `${PIECES_MAX} at most`);
  const head = Buffer.alloc(8 + 4 * pieces.length);
  head.writeUInt32LE(json.length, 0);
  head.writeUInt32LE(pieces.length, 4);
  for (const [k, piece] of pieces.entries()) head.writeUInt32LE(piece.length, 8 + 4 * k);
  return [head, json, ...pieces];
}

/**
 * A value of plain objects, arrays, texts, numbers and byte arrays as JSON has it, which is nearly all of them:
 * JSON.stringify with a function takes twice as long.
 */
function marked(value: unknown, pieces: Uint8Array[], depth: number): unknown {
  if (typeof value === 'string') return value.startsWith(MARK) ? MARK + value : value;
  if (typeof value !== 'object') return typeof value === 'number' || typeof value === 'boolean' ? value : OTHER;
  if (value === null) return null;
  if (isBytes(value)) return `${MARK}${pieces.push(value) - 1}`;
  if (depth === DEPTH_MAX || 'toJSON' in value) return OTHER;
  if (Array.isArray(value)) {
    const items: unknown[] = [];
    for (let k = 0; k < value.length; k++) {
      const item = marked(value[k], pieces, depth + 1);
      if (item === OTHER) return OTHER;
      items.push(item);
    }
    return items;
  }
  if (Object.getPrototypeOf(value) !== Object.prototype) return OTHER;
  const fields: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(value)) {
    if (field === undefined) continue;
    const item = marked(field, pieces, depth + 1);
    if (item === OTHER || name === '__proto__') return OTHER;
    fields[name] = item;
  }
  return fields;
}

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

/** A value, and how many items and fields its arrays and objects have. */
interface Decoded {
  readonly value: unknown;
  readonly elements: number;
}

/**
 * Throws ERR_ROCE_MALFORMED, and ERR_ROCE_LIMIT for a value of more than `elementsMax` elements: JSON of many elements
 * takes a long time, and twenty times its bytes.
 */
export function decodeValue(body: Buffer, elementsMax: number): Decoded {
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
  const json = body.subarray(headBytes, jsonEnd);
  const elements = json.length < SHORT ? json.length >> 1 : countElements(json, elementsMax);
  if (elements > elementsMax) {
    const message = `the peer sent a value of more than ${elementsMax} elements`;
    throw new RoceError('ERR_ROCE_LIMIT', message, 'send it as a stream, or let the receiver raise `elementsMax`');
  }
  try {
    const text = json.toString('utf8');
    const value: unknown = JSON.parse(text);
    return { value: text.includes(MARK_IN_JSON) ? withoutMarks(value, pieces) : value, elements };
  } catch (error) {
    if (error instanceof RoceError) throw error;
    throw malformed('a body without valid JSON');
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;

/** Stops when there are too many. Throws ERR_ROCE_MALFORMED for JSON that is nested too deeply. */
function countElements(json: Buffer, elementsMax: number): number {
  let elements = 0;
  let depth = 0;
  for (let at = 0; at < json.length && elements <= elementsMax; at++) {
    const byte = json[at];
    if (byte === QUOTE) {
      at = endOfString(json, at);
      if (at < 0) break; // JSON.parse reports it.
    } else if (byte === COMMA) elements++;
    else if ((byte | 0x20) === 0x7b) {
      elements++; // [ or {
      if (++depth > NESTING_MAX) throw malformed('a body without valid JSON: it is nested too deeply');
    } else if ((byte | 0x20) === 0x7d) depth--; // ] or }
  }
  return elements;
}

function endOfString(json: Buffer, begin: number): number {
  for (let end = json.indexOf(QUOTE, begin + 1); end >= 0; end = json.indexOf(QUOTE, end + 1)) {
    let first = end;
    while (json[first - 1] === BACKSLASH) first--;
    if ((end - first) % 2 === 0) return end;
  }
  return -1;
}

function withoutMarks(value: unknown, pieces: readonly Buffer[]): unknown {
  if (typeof value === 'string') return value.startsWith(MARK) ? unmarked(value, pieces) : value;
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    for (let k = 0; k < value.length; k++) {
      const item: unknown = value[k];
      if (typeof item === 'string' || typeof item === 'object') value[k] = withoutMarks(item, pieces);
    }
    return value;
  }
  const fields = value as Record<string, unknown>;
  for (const name of Object.keys(fields)) {
    const field = fields[name];
    if (typeof field === 'string' || typeof field === 'object') fields[name] = withoutMarks(field, pieces);
  }
  return fields;
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
