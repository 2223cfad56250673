/**
 * What fault rules do to packets: the actions of a rule as a person writes them, and how those on the bytes of a packet are carried out. Where a packet
 * waits and where it is marked is the affair of switch, port and simulator.
 */

import { RoceError } from '../../core/errors.js';
import { parseDurationNs, parseRateBps } from '../../core/units.js';
import { bthOffset } from '../../packet/psp.js';
import { integer } from './numbers.js';
import { changeField, type FieldChange, parseFieldChange } from './rewrite.js';

/** Verdict: the packet passes unchanged. */
export const FAULT_PASS = 0;
/** Bit of a verdict: the packet is dropped. */
export const FAULT_DROP = 1;
/** Bit of a verdict: one bit that the ICRC covers is flipped. */
export const FAULT_CORRUPT = 2;
/** Bit of a verdict: the packet is delivered twice; where it is held back, the copy is not. */
export const FAULT_DUPLICATE = 4;
/** Bit of a verdict: the packet is held back until others have passed. */
export const FAULT_REORDER = 8;
/** Bit of a verdict: the packet is held back for a time. */
export const FAULT_DELAY = 16;
/** Bit of a verdict: the packet is marked as having met congestion (ECN CE, RFC 3168). */
export const FAULT_MARK = 32;
/** Bit of a verdict: the packet is cut. */
export const FAULT_TRIM = 64;
/** Bit of a verdict: fields of the packet get other values, and the ICRC is right for them. */
export const FAULT_REWRITE = 128;
/** Bit of a verdict: the ECN codepoint is cleared, as some routers do to what they do not know. */
export const FAULT_BLEACH = 256;
/** The actions on the bytes between BTH and ICRC. */
export const FAULT_CHANGES: number = FAULT_CORRUPT | FAULT_TRIM | FAULT_REWRITE;

/** A held-back packet occupies memory until it is let go. */
const REORDER_BEHIND_MAX = 1024;
const REORDER_BEHIND = 3;
/** What is left of a packet has all headers. */
const TRIM_BYTES = 64;
const TRIM_BYTES_MIN = 12;
const TRIM_BYTES_MAX = 65_535;

/** The actions of one rule. */
export interface FaultActions {
  /** What it does: any of the bits of FAULT_DROP, FAULT_MARK and the others. */
  readonly bits: number;
  /** For FAULT_REORDER: how many packets overtake. */
  readonly behind: number;
  /** For FAULT_DELAY. */
  readonly delayNs: number;
  /** For FAULT_DELAY: the delay is up to so much shorter or longer, every value as likely. */
  readonly jitterNs: number;
  /** For FAULT_DELAY: packets of the rule leave one after another at this rate, in bits per second from BTH to ICRC. */
  readonly rateBps: number;
  /** For FAULT_TRIM: bytes that are left, from the BTH on. */
  readonly trimBytes: number;
  /** For FAULT_REWRITE, in this order. */
  readonly changes: readonly FieldChange[];
}

/** A rule without actions of its own drops. */
export const DROP_ACTIONS: FaultActions = {
  bits: FAULT_DROP,
  behind: 0,
  delayNs: 0,
  jitterNs: 0,
  rateBps: Number.POSITIVE_INFINITY,
  trimBytes: 0,
  changes: [],
};

interface ActionKind {
  readonly form: string;
  /** What it adds to the actions before it. Undefined when the values make no sense. */
  parse(values: readonly string[], before: FaultActions): FaultActions | undefined;
}

const ACTIONS: ReadonlyMap<string, ActionKind> = new Map<string, ActionKind>([
  ['drop', { form: 'drop', parse: flag(FAULT_DROP) }],
  ['corrupt', { form: 'corrupt', parse: flag(FAULT_CORRUPT) }],
  ['duplicate', { form: 'duplicate', parse: flag(FAULT_DUPLICATE) }],
  ['reorder', { form: 'reorder[=BEHIND]', parse: reorder }],
  ['delay', { form: 'delay=TIME[,JITTER]', parse: delay }],
  ['rate', { form: 'rate=100Mbps', parse: rate }],
  ['mark', { form: 'mark', parse: flag(FAULT_MARK) }],
  ['bleach', { form: 'bleach', parse: flag(FAULT_BLEACH) }],
  ['trim', { form: 'trim[=BYTES]', parse: trim }],
  ['rewrite', { form: 'rewrite=FIELD,VALUE', parse: rewrite }],
]);

/** How actions are written, for errors. */
export const ACTION_FORMS: string = Array.from(ACTIONS.values(), ({ form }) => form).join('; ');

/** Whether a part of a rule between two commas begins an action. */
export function isAction(part: string): boolean {
  return ACTIONS.has(part.split('=', 1)[0].trim());
}

