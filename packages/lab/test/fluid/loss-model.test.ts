import { describe, expect, it } from 'vitest';
import { lossModelOf } from '../../src/fluid/loss-model.js';

describe('the loss model of a rule', () => {
  it.each([
    [undefined, { kind: 'none' }],
    ['ip-id-lsb=0xff', { kind: 'regular', period: 256 }],
    ['a>b:ip-id-lsb=0x10', { kind: 'regular', period: 256 }],
    ['a>b:every=100', { kind: 'regular', period: 100 }],
    ['random=1/256', { kind: 'random', probability: 1 / 256 }],
    ['a>*:random=0.01', { kind: 'random', probability: 0.01 }],
  ])('%s', (rule, model) => expect(lossModelOf(rule)).toEqual(model));

  it.each(['every=100', 'b>a:random=0.1', 'random=0.1:once', 'burst=0.1,0.1', 'random=0.1;random=0.2'])(
    '%s has none',
    (rule) => expect(lossModelOf(rule)).toBeUndefined(),
  );
});
