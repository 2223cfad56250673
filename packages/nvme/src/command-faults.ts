/**
 * rules     = rule { ";" rule }
 *     rule      = part { ":" part }
 *     part      = condition | action
 *     condition = opcode=NAME | nsid=N | lba=A[-B] | every=N | random=P | xN | once
 *     action    = status=CODE[,dnr] | delay=TIME | silent | disconnect
 */

import { namesHint, parseCount, parseDurationNs, type RandomSource, RoceError, randomUnit } from 'rocev2/internal/core';
import type { NvmeCommand } from './capsule.js';
import { IO } from './opcodes.js';
import { DNR } from './status.js';

export type CommandFault =
  | { readonly kind: 'status'; readonly status: number }
  | { readonly kind: 'delay'; readonly delayNs: number }
  | { readonly kind: 'silent' }
  | { readonly kind: 'disconnect' };

export interface CommandFaultRule {
  readonly text: string;
  readonly opcode: number | undefined;
  readonly nsid: number | undefined;
  readonly blocks: readonly [first: bigint, last: bigint] | undefined;
  readonly every: number;
  readonly probability: number;
  readonly limit: number;
  readonly fault: CommandFault;
}

const FORM = 'opcode=write:status=0x281:every=1000, or with nsid=, lba=, random=, xN; delay=10ms, silent, disconnect';
const OPCODES: ReadonlyMap<string, number> = new Map(
  Object.entries(IO).map(([name, opcode]) => [name.toLowerCase().replaceAll('_', '-'), opcode]),
);
const PARTS = ['opcode', 'nsid', 'lba', 'every', 'random', 'once', 'xN', 'status', 'delay', 'silent', 'disconnect'];
const STATUS_MAX = 0x7ff;
const LBA_MAX = 2 ** 53 - 1;
const LIMIT = /^x\d+$/;

export function parseCommandFaults(text: string): CommandFaultRule[] {
  return text.split(';').map((rule) => parseRule(rule.trim()));
}

function parseRule(text: string): CommandFaultRule {
  const rule: { -readonly [K in keyof CommandFaultRule]?: CommandFaultRule[K] } = {};
  for (const part of text.split(':')) {
    const [name, value = ''] = part.trim().split('=', 2);
    const before = Object.keys(rule).length;
    try {
      readPart(rule, name, value.trim());
    } catch (cause) {
      const hint = cause instanceof RoceError && cause.hint !== undefined ? null : undefined;
      throw ruleError(text, `has '${part}', which is wrong: ${(cause as Error).message}`, hint);
    }
    if (Object.keys(rule).length > before) continue;
    const isKnown = PARTS.includes(name) || LIMIT.test(name);
    if (isKnown) throw ruleError(text, `has '${part}', of which there may be one`);
    const hint = namesHint(name, PARTS, 'known are');
    throw ruleError(text, `has '${part}', which is unknown`, hint);
  }
  const { fault } = rule;
  if (fault === undefined) throw ruleError(text, 'does nothing', 'add status=CODE, delay=TIME, silent or disconnect');
  return {
    opcode: undefined,
    nsid: undefined,
    blocks: undefined,
    every: 1,
    probability: 1,
    limit: Number.POSITIVE_INFINITY,
    ...rule,
    text,
    fault,
  };
}

function readPart(
  rule: { -readonly [K in keyof CommandFaultRule]?: CommandFaultRule[K] },
  name: string,
  value: string,
): void {
  switch (name) {
    case 'opcode':
      rule.opcode = readOpcode(value);
      break;
    case 'nsid':
      rule.nsid = parseCount(value, 1);
      break;
    case 'lba': {
      const [first, last = first, ...more] = value.split('-').map((end) => BigInt(parseCount(end, 0, LBA_MAX)));
      if (last < first || more.length > 0) throw new Error('blocks are FIRST or FIRST-LAST');
      rule.blocks = [first, last];
      break;
    }
    case 'every':
      rule.every = parseCount(value, 1);
      break;
    case 'random': {
      const probability = Number(value);
      if (!(value !== '' && probability >= 0 && probability <= 1)) throw new Error('a probability is from 0 to 1');
      rule.probability = probability;
      break;
    }
    case 'status': {
      const [code, dnr] = value.split(',');
      if (dnr !== undefined && dnr !== 'dnr') throw new Error("only 'dnr' may follow the status");
      const status = parseCount(code, 1, STATUS_MAX);
      rule.fault = { kind: 'status', status: dnr === undefined ? status : status | DNR };
      break;
    }
    case 'delay':
      rule.fault = { kind: 'delay', delayNs: parseDurationNs(value) };
      break;
    case 'silent':
    case 'disconnect':
      rule.fault = { kind: name };
      break;
    case 'once':
      rule.limit = 1;
      break;
    default:
      if (LIMIT.test(name)) rule.limit = parseCount(name.slice(1), 1);
  }
}

function readOpcode(value: string): number {
  const opcode = OPCODES.get(value);
  if (opcode !== undefined) return opcode;
  if (/^\d/.test(value)) return parseCount(value, 0, 0xff);
  const names = [...OPCODES.keys()];
  throw new RoceError(
    'ERR_ROCE_MALFORMED',
    `'${value}' is not a command`,
    namesHint(value, names, 'it is a number or one of'),
  );
}

function ruleError(text: string, problem: string, hint: string | null = `write ${FORM}`): RoceError {
  return new RoceError('ERR_ROCE_MALFORMED', `fault rule '${text}' ${problem}`, hint ?? undefined);
}

/** Counts of a rule so far. */
export interface CommandFaultCount {
  /** The rule as it was written. */
  readonly rule: string;
  /** Commands that it matched. */
  readonly struck: number;
}

interface RunningRule {
  readonly rule: CommandFaultRule;
  seen: number;
  struck: number;
}

export class CommandFaults {
  readonly #rules: RunningRule[];
  readonly #random: RandomSource;

  constructor(rules: readonly CommandFaultRule[], random: RandomSource) {
    this.#rules = rules.map((rule) => ({ rule, seen: 0, struck: 0 }));
    this.#random = random;
  }

  get counters(): readonly CommandFaultCount[] {
    return this.#rules.map(({ rule: { text }, struck }) => ({ rule: text, struck }));
  }

  next(command: NvmeCommand): CommandFault | undefined {
    for (const running of this.#rules) {
      const { rule } = running;
      if (running.struck >= rule.limit || !fits(rule, command)) continue;
      const isTurn = ++running.seen % rule.every === 0;
      if (!isTurn || (rule.probability < 1 && randomUnit(this.#random) >= rule.probability)) continue;
      running.struck++;
      return rule.fault;
    }
    return undefined;
  }
}

const WITH_BLOCKS: ReadonlySet<number> = new Set([IO.READ, IO.WRITE, IO.COMPARE, IO.VERIFY, IO.WRITE_ZEROES]);

function fits({ opcode, nsid, blocks }: CommandFaultRule, command: NvmeCommand): boolean {
  if (opcode !== undefined && command.opcode !== opcode) return false;
  if (nsid !== undefined && command.nsid !== nsid) return false;
  if (blocks === undefined) return true;
  const first = command.lba;
  const last = first + BigInt(command.dword(12) & 0xffff);
  return WITH_BLOCKS.has(command.opcode) && first <= blocks[1] && last >= blocks[0];
}
