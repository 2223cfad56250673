import { type FaultActionKind, withoutValues } from '../fault-action.js';

export interface DuplicateCounters {
  /** Copies a fault rule made. */
  faults_duplicated: number;
}

export const duplicate: FaultActionKind<keyof DuplicateCounters> = {
  name: 'duplicate',
  form: 'duplicate',
  example: 'duplicate',
  does: 'delivers it twice',
  counter: 'faults_duplicated',
  randomForm: 'duplicate=0.001',
  parse: withoutValues({
    decide(fate) {
      fate.duplicates = true;
    },
  }),
};
