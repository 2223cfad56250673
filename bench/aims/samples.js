// @ts-check
/** What was measured of whom in which repetition, failures included: ratios are taken within a repetition, because both had the machine in the same minute. */

import { median } from '../peers/percentiles.js';

/**
 * Numbers of one run, by what they are of: `value` is what counts, `cpu` the processor time for it.
 * @typedef {Record<string, any> & {value: number}} Sample
 * @typedef {{median: number, min: number, max: number}} Spread
 */

const REASON_LENGTH = 200;

/** @param {readonly number[]} numbers at least one @returns {Spread} */
export function spread(numbers) {
  return { median: median([...numbers]), min: Math.min(...numbers), max: Math.max(...numbers) };
}

/** Samples and failures by the name of who was measured. */
export class Samples {
  /** @type {Map<string, Map<number, Sample | {failed: string}>>} */
  #byName = new Map();

  /** @param {string} name @param {number} rep @param {Sample} sample */
  add(name, rep, sample) {
    this.#of(name).set(rep, sample);
  }

  /** @param {string} name @param {number} rep @param {string} reason its words fit into a row of a table: one line, not all of a long one */
  fail(name, rep, reason) {
    this.#of(name).set(rep, { failed: reason.replaceAll(/\s+/g, ' ').trim().slice(0, REASON_LENGTH) });
  }

  /** Samples of the repetitions that did not fail. @param {string} name @returns {Sample[]} */
  of(name) {
    return [...this.#of(name).values()]
      .filter((entry) => !('failed' in entry))
      .map((entry) => /** @type {Sample} */ (entry));
  }

  /** Numbers of one kind; those that were not measured (undefined or NaN) are left out. @param {string} name @param {string} [kind] */
  numbers(name, kind = 'value') {
    return this.of(name)
      .map((sample) => sample[kind])
      .filter((number) => typeof number === 'number' && !Number.isNaN(number));
  }

  /** Ratios within each repetition in which both have a number. @param {string} name @param {string} to @param {string} [kind] */
  ratios(name, to, kind = 'value') {
    const ratios = [];
    for (const [rep, entry] of this.#of(name)) {
      const ratio = /** @type {any} */ (entry)[kind] / /** @type {any} */ (this.#of(to).get(rep))?.[kind];
      if (Number.isFinite(ratio)) ratios.push(ratio);
    }
    return ratios;
  }

  /** How often it was tried, and why it failed, the first reason for all. @param {string} name */
  failures(name) {
    const entries = [...this.#of(name).values()];
    const reasons = entries.flatMap((entry) => ('failed' in entry ? [entry.failed] : []));
    return { tried: entries.length, failed: reasons.length, reason: reasons[0] };
  }

  /** "failed 1 of 3: why", or nothing. @param {string} name */
  failureText(name) {
    const { tried, failed, reason } = this.failures(name);
    return failed === 0 ? '' : `failed ${failed} of ${tried}: ${reason}`;
  }

  #of(/** @type {string} */ name) {
    let entries = this.#byName.get(name);
    if (entries === undefined) {
      entries = new Map();
      this.#byName.set(name, entries);
    }
    return entries;
  }
}
