import { textOption } from '@rocev2/command';
import { RoceError } from 'rocev2/internal/core';
import { JUDGED_RULES, RULES, ruleOf } from '../../audit/catalogue.js';

export const ruleListOption = textOption((text) => {
  const ids = new Set<number>();
  for (const item of text.split(',')) {
    const range = /^\s*(\d+)(?:-(\d+))?\s*$/.exec(item);
    const first = Number(range?.[1]);
    const last = Number(range?.[2] ?? range?.[1]);
    if (range === null || first > last || ruleOf(first) === undefined || ruleOf(last) === undefined) {
      throw new RoceError(
        'ERR_ROCE_MALFORMED',
        `'${item}' is not a rule or range of rules: write 1 to ${RULES.length}, such as 1-11,36`,
      );
    }
    for (let id = first; id <= last; id++) ids.add(id);
  }
  const judged = JUDGED_RULES.filter(({ id }) => ids.has(id)).map(({ id }) => id);
  if (judged.length === 0) {
    throw new RoceError(
      'ERR_ROCE_MALFORMED',
      `an audit checks none of the rules ${text} (packages/inspect/docs/rules.md)`,
    );
  }
  return judged;
});
