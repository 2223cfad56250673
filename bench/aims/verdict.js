// @ts-check
/** Aims beside what was measured. */

import { spread } from './samples.js';

/**
 * An aim: numbers of one kind of `of`, or their ratios to those of `to` within each repetition, beside a bar.
 * @typedef {object} Aim
 * @property {string} aim
 * @property {string} of name of the samples
 * @property {string} [to] samples of the rival; without it the number itself counts
 * @property {string} [kind] of the numbers; default `value`
 * @property {string} [unit] of the number, without a rival
 * @property {number} [atLeast] the bar, or
 * @property {number} [atMost] the bar
 * @property {boolean} [native] only with libdeflate or ISA-L
 *
 * @typedef {object} Verdict
 * @property {string} aim
 * @property {string} by who was measured
 * @property {import('./samples.js').Spread | null} now null: not measured
 * @property {number} repetitions that have a number
 * @property {string} bar
 * @property {boolean | null} reached by the median; null: not measured
 * @property {string} [remark] why it was not measured, or what failed
 */

/**
 * @param {Aim} aim
 * @param {import('./samples.js').Samples} samples
 * @param {{hasNativeCrc: boolean}} machine
 * @returns {Verdict}
 */
export function verdictOn({ aim, of, to, kind, unit, atLeast, atMost, native = false }, samples, { hasNativeCrc }) {
  const limit = /** @type {number} */ (atLeast ?? atMost);
  const bar = `${atLeast === undefined ? '<=' : '>='} ${short(limit)}${unit === undefined ? '' : ` ${unit}`}`;
  const head = { aim, by: of.slice(of.indexOf(': ') + 2).replace(/^rocev2 /, ''), bar };
  const none = { ...head, now: null, repetitions: 0, reached: null };
  if (native && !hasNativeCrc) return { ...none, remark: 'neither libdeflate nor ISA-L is here' };
  const numbers = to === undefined ? samples.numbers(of, kind) : samples.ratios(of, to, kind);
  const texts = [of, ...(to === undefined ? [] : [to])].map((name) => samples.failureText(name));
  const remark = texts.filter((text) => text !== '').join('; ');
  if (numbers.length === 0) return { ...none, remark: remark || 'not measured' };
  const now = spread(numbers);
  const reached = atLeast === undefined ? now.median <= limit : now.median >= limit;
  return { ...head, now, repetitions: numbers.length, reached, ...(remark !== '' && { remark }) };
}

/** Three digits, thousands apart. @param {number} number */
export function short(number) {
  if (Math.abs(number) >= 999.5) return Math.round(number).toLocaleString('en');
  return String(Number(number.toPrecision(Math.abs(number) < 1 ? 2 : 3)));
}

/** A table in Markdown, and how many rows reach their bar. @param {readonly Verdict[]} verdicts */
export function verdictTable(verdicts) {
  return [...verdictLines(verdicts), '', reachedText(verdicts)].join('\n');
}

/** The lines of a table in Markdown. @param {readonly Verdict[]} verdicts */
export function verdictLines(verdicts) {
  const lines = verdicts.map(({ aim, by, now, bar, reached, remark }) => {
    const range = now === null || now.min === now.max ? '' : ` (${short(now.min)} to ${short(now.max)})`;
    const text = now === null ? '' : `${reached ? '' : '**'}${short(now.median)}${reached ? '' : '**'}${range}`;
    const judged = reached === null ? 'not measured' : reached ? 'reached' : 'not reached';
    return `| ${aim} | ${by} | ${text} | ${bar} | ${judged}${remark === undefined ? '' : ` (${remark})`} |`;
  });
  return ['| measurement | by | median (range) | aim | |', '|---|---|---|---|---|', ...lines];
}

/** @param {readonly Verdict[]} verdicts */
export function reachedText(verdicts) {
  const reached = verdicts.filter((verdict) => verdict.reached === true).length;
  const measured = verdicts.filter((verdict) => verdict.reached !== null).length;
  return `${reached} of ${measured} rows reach their aim by the median; ${verdicts.length - measured} rows were not measured.`;
}
