import { textOption } from '@rocev2/command';
import { namesHint, RoceError } from 'rocev2/internal/core';
import { CASES, TESTED_RULES } from '../../conform/cases.js';
import type { TestCase } from '../../conform/step.js';

const SUBJECTS: readonly string[] = [...new Set(CASES.map(({ name }) => name.split('/')[0]))];

export const caseListOption = textOption((text): readonly TestCase[] => {
  const wanted = text.split(',').map((item) => matcher(item.trim()));
  return CASES.filter((testCase) => wanted.some((matches) => matches(testCase)));
});

function matcher(item: string): (testCase: TestCase) => boolean {
  const range = /^(\d+)(?:-(\d+))?$/.exec(item);
  if (range !== null) {
    const first = Number(range[1]);
    const last = Number(range[2] ?? range[1]);
    if (TESTED_RULES.some((rule) => rule >= first && rule <= last)) {
      return ({ rules }) => rules.some((rule) => rule >= first && rule <= last);
    }
    throw new RoceError(
      'ERR_ROCE_UNKNOWN_NAME',
      `there is no case for rule ${item}`,
      'rocev2 conform list has them all',
    );
  }
  const matches = ({ name }: TestCase) => name === item || name.startsWith(`${item}/`);
  if (CASES.some(matches)) return matches;
  const hint = namesHint(item, item.includes('/') ? CASES.map(({ name }) => name) : SUBJECTS, 'there are');
  throw new RoceError('ERR_ROCE_UNKNOWN_NAME', `there is no case '${item}'`, hint);
}
