/**
 * Calls with each parameter and option replaced by what it cannot be: a call throws or rejects with a RoceError, a disk
 * also with a BlockDeviceError, or it works. It never fails otherwise, and never waits for a peer.
 */

import { setTimeout as delay } from 'node:timers/promises'; // timer: a bound for calls that wait for a peer
import { RoceError } from '../../src/index.js';
import { BlockDeviceError } from '../../src/storage-rpc/index.js';

/** Longer than the waits that the table passes. */
const WAIT_MS = 400;

const BAD: ReadonlyArray<readonly [string, unknown]> = [
  ['null', null],
  ['text', 'x'],
  ['an empty text', ''],
  ['NaN', Number.NaN],
  ['-1', -1],
  ['1.5', 1.5],
  ['1e300', 1e300],
  ['2^53', 2 ** 53],
  ['-1n', -1n],
  ['2^64', 2n ** 64n],
  ['true', true],
  ['an empty object', {}],
  ['an empty list', []],
  ['a function', () => {}],
  ['a symbol', Symbol('x')],
];

export type Call = (...args: never[]) => unknown;
/** Valid arguments. An object of options has every option that takes a value of the program. */
export interface Case {
  readonly name: string;
  readonly call: Call;
  readonly args: readonly unknown[];
  /** Ends what a call that worked has made. */
  readonly undo?: (value: never) => unknown;
}

/** A call with valid arguments may wait for a peer: undefined then. */
async function unlessItWaits(outcome: unknown): Promise<unknown> {
  if (!(outcome instanceof Promise)) return outcome;
  outcome.catch(() => {});
  return Promise.race([outcome, delay(WAIT_MS)]);
}

/** Every way to replace one argument, or one option down to a depth of two. */
function* variants(args: readonly unknown[]): Generator<{ readonly where: string; readonly args: unknown[] }> {
  for (const [i, arg] of args.entries()) {
    for (const [what, bad] of BAD) yield { where: `argument ${i + 1} = ${what}`, args: args.with(i, bad) };
    if (typeof arg !== 'object' || arg === null || Object.getPrototypeOf(arg) !== Object.prototype) continue;
    for (const name of Object.keys(arg)) {
      for (const [what, bad] of BAD) yield { where: `${name} = ${what}`, args: args.with(i, { ...arg, [name]: bad }) };
      const inner = (arg as Record<string, unknown>)[name];
      if (typeof inner !== 'object' || inner === null || Object.getPrototypeOf(inner) !== Object.prototype) continue;
      for (const key of Object.keys(inner)) {
        for (const [what, bad] of BAD) {
          yield { where: `${name}.${key} = ${what}`, args: args.with(i, { ...arg, [name]: { ...inner, [key]: bad } }) };
        }
      }
    }
  }
}

/** The calls that failed otherwise than with a RoceError, each with the argument. */
export async function wronglyTaken(cases: readonly Case[]): Promise<string[]> {
  const wrong: string[] = [];
  for (const { name, call, args, undo } of cases) {
    for (const variant of variants(args)) {
      try {
        const value = await unlessItWaits((call as (...args: unknown[]) => unknown)(...variant.args));
        await undo?.(value as never);
      } catch (error) {
        if (error instanceof RoceError || error instanceof BlockDeviceError) continue;
        wrong.push(`${name}: ${variant.where}: ${String(error)}`);
      }
    }
  }
  return wrong;
}

/** A method of an object, as a call. */
export function bound<O extends object, K extends keyof O>(object: O, method: K): Call {
  return (object[method] as Call).bind(object);
}

/** Closes what a call has made. */
export function close(thing: { close?: () => unknown } | undefined): unknown {
  return thing?.close?.();
}
