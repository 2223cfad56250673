/** What is hard to read in a text: unidiomatic expressions, long sentences, paragraphs and lines, too many numbers, clauses as headings. */

import { sentencesOf, textBlocks, withoutCode, wordsOf } from './prose.js';
import { PATTERNS, type WordingPattern } from './wording-patterns.js';

export const SENTENCE_WORDS_MAX = 30;
export const PARAGRAPH_WORDS_MAX = 90;
export const LINE_CHARACTERS_MAX = 120;
/** In one sentence outside of tables. */
export const NUMBERS_MAX = 6;

export const MEASURES = ['patterns', 'sentences', 'paragraphs', 'lines', 'numbers', 'headings'] as const;
export type Measure = (typeof MEASURES)[number];

export interface Remark {
  readonly measure: Measure;
  readonly line: number;
  readonly text: string;
}

/** A heading is a noun phrase, an imperative or a question. */
const CLAUSE_HEADING =
  /^(?:Who|Whose|What|Which|When|Where|Why|How|If|That)\b(?! to\b)(?!.*\?$)|\b(?:that|who|which|what) (?:is|are|was|were|has|have|can|may|must|nobody|no|it|they|do|does|[a-z]+s)\b(?!.*\?$)/u;

export function remarksOnPatterns(prose: string, patterns: readonly WordingPattern[] = PATTERNS): Remark[] {
  return patterns.flatMap(({ pattern, advice }) =>
    [...prose.matchAll(pattern)].map((match) => ({
      measure: 'patterns' as const,
      line: lineAt(prose, match.index),
      text: `"${around(prose, match.index, match[0].length)}": ${advice}`,
    })),
  );
}

export function remarksOnDocument(markdown: string): Remark[] {
  const prose = withoutCode(markdown);
  const blocks = textBlocks(prose);
  const remarks: Remark[] = [];
  for (const { kind, line, text } of blocks) {
    const add = (measure: Measure, remark: string) => remarks.push({ measure, line, text: remark });
    // Matches span the lines of a paragraph.
    remarks.push(...remarksOnPatterns(text).map((remark) => ({ ...remark, line })));
    if (kind === 'heading') {
      if (CLAUSE_HEADING.test(text)) add('headings', `"${text}" is a clause: write a noun phrase or an imperative`);
      continue;
    }
    const words = wordsOf(text).length;
    if (words > PARAGRAPH_WORDS_MAX) add('paragraphs', `${words} words in a paragraph: "${text.slice(0, 40)}..."`);
    for (const sentence of sentencesOf(text)) {
      const length = wordsOf(sentence).length;
      if (length > SENTENCE_WORDS_MAX) add('sentences', `${length} words in a sentence: "${sentence.slice(0, 40)}..."`);
      const numbers = sentence.match(/(?<![\p{L}\p{N}])\d[\d.,]*/gu)?.length ?? 0;
      if (kind !== 'cell' && numbers > NUMBERS_MAX) {
        add('numbers', `${numbers} numbers in a sentence: "${sentence.slice(0, 40)}..."`);
      }
    }
  }
  const original = markdown.split('\n');
  for (const [i, text] of prose.split('\n').entries()) {
    const isTableOrCode = text.trim() === '' || text.trim().startsWith('|');
    if (!isTableOrCode && original[i].length > LINE_CHARACTERS_MAX) {
      remarks.push({ measure: 'lines', line: i + 1, text: `${original[i].length} characters in a line` });
    }
  }
  return remarks;
}

export function countByMeasure(remarks: readonly Remark[]): Partial<Record<Measure, number>> {
  const counts = MEASURES.map((measure) => [measure, remarks.filter((remark) => remark.measure === measure).length]);
  return Object.fromEntries(counts.filter(([, count]) => count !== 0));
}

function lineAt(text: string, index: number): number {
  return text.slice(0, index).split('\n').length;
}

function around(text: string, index: number, length: number): string {
  const from = Math.max(0, index - 20);
  return text.slice(from, index + length + 20).replaceAll(/\s+/g, ' ');
}
