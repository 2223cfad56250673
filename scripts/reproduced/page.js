// @ts-check
/** The page packages/lab/docs/reproduced.md, made of claims and judgements. */

import { wrap } from '../wrap.js';
import { PAPERS } from './claims.js';

/** @typedef {import('./claims.js').Claim} Claim */
/** @typedef {import('./claims.js').Judgement} Judgement */

const HEAD = `# Claims of publications, row by row

This page lists claims of publications, and results of the simulator and the fluid models. \`npm run reproduced\` runs all
commands and writes it; \`npm run reproduced -- ROW\` runs one row. Runs are in virtual time, so every machine gets the
same values. [figures.md](figures.md) compares numbers of figures, and [figure-notes.md](figure-notes.md) explains
differences.

A claim is *reproduced* if the order and the effect that it states appear. Rows of simulators are, if all values differ
by at most 10 %. The commands of a row end with its name.
`;

/** The words of a command after `rocev2`, as a shell gives them. @param {string} command */
export function wordsOf(command) {
  const words = [...command.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain);
  return words.slice(1);
}

/** @param {Claim} claim @param {Judgement | undefined} judgement */
function rowOf({ id, where, claim, judge }, judgement) {
  const verdict = judge === undefined ? 'not tested' : verdictOf(judgement);
  return `| ${[id, where, claim, judgement?.ours ?? '', verdict].join(' | ')} |`;
}

/** @param {Judgement | undefined} judgement */
function verdictOf(judgement) {
  if (judgement === undefined) return 'not run';
  return judgement.holds ? 'reproduced' : 'not reproduced';
}

/** What a page has of each row that was judged. @param {string} page @returns {Map<string, Judgement>} */
export function rowsOf(page) {
  return new Map(
    [...page.matchAll(/^\| (\w+-\d+) \|.*?\|.*?\| (.*?) \| (reproduced|not reproduced) \|$/gm)].map(
      ([, id, ours, verdict]) => [id, { ours, holds: verdict === 'reproduced' }],
    ),
  );
}

/** @param {ReadonlyMap<string, Judgement>} judgements */
export function pageOf(judgements) {
  const sections = PAPERS.map(({ title, claims }) => {
    const lines = [
      `## ${title}`,
      '',
      '| row | where | claim | ours | verdict |',
      '|---|---|---|---|---|',
      ...claims.map((claim) => rowOf(claim, judgements.get(claim.id))),
      '',
    ];
    const commands = claims.flatMap(({ id, commands: shown }) => shown.map((command) => `    ${command}  # ${id}`));
    const reasons = claims
      .filter(({ reason }) => reason !== undefined)
      .map(({ id, reason }) => `- **${id}**: ${reason}`);
    if (commands.length > 0) lines.push(...commands, '');
    if (reasons.length > 0) lines.push(...reasons, '');
    return lines.join('\n');
  });
  return wrap([HEAD, ...sections].join('\n'));
}