/** Parses `corrupt`, `delay=1ms`, `10us` ...: the parts of a rule behind its condition. Throws an Error whose message says what is wrong. */
export function parseActions(parts: readonly string[]): FaultActions {
  if (parts.length === 0) return DROP_ACTIONS;
  let actions: FaultActions = { ...DROP_ACTIONS, bits: FAULT_PASS };
  for (let next = 0; next < parts.length; ) {
    const [name, ...first] = parts[next++].split('=').map((text) => text.trim());
    const kind = ACTIONS.get(name);
    if (kind === undefined) throw new Error(`has the unknown action '${name}'`);
    const values = [...first];
    while (next < parts.length && !isAction(parts[next])) values.push(parts[next++].trim());
    const added = first.length > 1 ? undefined : parseValues(kind, values, actions);
    if (added === undefined) throw new Error(`needs the form ${kind.form}`);
    actions = added;
  }
  checkCombination(actions.bits);
  return actions;
}

/** A time or rate that is none is told in the words of its parser. */
function parseValues(kind: ActionKind, values: readonly string[], before: FaultActions): FaultActions | undefined {
  try {
    return kind.parse(values, before);
  } catch (error) {
    if (error instanceof RoceError) throw new Error(`needs the form ${kind.form}: ${error.message}`);
    throw error;
  }
}

function checkCombination(bits: number): void {
  if ((bits & FAULT_DROP) !== 0 && bits !== FAULT_DROP) throw new Error('drops the packet and does more with it');
  if ((bits & FAULT_MARK) !== 0 && (bits & FAULT_BLEACH) !== 0) throw new Error('marks the packet and clears the mark');
  if ((bits & FAULT_REORDER) !== 0 && (bits & FAULT_DELAY) !== 0) {
    throw new Error('makes a packet wait for others and for time: use reorder, or delay and rate');
  }
}

function flag(bit: number): ActionKind['parse'] {
  return (values, before) => (values.length > 0 ? undefined : { ...before, bits: before.bits | bit });
}

function reorder(values: readonly string[], before: FaultActions): FaultActions | undefined {
  const behind = values.length === 0 ? REORDER_BEHIND : integer(values[0], 1, REORDER_BEHIND_MAX);
  if (behind === undefined || values.length > 1) return undefined;
  return { ...before, bits: before.bits | FAULT_REORDER, behind };
}

function delay(values: readonly string[], before: FaultActions): FaultActions | undefined {
  if (values.length < 1 || values.length > 2) return undefined;
  const delayNs = parseDurationNs(values[0]);
  const jitterNs = values.length > 1 ? parseDurationNs(values[1]) : 0;
  if (jitterNs > delayNs) throw new Error('has a jitter above its delay: a packet cannot leave before it came');
  return { ...before, bits: before.bits | FAULT_DELAY, delayNs, jitterNs };
}

function rate(values: readonly string[], before: FaultActions): FaultActions | undefined {
  const rateBps = values.length === 1 ? parseRateBps(values[0]) : 0;
  return rateBps > 0 ? { ...before, bits: before.bits | FAULT_DELAY, rateBps } : undefined;
}

function trim(values: readonly string[], before: FaultActions): FaultActions | undefined {
  const trimBytes = values.length === 0 ? TRIM_BYTES : integer(values[0], TRIM_BYTES_MIN, TRIM_BYTES_MAX);
  if (trimBytes === undefined || values.length > 1) return undefined;
  return { ...before, bits: before.bits | FAULT_TRIM, trimBytes };
}

function rewrite(values: readonly string[], before: FaultActions): FaultActions | undefined {
  if (values.length !== 2) return undefined;
  const change = parseFieldChange(values[0], values[1]);
  return { ...before, bits: before.bits | FAULT_REWRITE, changes: [...before.changes, change] };
}

/** The part of a verdict that says what happens to the bytes of a packet. */
interface ByteChanges {
  /** FAULT_ bits. */
  readonly bits: number;
  /** The bit to flip, from the first bit of the BTH. */
  readonly bit: number;
  readonly trimBytes: number;
  readonly changes: readonly FieldChange[];
}

/**
 * Carries out {@link FAULT_CHANGES} on the UDP payload `bytes[offset, offset + length)`: rewrites, then trims, then corrupts. Returns the new length. Fields
 * and bits are counted from the BTH, also in a protected packet, whose receiver notices any change.
 */
export function changeBytes(verdict: ByteChanges, bytes: Uint8Array, offset: number, length: number): number {
  const { bits } = verdict;
  const inner = bthOffset(bytes, offset, length);
  const bth = offset + inner;
  let left = length;
  if ((bits & FAULT_REWRITE) !== 0)
    for (const change of verdict.changes) changeField(change, bytes, bth, length - inner);
  if ((bits & FAULT_TRIM) !== 0) left = Math.min(length, inner + verdict.trimBytes);
  if ((bits & FAULT_CORRUPT) !== 0) flipBit(bytes, bth, verdict.bit);
  return left;
}

/** Flips the verdict's bit of the packet whose BTH is at `offset`; doing it again restores the packet. */
export function flipBit(bytes: Uint8Array, offset: number, bit: number): void {
  bytes[offset + (bit >> 3)] ^= 0x80 >> (bit & 7);
}
