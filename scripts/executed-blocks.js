// @ts-check
/**
 * Blocks of a document that `scripts/run-guides.js` runs: code marked `console`, whose lines `$ command` are followed by the output of the command, and code
 * without a language, whose lines are commands to paste, if a comment says so. A comment before a block says how to run it: `<!-- run: server, numbers vary -->`.
 */

/** @typedef {'server' | 'numbers vary' | 'output varies' | 'needs root' | 'needs guest' | 'not run'} Mark */

/** @type {readonly Mark[]} */
export const MARKS = ['server', 'numbers vary', 'output varies', 'needs root', 'needs guest', 'not run'];

/**
 * @typedef {object} Block
 * @property {number} line Number of its first line of code, from 1.
 * @property {readonly string[]} marks
 * @property {readonly { command: string, output: string }[]} steps
 */

const BLOCK =
  /(?:^<!-- run: ([^\n]*?) -->\n\s*)?^```console\n([\s\S]*?)^```$|^<!-- run: ([^\n]*?) -->\n\s*^```\n([\s\S]*?)^```$/gm;

/**
 * @param {string} text
 * @returns {Block[]}
 */
export function executedBlocks(text) {
  return [...text.matchAll(BLOCK)].map(({ 0: whole, 1: marks, 2: code, 3: marksOfPlain, 4: plain, index }) => {
    const before = text.slice(0, index + whole.indexOf('\n', whole.indexOf('```')) + 1);
    const line = before.split('\n').length;
    if (code !== undefined) return { line, marks: marksOf(marks), steps: stepsOf(code) };
    return { line, marks: [...marksOf(marksOfPlain), 'output varies'], steps: commandsOf(plain) };
  });
}

/**
 * The text with the outputs of its blocks replaced, in their order; `undefined` leaves a block as it is.
 * @param {string} text
 * @param {readonly (readonly string[] | undefined)[]} outputs
 */
export function withOutputs(text, outputs) {
  let at = 0;
  return text.replaceAll(BLOCK, (whole, _marks, code) => {
    const shown = outputs[at++];
    if (shown === undefined || code === undefined) return whole;
    const steps = stepsOf(code).map(({ command }, i) => `$ ${command}\n${shown[i] ?? ''}`);
    return `${whole.slice(0, whole.indexOf('```console\n'))}\`\`\`console\n${steps.join('')}\`\`\``;
  });
}

/** @param {string | undefined} text */
function marksOf(text) {
  return text === undefined ? [] : text.split(',').map((mark) => mark.trim().replace(/:.*/, ''));
}

/**
 * Commands to paste, without output.
 * @param {string} code
 */
function commandsOf(code) {
  return code
    .replaceAll('\\\n', ' ')
    .split('\n')
    .filter((line) => line !== '')
    .map((command) => ({ command, output: '' }));
}

/** @param {string} code */
function stepsOf(code) {
  return code
    .split(/^\$ /m)
    .slice(1)
    .map((part) => {
      const end = part.indexOf('\n');
      return { command: part.slice(0, end), output: part.slice(end + 1) };
    });
}

/**
 * Why the output is not what the document shows; undefined if it is.
 * @param {string} expected
 * @param {string} actual
 * @param {readonly string[]} marks
 */
export function difference(expected, actual, marks) {
  if (marks.includes('output varies')) return undefined;
  const form = marks.includes('numbers vary') ? withoutNumbers : withoutDurations;
  const shown = expected.trimEnd().split('\n').map(form);
  const printed = actual.trimEnd().split('\n').map(form);
  for (let i = 0; i < Math.max(shown.length, printed.length); i++) {
    if (shown[i] === printed[i]) continue;
    return `line ${i + 1} of the output\n  shown:   ${expected.split('\n')[i] ?? '(nothing)'}\n  printed: ${actual.split('\n')[i] ?? '(nothing)'}`;
  }
  return undefined;
}

/**
 * How long a simulation took, which every machine prints differently.
 * @param {string} line
 */
function withoutDurations(line) {
  return line.replace(/ in \d[\d.]* s; (\d+) packet events, .* million a second$/, ' in # s; $1 packet events');
}

/**
 * Numbers as `#`, with their units and the spaces and dashes that depend on their widths.
 * @param {string} line
 */
function withoutNumbers(line) {
  return line
    .replaceAll(/\b(?:0x[0-9a-f]+|[0-9a-f]{6,})\b/g, '#')
    .replaceAll(/-?\d[\d.,]*\d|-?\d/g, '#')
    .replaceAll(/# ?(?:[num]?s|(?:[KMGTk]i?)?B(?:\/s)?|[kMGT]?b\/s|[kMG]?bps)(?!\w)/g, '# unit')
    .replaceAll(/-{3,}/g, '---')
    .replaceAll(/ {2,}/g, ' ')
    .trim();
}
