import { type FaultActionKind, withoutValues } from '../fault-action.js';

export const drop: FaultActionKind<never> = {
  name: 'drop',
  form: 'drop',
  example: 'drop',
  does: 'drops it; the default action',
  conflict: (others) => (others.length > 0 ? 'drops the packet and does more with it' : undefined),
  parse: withoutValues({
    decide(fate) {
      fate.drops = true;
    },
  }),
};
