/** Checks of what programs pass to models and statistics. */

import { checkKind, checkObject, checkWhole, RoceError } from 'rocev2/internal/core';

export const FLOWS_MAX = 1e6;
const NS_MAX = 1e12;

export function checkNumber(name: string, value: unknown, min: number, max: number): void {
  checkKind(name, value, typeof value === 'number', 'a number');
  const number = value as number;
  if (number >= min && number <= max) return;
  throw new RoceError('ERR_ROCE_OUT_OF_RANGE', `${name} is ${number}`, `it must be a number from ${min} to ${max}`);
}

export function checkFunction(name: string, value: unknown): void {
  checkKind(name, value, typeof value === 'function', 'a function');
}

/** `values` may be a typed array. */
export function checkNumbers(name: string, values: unknown): void {
  const isList = Array.isArray(values) || (ArrayBuffer.isView(values) && !(values instanceof DataView));
  checkKind(name, values, isList, 'a list of numbers');
}

/** An object that has a positive number for each of `names`. */
export function checkParameters(what: string, parameters: object, names: readonly string[]): void {
  checkObject(`what ${what} takes`, parameters, `an object: ${names.join(', ')}`);
  for (const name of names) {
    const value = (parameters as Readonly<Record<string, unknown>>)[name];
    checkNumber(`${what} ${name}`, value, Number.MIN_VALUE, Number.MAX_VALUE);
  }
}

export function checkFlows(flows: number): void {
  checkWhole('flows', flows, 1, FLOWS_MAX);
}

export function checkNs(name: string, timeNs: number): void {
  checkNumber(name, timeNs, 0, NS_MAX);
}
